"""What the two families of chat agents do differently, as values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ramet.core.json import JsonValue, dumps
from ramet.protocol.messages import text_of
from ramet.protocol.run_events import ABSENT, Absent
from ramet.protocol.ui_message import UIMessage

Output: TypeAlias = "JsonValue | Absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFamily:
    """The rules of one family."""

    prunes_on_submit: bool
    """Whether stored messages that a submitted list lacks are deleted."""
    takes_transcripts: bool
    """Whether a transcript that a client changed by itself is stored."""
    joins_questions: bool
    """Whether questions that are answered together become one message (TQ-019)."""
    resumes_steps: bool
    """Whether a lost answer goes on inside its last step; else what was open in it is closed."""
    runs_approved: bool
    """Whether all tools that need an approval run here; else those of the page may, too."""
    tells_abort_reason: bool
    """Whether the inspection of a cancelled run carries the reason as its error."""
    child_output: Callable[[Sequence[UIMessage]], Output]
    """The output of a run from the assistant messages that it added."""
    child_summary: Callable[[Sequence[UIMessage], Output], str]
    """The summary of a run from those messages and its output."""


def latest_text(messages: Sequence[UIMessage]) -> str:
    """The text of the latest message."""
    return text_of(messages[-1], separator="") if messages else ""


def output_text(output: Output) -> str:
    """An output in words: a string as it is, anything else as JSON; empty without one."""
    if output is ABSENT or output is None:
        return ""
    return output if isinstance(output, str) else dumps(output)


def _latest_output(messages: Sequence[UIMessage]) -> Output:
    return latest_text(messages) or ABSENT


def _output_then_latest(messages: Sequence[UIMessage], output: Output) -> str:
    return output_text(output) or latest_text(messages)


def _no_output(_: Sequence[UIMessage]) -> Output:
    return ABSENT


def _first_then_output(messages: Sequence[UIMessage], output: Output) -> str:
    first = text_of(messages[0], separator="\n") if messages else ""
    return first or output_text(output)


AI_CHAT = ChatFamily(
    prunes_on_submit=True,
    takes_transcripts=True,
    joins_questions=True,
    resumes_steps=False,
    runs_approved=False,
    tells_abort_reason=False,
    child_output=_latest_output,
    child_summary=_output_then_latest,
)
"""`AIChatAgent`: the client's list is the transcript; a run's output is its last text (AT-346)."""

THINK = ChatFamily(
    prunes_on_submit=False,
    takes_transcripts=False,
    joins_questions=False,
    resumes_steps=True,
    runs_approved=True,
    tells_abort_reason=True,
    child_output=_no_output,
    child_summary=_first_then_output,
)
"""`Think`: the server's list is the transcript; a run's summary is its first text (AT-083)."""
