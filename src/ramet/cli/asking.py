"""What the commands that ask a data directory share: their options, and how an answer is shown."""

import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import click

from ramet.app.app import DATA_VARIABLE, DEFAULT_DATA
from ramet.control.asking import ask
from ramet.control.requests import Request
from ramet.core.clock import SystemClock
from ramet.core.json import JsonObject, JsonValue, dump_indented

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


def answer_to(request: Request, *, data: Path | None) -> JsonObject:
    """Ask the host of a data directory, or its files where none runs; see `control.asking.ask`."""
    return ask(data or Path(os.environ.get(DATA_VARIABLE) or DEFAULT_DATA), request, clock=CLOCK)


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
