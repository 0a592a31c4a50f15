"""Methods that clients may call: how they are declared, found, checked and answered."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, get_type_hints, overload

from pydantic import TypeAdapter, ValidationError

from ramet.connections.connection import Connection
from ramet.core.current import working_for
from ramet.core.ids import Ids
from ramet.core.json import JsonObject, JsonValue, NotJson
from ramet.core.ports import Background, Events
from ramet.core.public_errors import own_words, public_text
from ramet.errors import (
    ConfigurationError,
    InvalidArguments,
    MethodNotCallable,
    MethodNotFound,
    RametError,
    ResultNotJson,
)
from ramet.protocol import frames
from ramet.protocol.incoming import RpcCall
from ramet.protocol.names import camel

F = TypeVar("F", bound=Callable[..., object])

CANCELLED_ITSELF = "The call was cancelled by its own code"

_MARK = "__ramet_rpc__"


@overload
def rpc(method: F, /) -> F: ...
@overload
def rpc(*, streaming: bool = False) -> Callable[[F], F]: ...
def rpc(method: F | None = None, /, *, streaming: bool = False) -> F | Callable[[F], F]:
    """Let clients call a method of an agent.

    The arguments are checked against the annotations (pydantic), the result must be JSON. A client
    may call it by its exact name or in camelCase. With `streaming=True` the method takes an
    `RpcStream` first and may send values before it ends.
    """

    def mark(method: F) -> F:
        setattr(method, _MARK, streaming)
        return method

    return mark if method is None else mark(method)


class RpcStream:
    """What a streaming method answers through: any number of values, then one end."""

    def __init__(self, connection: Connection, call_id: str) -> None:
        self._connection = connection
        self._call_id = call_id
        self.closed = False
        """Whether the end was sent; what is sent after is dropped."""

    def send(self, value: object) -> None:
        """Send one value; raises `ResultNotJson` when JSON cannot carry it."""
        if not self.closed:
            self._connection.send_frame(_result(self._call_id, value, done=False))

    async def drain(self) -> None:
        """Wait while the client has much to read still; a client that falls behind is closed.

        For methods that send many values without waiting for anything else between them.
        """
        await self._connection.link.outbox.drained()

    def end(self, value: object = None) -> None:
        """End the stream, with a last value."""
        if not self.closed:
            frame = _result(self._call_id, value, done=True)
            self.closed = True
            self._connection.send_frame(frame)

    def error(self, text: str) -> None:
        """End the stream with an error."""
        if not self.closed:
            self.closed = True
            self._connection.send_frame(frames.rpc_error(self._call_id, text))


@dataclass(frozen=True)
class RpcMethod:
    """One method that clients may call."""

    name: str
    function: Callable[..., object]
    streaming: bool

    @cached_property
    def parameters(self) -> Sequence[inspect.Parameter]:
        """The parameters a client fills: without self and without the stream."""
        skipped = 2 if self.streaming else 1
        return tuple(inspect.signature(self.function).parameters.values())[skipped:]

    @cached_property
    def adapters(self) -> Mapping[str, TypeAdapter[object]]:
        """A validator for each annotated parameter."""
        hints = get_type_hints(self.function, include_extras=True)
        return {
            parameter.name: TypeAdapter(hints[parameter.name])
            for parameter in self.parameters
            if parameter.name in hints
        }

    def check(self, values: Sequence[JsonValue]) -> list[object]:
        """The arguments in the types the method asks for.

        Raises:
            InvalidArguments: Too many, too few, or of another type; the message says which.
        """
        try:
            bound = inspect.Signature(self.parameters).bind(*values)
        except TypeError as error:
            raise InvalidArguments(f"Wrong arguments for {self.name}: {error}") from error
        checked: list[object] = []
        for name, value in bound.arguments.items():
            spread = bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            checked.extend(self._checked(name, each) for each in (value if spread else (value,)))
        return checked

    def _checked(self, name: str, value: JsonValue) -> object:
        adapter = self.adapters.get(name)
        if adapter is None:
            return value
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            detail = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(str(step) for step in (name, *detail["loc"]))
            raise InvalidArguments(
                f"Wrong arguments for {self.name}: {where}: {detail['msg']}"
            ) from error


class RpcTable:
    """The callable methods of one class, under their exact and their camelCase names."""

    def __init__(self, cls: type) -> None:
        self._cls = cls
        self._methods: dict[str, RpcMethod] = {}
        for name in dir(cls):
            function = inspect.getattr_static(cls, name)
            if hasattr(function, _MARK):
                streaming = bool(getattr(function, _MARK))
                self._add(RpcMethod(name=name, function=function, streaming=streaming))

    def find(self, name: str) -> RpcMethod:
        """The method under a name.

        Raises:
            MethodNotFound: There is none.
            MethodNotCallable: There is one that is not marked with `@ramet.rpc`.
        """
        method = self._methods.get(name)
        if method is not None:
            return method
        if callable(getattr(self._cls, name, None)):
            raise MethodNotCallable(f"Method {name} is not callable")
        raise MethodNotFound(f"Method {name} does not exist")

    def _add(self, method: RpcMethod) -> None:
        for name in {method.name, camel(method.name)}:
            other = self._methods.get(name)
            if other is not None and other.name != method.name:
                raise ConfigurationError(
                    f"{self._cls.__name__}: the methods {other.name!r} and {method.name!r} "
                    f"are both called {name!r} by clients; rename one"
                )
            self._methods[name] = method


class RpcDispatcher:
    """Runs clients' calls as tasks of the instance and answers each exactly once."""

    def __init__(
        self,
        agent: object,
        table: RpcTable,
        *,
        background: Background,
        ids: Ids,
        events: Events,
    ) -> None:
        self._agent = agent
        self._table = table
        self._background = background
        self._ids = ids
        self._events = events
        self._running = 0

    def busy(self) -> str | None:
        """Why the instance may not be evicted."""
        return "a client's call is running" if self._running else None

    def receive(self, connection: Connection, call: RpcCall) -> None:
        """Start a call; the answer goes to the connection when it is there."""
        self._running += 1
        self._background.start(self._answer(connection, call), name=f"rpc {call.method}")

    async def _answer(self, connection: Connection, call: RpcCall) -> None:
        stream = RpcStream(connection, call.id)
        try:
            with working_for(self._agent, connection):
                await self._run(stream, call)
        except BaseException as error:
            if _is_stopped(error):
                raise
            stream.error(self._text_of(error))
            self._report(call, error)
            if isinstance(error, KeyboardInterrupt):
                raise
        finally:
            self._running -= 1

    async def _run(self, stream: RpcStream, call: RpcCall) -> None:
        method = self._table.find(call.method)
        arguments = method.check(call.args)
        if method.streaming:
            arguments.insert(0, stream)
        result = method.function(self._agent, *arguments)
        if isinstance(result, Awaitable):
            result = await result
        self._events.emit("rpc", {"method": method.name, "streaming": method.streaming})
        if not stream.closed:
            stream.end(result)

    def _text_of(self, error: BaseException) -> str:
        if isinstance(error, asyncio.CancelledError):
            return CANCELLED_ITSELF
        return public_text(error, self._ids)

    def _report(self, call: RpcCall, error: BaseException) -> None:
        payload: JsonObject = {"method": call.method, "error": type(error).__name__}
        if not isinstance(error, RametError):
            payload["error"] = own_words(error)
        self._events.emit("rpc:error", payload)


def _is_stopped(error: BaseException) -> bool:
    """Whether the call ends because its instance does, so that there is nobody to answer."""
    task = asyncio.current_task()
    cancelled = task is not None and task.cancelling() > 0
    return isinstance(error, asyncio.CancelledError | GeneratorExit) and cancelled


def _result(call_id: str, value: object, *, done: bool) -> str:
    try:
        return frames.rpc_result(call_id, value, done=done)
    except NotJson as error:
        raise ResultNotJson(f"The result is not JSON: {error}") from error
