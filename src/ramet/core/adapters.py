"""Validators of types, each built once: building one takes half a millisecond."""

from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter


@lru_cache(maxsize=1_024)
def _cached(form: Any, written: str) -> TypeAdapter[Any]:
    del written  # `int | str` equals `str | int`, but is tried in another order
    return TypeAdapter(form)


def adapter_of(form: Any) -> TypeAdapter[Any]:
    """The validator of a type that pydantic can validate."""
    try:
        hash(form)
    except TypeError:  # such as `Annotated[int, []]`
        return TypeAdapter(form)
    return _cached(form, repr(form))
