"""Arguments and results of calls to another root, copied as the annotations say (D17)."""

import inspect
from collections.abc import Callable
from types import GenericAlias
from typing import Any, get_type_hints

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from ramet.core.adapters import adapter_of
from ramet.core.ports import Call
from ramet.errors import InvalidArguments, ResultNotJson


class ByValue:
    """Copies what crosses between two root agents, the way the wire would."""

    def __init__(self, method: Callable[..., object]) -> None:
        self._name = getattr(method, "__qualname__", repr(method))
        self._signature = inspect.signature(method)
        self._hints = get_type_hints(method)

    def arguments(self, call: Call) -> Call:
        """The call with copies of its arguments.

        Raises:
            InvalidArguments: They do not fit the signature, or one cannot be encoded by its type.
        """
        try:
            bound = self._signature.bind(*call.args, **call.kwargs)
        except TypeError as error:
            raise InvalidArguments(f"Wrong arguments for {self._name}: {error}") from error
        for name, value in bound.arguments.items():
            try:
                bound.arguments[name] = self._copied(name, value)
            except (ValidationError, PydanticSerializationError) as error:
                raise InvalidArguments(
                    f"Wrong arguments for {self._name}: {name} cannot be sent as "
                    f"{self._hints.get(name, Any)}: {error}"
                ) from error
        return Call(method=call.method, args=bound.args, kwargs=bound.kwargs)

    def result(self, value: object) -> object:
        """A copy of the result; raises `ResultNotJson` when it cannot be sent."""
        try:
            return self._copied("return", value)
        except (ValidationError, PydanticSerializationError) as error:
            raise ResultNotJson(f"The result of {self._name} cannot be sent: {error}") from error

    def _copied(self, name: str, value: object) -> object:
        form: Any = self._hints.get(name, Any)
        parameter = self._signature.parameters.get(name)
        if parameter is not None and parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            form = GenericAlias(tuple, (form, ...))
        elif parameter is not None and parameter.kind is inspect.Parameter.VAR_KEYWORD:
            form = GenericAlias(dict, (str, form))
        adapter = adapter_of(form)
        return adapter.validate_json(adapter.dump_json(value))
