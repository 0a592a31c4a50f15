"""Stubs: an agent elsewhere, whose async methods are called as if it stood here."""

import inspect
from collections.abc import Callable
from typing import TypeVar

from ramet.core.paths import AgentPath
from ramet.core.ports import Call, Caller
from ramet.errors import MethodNotFound

A = TypeVar("A")


class Stub:
    """Stands for an agent: `await stub.method(…)` runs the method there, opening it when need be.

    It holds nothing of the agent and may be kept; a call to an agent that was stopped meanwhile
    opens it again.
    """

    def __init__(self, path: AgentPath, cls: type, caller: Caller) -> None:
        self._path = path
        self._cls = cls
        self._caller = caller

    @property
    def path(self) -> AgentPath:
        """Where the agent stands."""
        return self._path

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name.startswith("_"):
            raise AttributeError(name)
        declared = getattr(self._cls, name, None)
        if not callable(declared):
            raise MethodNotFound(f"Method {name} of {self._cls.__name__} does not exist")

        def call(*args: object, **kwargs: object) -> object:
            request = Call(method=name, args=args, kwargs=kwargs)
            if inspect.isasyncgenfunction(declared):
                return self._caller.stream(self._path, request)
            return self._caller.call(self._path, request)

        return call

    def __repr__(self) -> str:
        return f"<stub of {self._path}>"


def as_instance(cls: type[A], stub: Stub) -> A:
    """Give a stub the type of the class it stands for, so that editors know its methods."""
    del cls
    return stub  # type: ignore[return-value] # a stub answers to the async methods of the class
