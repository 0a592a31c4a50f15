"""What the scripted agents understand and say: no model, the same every time."""

import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NotRequired

from typing_extensions import TypedDict

from ramet.chat.recovery_options import ChatRecovery
from ramet.core.clock import SystemClock
from ramet.protocol.ui_message import UIMessage

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
DEFAULT_PACE = 20

RECOVERY: ChatRecovery | bool = os.environ.get("WIRE_RECOVERY") != "off"
"""Whether turns that are lost with the process go on in the next; a test can switch it off."""

_clock = SystemClock()


class ScriptedFailure(Exception):
    """A failure that the script asks for."""

    def __init__(self) -> None:
        super().__init__("scripted failure")


class Topic(TypedDict):
    """What a researcher is asked."""

    topic: str
    ms: NotRequired[int]
    fail: NotRequired[bool]


@dataclass(frozen=True, slots=True)
class Command:
    """A user's text taken apart: its first word, and the rest."""

    verb: str
    args: tuple[str, ...]

    def number(self, index: int, default: int) -> int:
        """The argument at `index` as a number."""
        return int(self.args[index]) if index < len(self.args) else default

    def topic(self) -> Topic:
        """The arguments of `research T [MS]` as a researcher's input."""
        topic = Topic(topic=self.args[0])
        if len(self.args) > 1:
            topic["ms"] = int(self.args[1])
        return topic


@dataclass(frozen=True, slots=True)
class Asked:
    """The last message of the user."""

    id: str
    text: str


def last_asked(messages: Sequence[UIMessage]) -> Asked:
    """What the user said last, from a transcript of UI messages."""
    for message in reversed(messages):
        parts = message.get("parts")
        if message.get("role") == "user" and isinstance(parts, list):
            texts = [
                str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part
            ]
            return Asked(str(message["id"]), "".join(texts))
    raise LookupError("The transcript has no message of the user")


def parse(text: str) -> Command:
    """Take a user's text apart."""
    verb, *args = text.split() or [""]
    return Command(verb, tuple(args))


def reported(asked: Asked) -> str:
    """What is answered to the notice that a run in the background has ended: its last lines."""
    *_, last = asked.text.split("\n\n")
    return f"Result: {last}"


async def pause(milliseconds: float) -> None:
    """Wait as long as the script says: clients watch this in real time."""
    await _clock.sleep(milliseconds / 1000)


async def numbered(prefix: str, count: int, milliseconds: int = 0) -> AsyncIterator[str]:
    """`w1 w2 … wN`, word by word with the space before each but the first."""
    for number in range(1, count + 1):
        if number > 1:
            await pause(milliseconds)
        yield f"{prefix}{number}" if number == 1 else f" {prefix}{number}"


async def once(text: str) -> AsyncIterator[str]:
    """The text in one piece."""
    yield text
