"""What people read in a terminal."""

import time
from collections.abc import Iterator

import pytest

from ramet.cli.tables import fields, moment, size, span, table, text
from ramet.core.json import JsonValue


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table(("A", "B"), [("one", "x"), ("1", "yy")]).splitlines() == [
        "A    B",
        "one  x",
        "1    yy",
    ]


def test_fields_stand_below_each_other() -> None:
    assert fields([("a", "1"), ("bcd", "")]) == "a    1\nbcd"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        ("", "-"),
        ("two\nlines", "two lines"),
        ("\x1b[31mred\x07", "[31mred"),
        ({"a": 1}, '{"a":1}'),
        ("0123456789abc", "012345678…"),
    ],
)
def test_a_value_stays_on_its_line(value: JsonValue, shown: str) -> None:
    assert text(value, 10) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(-5, "0.0s"), (1_240, "1.2s"), (59_900, "59.9s"), (61_000, "1m 1s"), (7_260_000, "2h 1m")],
)
def test_how_long_something_took(milliseconds: int, shown: str) -> None:
    assert span(1_000_000, 1_000_000 + milliseconds) == shown


def test_what_is_not_known_is_a_dash() -> None:
    assert (span(None, 1), moment(None)) == ("-", "-")


def test_sizes_are_told_in_kibibytes() -> None:
    assert size(2_097_152) == "2,048 KiB"


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A zone with a summer time, as the clock on the wall shows it."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_a_moment_says_how_far_its_clock_is_from_utc() -> None:
    assert moment(1_769_860_800_000) == "2026-01-31 13:00:00+01:00"
    assert moment(1_785_499_200_000) == "2026-07-31 14:00:00+02:00"


def test_a_moment_that_no_calendar_has_is_told_in_words() -> None:
    assert moment(10**15) == "after the year 9999"
    assert moment(-(10**15)) == "before the year 1"
