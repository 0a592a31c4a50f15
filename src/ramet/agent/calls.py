"""Method calls from other agents: which methods may be called, and as whose code they run."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager

from ramet.agent.by_value import ByValue
from ramet.core.current import working_for
from ramet.core.ports import Call
from ramet.core.tail import Tail
from ramet.errors import MethodNotCallable, MethodNotFound


class MethodCalls:
    """The public async methods of one agent, callable through stubs."""

    def __init__(self, agent: object, *, name: str) -> None:
        self._agent = agent
        self._name = name
        self._running = 0

    def busy(self) -> str | None:
        """Why the instance may not be evicted."""
        return "a call from another agent is running" if self._running else None

    async def invoke(self, call: Call, *, by_value: bool) -> object:
        """Run a method and return what it returns.

        With `by_value` the arguments and the result go through JSON as the annotations say, as they
        would between two machines (D17).
        """
        method = self._find(call.method)
        self._require_async(call.method, method)
        translate = ByValue(method) if by_value else None
        if translate is not None:
            call = translate.arguments(call)
        self._running += 1
        try:
            with self._as_agent():
                result = method(*call.args, **call.kwargs)
                if isinstance(result, Awaitable):
                    result = await result
        finally:
            self._running -= 1
        return translate.result(result) if translate is not None else result

    async def open_stream(self, call: Call) -> AsyncIterator[object]:
        """Call a method that gives an async iterator.

        Raises:
            MethodNotCallable: It gives something else.
        """
        with self._as_agent():
            result = self._find(call.method)(*call.args, **call.kwargs)
            if isinstance(result, Awaitable) and not isinstance(result, AsyncIterator):
                result = await result
        if not isinstance(result, AsyncIterator):
            raise MethodNotCallable(
                f"Method {call.method} of {self._name} does not return an async iterator"
            )
        return result

    async def pump(self, items: AsyncIterator[object], into: Tail[object]) -> None:
        """Move what an iterator gives into a tail, as code of this agent."""
        self._running += 1
        try:
            with self._as_agent():
                async for item in items:
                    into.push(item)
        except Exception as error:  # noqa: BLE001 - the consumer gets it, whatever it is
            into.end(error)
        finally:
            self._running -= 1
            into.end()

    def _as_agent(self) -> AbstractContextManager[None]:
        return working_for(self._agent)

    def _find(self, name: str) -> Callable[..., object]:
        method = None if name.startswith("_") else getattr(self._agent, name, None)
        if method is None or not callable(method):
            raise MethodNotFound(f"Method {name} of {self._name} does not exist")
        found: Callable[..., object] = method
        return found

    def _require_async(self, name: str, method: Callable[..., object]) -> None:
        if not inspect.iscoroutinefunction(method):
            raise MethodNotCallable(
                f"Method {name} of {self._name} is not async: "
                "only async methods can be called through a stub"
            )
