"""What a caller outside is told of an exception: the user's own words, never the insides (D26)."""

import logging
import traceback

from ramet.core.ids import Ids
from ramet.core.json import without_surrogates
from ramet.errors import RametError

UNKNOWN_ERROR = "Unknown error occurred"

_log = logging.getLogger("ramet.errors")

_INSIDES = frozenset(
    {
        "aiohttp",
        "anthropic",
        "anyio",
        "asyncio",
        "google",
        "h11",
        "httpcore",
        "httpx",
        "openai",
        "orjson",
        "pydantic_ai",
        "pydantic_core",
        "ramet",
        "sqlite3",
        "starlette",
        "uvicorn",
        "websockets",
    }
)


def public_text(error: BaseException, ids: Ids) -> str:
    """The one sentence a client or a model may see.

    An exception of the user's own code (and of Python) speaks for itself. One from a library or
    from ramet's insides becomes a fixed sentence with an id; the log has the whole under that id.
    Whatever is told, the log has the traceback, unless ramet refused what the caller asked for.
    """
    if isinstance(error, RametError) and error.public:
        return own_words(error)
    if type(error).__module__.partition(".")[0] in _INSIDES:
        error_id = ids.error_id()
        _note(logging.ERROR, f"Internal error {error_id}", error)
        return f"Something went wrong inside the server (error {error_id})"
    text = own_words(error)
    _note(logging.WARNING, f"A caller was told: {text or UNKNOWN_ERROR}", error)
    return text or UNKNOWN_ERROR


def own_words(error: BaseException) -> str:
    """What an exception says, as text that can be sent and stored; never raises."""
    try:
        return without_surrogates(str(error))
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide that something went wrong
        return type(error).__name__


def _note(level: int, text: str, error: BaseException) -> None:
    """Log an error with its traceback, as text where no file could take it as it is."""
    trace = "".join(traceback.format_exception(error))
    if without_surrogates(trace) == trace:
        _log.log(level, "%s", text, exc_info=error)
    else:
        _log.log(level, "%s\n%s", text, without_surrogates(trace))
