"""How the assistant is told of what it has let go of, in words that the offline rules read too."""

import re
from dataclasses import dataclass

import ramet
from ramet.core.json import JsonObject

_LEAD = "In the background: "
_DONE = "has finished"
_NOTICE = re.compile(
    rf"{_LEAD}(?P<title>.+?) (?:(?P<done>{_DONE})|did not finish: (?P<failure>[^\n]*))\."
    r"(?:\n\n(?P<found>.*))?",
    re.DOTALL,
)
_LONGEST_TITLE = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """That a run in the background has ended."""

    title: str
    found: str = ""
    """What came of it, in Markdown."""
    failure: str | None = None
    """Why nothing came of it; None when something did."""


def shown_as(title: str, icon: str) -> JsonObject:
    """How a run in the background is displayed; the page's tray knows it by this."""
    short = title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"
    return {"name": short, "icon": icon, "background": True}


def finish_text(run: ramet.RunInfo, result: "ramet.RunResult[object]") -> str:
    """The message for the end of a run; empty for one that a person has cancelled."""
    if result.status == "aborted":
        return ""
    lead = f"{_LEAD}{title_of(run)}"
    if result.status == "completed":
        return f"{lead} {_DONE}.\n\n{result.summary or ''}".rstrip()
    why = "it ran out of time" if result.reason == "budget-exceeded" else result.error
    return f"{lead} did not finish: {' '.join((why or 'nobody knows why').split())}."


def milestone_text(run: ramet.RunInfo, milestone: ramet.Milestone) -> str:
    """The message for a milestone of a run."""
    told = milestone.message or milestone.name.replace("-", " ")
    return f"{_LEAD}{title_of(run)} — {told}"


def read_notice(text: str) -> Notice | None:
    """What a message tells of the end of a run; None when it is no such message."""
    match = _NOTICE.fullmatch(text)
    if match is None:
        return None
    return Notice(
        title=match["title"], found=(match["found"] or "").strip(), failure=match["failure"]
    )


def title_of(run: ramet.RunInfo) -> str:
    """The name that a run is shown under."""
    name = run.display.get("name") if isinstance(run.display, dict) else None
    return name if isinstance(name, str) else run.agent_type
