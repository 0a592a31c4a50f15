"""Gives memory back to the system that was freed by agents that have gone.

SQLite's caches lie scattered in the C heap, which by itself keeps what is freed: four fifths of
what an agent took.
"""

import ctypes
from collections.abc import Callable


def _trim_of(library: object) -> Callable[[int], object] | None:
    trim = getattr(library, "malloc_trim", None)
    return trim if callable(trim) else None


try:
    _trim = _trim_of(ctypes.CDLL(None))
except (OSError, TypeError):  # a system without a C library that can be asked
    _trim = None


def give_back() -> None:
    """Return free memory to the system, where its C library can."""
    if _trim is not None:
        _trim(0)
