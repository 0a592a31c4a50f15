"""Makes sense of what a command prints, line by line, in bounded memory."""

import re
from collections import deque
from dataclasses import dataclass, field

LONGEST_LINE = 400
MOST_LINES = 40

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_PERCENT = re.compile(r"\[\s*(\d{1,3})%\]\s*$")
_COLLECTED = re.compile(r"\bcollected (\d+) (?:items?|files?)\b")
_FAILED = re.compile(r"\b(?:FAILED|ERROR)\b")


class LineSplitter:
    """Cuts a stream of bytes into lines of text; what a line has too much is left out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, block: bytes) -> list[str]:
        """The lines that a block completes."""
        *whole, rest = block.split(b"\n")
        lines = []
        for piece in whole:
            self._add(piece)
            lines.append(self._taken())
        self._add(rest)
        return lines

    def end(self) -> list[str]:
        """The last line, if it was not completed."""
        return [self._taken()] if self._rest else []

    def _add(self, piece: bytes) -> None:
        # Four bytes a character at most: longer lines are cut once more as text.
        room = 4 * LONGEST_LINE - len(self._rest)
        self._rest += piece[:room]

    def _taken(self) -> str:
        text = self._rest.decode(errors="replace").rstrip()
        self._rest = b""
        return _ESCAPES.sub("", text)[:LONGEST_LINE]


@dataclass(slots=True, kw_only=True)
class CommandOutput:
    """What is known of a command by its output so far."""

    lines: int = 0
    """How many lines there were."""
    last: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    fraction: float | None = None
    """How far it is, by the percentages that it prints."""
    collected: int | None = None
    """How many items it has to go through, once it says so."""
    failure: str | None = None
    """The first line that tells of a failure."""

    def take(self, line: str) -> None:
        """Take note of a line."""
        self.lines += 1
        self.last.append(line)
        if percent := _PERCENT.search(line):
            self.fraction = min(int(percent[1]), 100) / 100
        if self.collected is None and (collected := _COLLECTED.search(line)):
            self.collected = int(collected[1])
        if self.failure is None and _FAILED.search(line):
            self.failure = line
