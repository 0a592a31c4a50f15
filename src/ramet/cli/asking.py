"""What the commands that ask a data directory share: their options, and how an answer is shown."""

import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import click

from ramet.app.app import DATA_VARIABLE, DEFAULT_DATA
from ramet.cli.tables import text
from ramet.control.asking import ask
from ramet.control.requests import MOST_LISTED, MOST_SKIPPED, Request
from ramet.core.clock import SystemClock
from ramet.core.json import JsonObject, JsonValue, dump_indented
from ramet.errors import DataDirectoryNotFound

CLOCK: Final = SystemClock()
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_AGE: Final = re.compile(r"(\d+)([smhd])")

data_option = click.option(
    "--data",
    type=click.Path(path_type=Path),
    help=f"Where the agents are stored; ${DATA_VARIABLE} or ./{DEFAULT_DATA} by default.",
)
agent_option = click.option(
    "--agent", metavar="CLASS/NAME", help="Whose: CLASS/NAME, or CLASS/NAME/sub/CLASS/NAME."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON, for programs.")
limit_option = click.option(
    "--limit",
    type=click.IntRange(1, MOST_LISTED),
    default=50,
    show_default=True,
    help="How many are shown.",
)
skip_option = click.option(
    "--skip",
    type=click.IntRange(0, MOST_SKIPPED),
    default=0,
    show_default=True,
    help="How many of the first are left out.",
)


def answer_to(request: Request, *, data: Path | None) -> JsonObject:
    """Ask the host of a data directory, or its files where none runs; see `control.asking.ask`."""
    try:
        return ask(_directory(data), request, clock=CLOCK)
    except DataDirectoryNotFound as error:
        raise DataDirectoryNotFound(f"{error}; name one with --data or {DATA_VARIABLE}") from error


def say_if_nobody_works(data: Path | None) -> None:
    """Tell people that what they see as under way stands still."""
    click.echo(
        f"No server runs on {_directory(data).absolute()}; "
        "what was under way goes on at the next start",
        err=True,
    )


def say_what_is_missing(answer: JsonObject) -> None:
    """Tell of what could not be read for a list."""
    unreadable = answer["unreadable"]
    for reason in unreadable if isinstance(unreadable, list) else ():
        click.echo(f"Left out: {text(reason)}", err=True)


def show(answer: JsonObject, write: Callable[[JsonObject], str], *, as_json: bool) -> None:
    """Write an answer to standard output."""
    click.echo(dump_indented(answer) if as_json else write(answer))


def objects(value: JsonValue) -> list[JsonObject]:
    """The objects in a list of an answer."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def part(answer: JsonObject, key: str) -> JsonObject:
    """The object under a key of an answer; an empty one where there is none."""
    found = answer.get(key)
    return found if isinstance(found, dict) else {}


def _directory(data: Path | None) -> Path:
    return data or Path(os.environ.get(DATA_VARIABLE) or DEFAULT_DATA)


class Age(click.ParamType[int]):
    """An age such as `30d`, or the moment it reaches back to: epoch milliseconds."""

    name = "age"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read what was typed in."""
        written = str(value)
        age = _AGE.fullmatch(written)
        try:
            if age is not None:
                passed = timedelta(**{_UNITS[age[2]]: int(age[1])})
                return max(0, CLOCK.now_ms() - passed // timedelta(milliseconds=1))
            moment = datetime.fromisoformat(written)
        except (ValueError, OverflowError):
            self.fail(f"{written!r} is no age like 45m, 12h or 30d, and no date and time")
        if moment.tzinfo is None:
            self.fail(f"{written!r} does not say its time zone: write {written}Z, or +02:00 for Z")
        return max(0, round(moment.timestamp() * 1000))
