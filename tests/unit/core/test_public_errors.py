"""What callers are told of errors, and what the log has of them."""

import logging

import pytest

from ramet.core.ids import Ids
from ramet.core.public_errors import public_text
from ramet.errors import InvalidArguments


def division() -> Exception:
    """An error that was really raised, with a traceback."""
    try:
        return ValueError(str(1 / 0))
    except ZeroDivisionError as error:
        return error


def test_the_log_has_the_traceback_of_what_a_caller_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert public_text(division(), Ids()) == "division by zero"
    assert "A caller was told: division by zero" in caplog.text
    assert "in division" in caplog.text


def test_what_ramet_refuses_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert public_text(InvalidArguments("no"), Ids()) == "no"
    assert not caplog.records


def test_half_an_emoji_in_an_error_does_not_keep_it_out_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert public_text(ValueError("x\ud800"), Ids()) == "x\ufffd"
    assert caplog.text.encode().count("ValueError: x\ufffd".encode()) == 1
