"""What a client was shown, taken from the frames it received in the order they came."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ramet.core.json import JsonObject, loads_object

RUN_FRAME = "agent-tool-event"
CHAT_FRAME = "cf_agent_use_chat_response"
TERMINAL_KINDS = frozenset({"finished", "error", "aborted", "interrupted"})
PROGRESS = "data-agent-progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChunk:
    """One chunk of an answer."""

    seq: int | None
    """Its index; None for what stands in an answer without one, as milestones do."""
    body: str

    @property
    def transient(self) -> bool:
        """Whether it was meant for the moment only."""
        return _is_progress(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFrame:
    """One frame of a run."""

    number: int
    event: JsonObject

    @property
    def kind(self) -> str:
        """What happened."""
        return str(self.event.get("kind"))

    @property
    def body(self) -> str | None:
        """The chunk that it carries, if it does."""
        body = self.event.get("body")
        return body if self.kind == "chunk" and isinstance(body, str) else None

    @property
    def transient(self) -> bool:
        """Whether it was meant for the moment only."""
        return self.body is not None and _is_progress(self.body)

    @property
    def terminal(self) -> bool:
        """Whether it says how the run ended."""
        return self.kind in TERMINAL_KINDS


@dataclass(slots=True)
class Seen:
    """Everything one connection was shown: by request, and by run."""

    chunks: dict[str, list[ShownChunk]] = field(default_factory=dict)
    ends: dict[str, list[JsonObject]] = field(default_factory=dict)
    """The final frames of each request; there should be one."""
    runs: dict[str, list[RunFrame]] = field(default_factory=dict)

    @property
    def requests(self) -> list[str]:
        """The requests that anything was shown of."""
        return list({**dict.fromkeys(self.chunks), **dict.fromkeys(self.ends)})

    def terminals(self, run_id: str) -> list[RunFrame]:
        """The frames that said how a run ended."""
        return [frame for frame in self.runs.get(run_id, []) if frame.terminal]

    def outcome(self, request_id: str) -> str | None:
        """How a request ended, as far as its final frame says."""
        ends = self.ends.get(request_id, [])
        return str(ends[0].get("outcome")) if ends and "outcome" in ends[0] else None


def seen_in(frames: Iterable[JsonObject]) -> Seen:
    """Sort the frames of one connection."""
    seen = Seen()
    for frame in frames:
        if frame.get("type") == RUN_FRAME:
            _add_run_frame(seen, frame)
        elif frame.get("type") == CHAT_FRAME:
            _add_chat_frame(seen, frame)
    return seen


def stored_parts(body: str) -> Iterator[str]:
    """The text of a chunk, when it is a piece of text or reasoning."""
    chunk = loads_object(body) or {}
    if chunk.get("type") in {"text-delta", "reasoning-delta"}:
        yield str(chunk.get("delta"))


def _add_run_frame(seen: Seen, frame: JsonObject) -> None:
    event, number = frame.get("event"), frame.get("sequence")
    if isinstance(event, dict) and isinstance(number, int):
        shown = RunFrame(number=number, event=event)
        seen.runs.setdefault(str(event.get("runId")), []).append(shown)


def _add_chat_frame(seen: Seen, frame: JsonObject) -> None:
    request_id, body, seq = str(frame.get("id")), str(frame.get("body")), frame.get("seq")
    if frame.get("done"):
        seen.ends.setdefault(request_id, []).append(frame)
    elif body and not frame.get("error"):
        chunk = ShownChunk(seq=seq if isinstance(seq, int) else None, body=body)
        seen.chunks.setdefault(request_id, []).append(chunk)


def _is_progress(body: str) -> bool:
    chunk = loads_object(body) or {}
    return chunk.get("type") == PROGRESS and bool(chunk.get("transient"))
