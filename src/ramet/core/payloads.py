"""What users hand over to be stored: as JSON text, refused at the call when it is none."""

import reprlib

from ramet.core.json import NotJson, dump_strict


def dump_payload(value: object, *, what: str) -> str:
    """The JSON text of a value that is to be stored.

    Raises:
        NotJson: JSON cannot carry it; the message names the value and what it was for.
    """
    try:
        return dump_strict(value)
    except NotJson as error:
        raise NotJson(f"{what} is not JSON: {reprlib.repr(value)} ({error})") from error
