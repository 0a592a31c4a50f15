"""Responses that no server could send are refused where they are made."""

import pytest

from ramet import Response


@pytest.mark.parametrize("status", [0, 100, 199, 600, 9999, -1])
def test_a_status_that_cannot_be_sent_is_named(status: int) -> None:
    with pytest.raises(ValueError, match=f"200 to 599, not {status}"):
        Response(status=status)


@pytest.mark.parametrize(
    ("name", "value"),
    [("x-note", "a\r\nset-cookie: b"), ("x-note", "a\nb"), ("x note", "a"), ("", "a"), ("x", "→")],
)
def test_a_header_that_cannot_be_sent_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        Response(headers={name: value})


def test_what_can_be_sent_is_accepted() -> None:
    given = {"Content-Type": "text/html; charset=utf-8", "x-empty": "", "x-latin": "é"}
    assert Response("", status=599, headers=given).headers == given
