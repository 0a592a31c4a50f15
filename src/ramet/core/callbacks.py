"""Methods that are stored by name and called later: which may be, and how they are called."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeAlias

from ramet.errors import InvalidArguments, MethodNotFound

Callback: TypeAlias = Callable[..., object]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class CancelledInside(RuntimeError):
    """A callback ended as cancelled although nobody had cancelled it."""


@contextmanager
def exits_as_errors() -> Iterator[None]:
    """Run code of users in the block: what would end the server, or a task unheard, is an error.

    Cancellation and Ctrl-C pass.

    Raises:
        RuntimeError: In place of `SystemExit`, `GeneratorExit` and what else is no `Exception`.
    """
    task = _running_task()
    try:
        yield
    except (Exception, asyncio.CancelledError, KeyboardInterrupt):
        raise
    except GeneratorExit as error:
        if task is None or _running_task() is not task:
            raise  # the coroutine itself is being thrown away
        raise RuntimeError(_exit_text(error)) from error
    except BaseException as error:
        raise RuntimeError(_exit_text(error)) from error


def callback_name(agent: object, method: object, *, gives: int) -> str:
    """The name under which a method of `agent` is stored, to be called with `gives` arguments.

    Raises:
        MethodNotFound: The agent has no method of that name.
        InvalidArguments: It is no method of this agent, or cannot be called with so few arguments.
    """
    cls = type(agent).__name__
    name = method if isinstance(method, str) else getattr(method, "__name__", None)
    if not isinstance(method, str) and not _is_bound_to(agent, method):
        raise InvalidArguments(
            f"A callback is a method of this {cls} or its name, not {method!r}: "
            "only a name can be stored"
        )
    found = find_callback(agent, str(name))
    if found is None:
        raise MethodNotFound(f"{cls} has no method {name!r}")
    _check_arguments(found, gives=gives, name=f"{cls}.{name}")
    return str(name)


def find_callback(agent: object, name: str) -> Callback | None:
    """The method of that name; None when the agent's class has none."""
    if name.startswith("__") or not callable(getattr(type(agent), name, None)):
        return None
    found = getattr(agent, name, None)
    return found if callable(found) else None


async def run_callback(callback: Callback, arguments: Sequence[object]) -> object:
    """Call with as many of the arguments as are taken, and wait for what an async one returns.

    Raises:
        CancelledInside: It ended as cancelled by itself, which must not look like our own end.
        RuntimeError: It called `sys.exit`, or raised something else that is no error.
    """
    try:
        with exits_as_errors():
            result = callback(*arguments[: _most_arguments(callback)])
            return await result if isinstance(result, Awaitable) else result
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise CancelledInside("It ended as cancelled, but nobody had cancelled it") from error


def _exit_text(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"sys.exit({error.code!r}) was called in an agent"
    return f"{type(error).__name__} was raised in an agent"


def _running_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _is_bound_to(agent: object, method: object) -> bool:
    name = getattr(method, "__name__", None)
    if getattr(method, "__self__", None) is not agent or not isinstance(name, str):
        return False
    return bool(getattr(agent, name, None) == method)


def _most_arguments(callback: Callback) -> int | None:
    """How many positional arguments it takes; None for any number, and where nobody can tell."""
    try:
        parameters = _parameters_of(callback)
    except ValueError:
        return None
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return None
    return sum(parameter.kind in _POSITIONAL for parameter in parameters)


def _check_arguments(callback: Callback, *, gives: int, name: str) -> None:
    missing = [
        parameter.name
        for position, parameter in enumerate(_parameters_of(callback))
        if parameter.default is parameter.empty
        and (
            parameter.kind is parameter.KEYWORD_ONLY
            or (parameter.kind in _POSITIONAL and position >= gives)
        )
    ]
    if missing:
        raise InvalidArguments(
            f"{name} cannot be a callback: it is called with at most {gives} arguments, "
            f"so nothing is there for {missing[0]!r}"
        )


def _parameters_of(callback: Callback) -> Sequence[inspect.Parameter]:
    if inspect.ismethod(callback):
        parameters = _parameters(callback.__func__)
        takes_all = parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
        return parameters if takes_all else parameters[1:]
    return tuple(inspect.signature(callback).parameters.values())


@lru_cache(maxsize=4096)
def _parameters(function: Callback) -> tuple[inspect.Parameter, ...]:
    """Those of a method of a class, `self` included; they are asked for at every call."""
    return tuple(inspect.signature(function).parameters.values())
