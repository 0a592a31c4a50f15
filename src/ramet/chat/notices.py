"""Tells a chat what becomes of the runs that its agent has let go of."""

from collections.abc import Callable
from typing import Final

from ramet.agent_tools.detachment import MilestoneMode
from ramet.agent_tools.records import Milestone, RunInfo, RunResult
from ramet.chat.feature import Chat
from ramet.chat.turns import TurnRequest
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject
from ramet.protocol import frames
from ramet.protocol.messages import asks_client, user_message
from ramet.protocol.ui_message import UIMessage

DEFAULT_SOURCE: Final = "detached-agent-tool"


class ChatNotices:
    """The notices of one chat: messages whose ids say what they tell of, so each comes once."""

    def __init__(self, chat: Callable[[], Chat]) -> None:
        self._chat = chat

    async def finished(self, run: RunInfo, result: RunResult[object]) -> None:
        """Tell of the end of a run, and have the agent answer that (AT-272, AT-274)."""
        text = await self._chat().ports.hooks.detached_completion(run, result)
        if not text:
            return
        key = f"detached-finish:{run.run_id}:{result.status}"
        metadata = {**_origin(run), "status": result.status}
        await self.ask(_message(key, text, metadata), noticed=_nothing)

    async def reached(
        self,
        run: RunInfo,
        milestone: Milestone,
        mode: MilestoneMode,
        *,
        noticed: Callable[[], object],
    ) -> None:
        """Tell of a milestone: by a message, or by a question that the agent answers (AT-275 …)."""
        text = await self._chat().ports.hooks.detached_milestone(run, milestone)
        key = f"detached-ms:{run.run_id}:{milestone.name}"
        message = _message(key, text, {**_origin(run), "milestone": milestone.name})
        if not text:
            noticed()
        elif mode == "react":
            await self.ask(message, noticed=noticed)
        else:
            self._narrate({**message, "role": "assistant"}, noticed)
        failpoint("detached.milestone_noticed")

    async def ask(self, message: UIMessage, *, noticed: Callable[[], object]) -> None:
        """Store a question with its turn in one commit, unless it is there; the turn runs later."""
        chat, key = self._chat(), str(message["id"])
        if key in chat.transcript:
            noticed()
            return

        def store(_: object) -> None:
            chat.transcript.put(message)
            noticed()

        request = TurnRequest(trigger="programmatic", store=store, message_ids=[key])
        live = chat.turns.accept(request)
        self._show(chat)
        chat.turns.enqueue(live)

    def _narrate(self, message: UIMessage, noticed: Callable[[], object]) -> None:
        chat = self._chat()
        with chat.transcript.changing():
            if str(message["id"]) not in chat.transcript:
                chat.transcript.put(message, after=_last_settled(chat))
            noticed()
        self._show(chat)

    @staticmethod
    def _show(chat: Chat) -> None:
        chat.ports.clients.broadcast_frame(frames.transcript(chat.transcript.json()))


def completion_text(run: RunInfo, result: RunResult[object]) -> str:
    """How the end of a run is told by default (AT-270)."""
    label = _label(run)
    match result.status:
        case "completed":
            told = f"finished.\n\n{result.summary}" if result.summary else "finished successfully."
            return f"{label} {told}"
        case "error":
            return f"{label} failed: {result.error}"
        case "aborted":
            return f"{label} was cancelled."
        case "interrupted" if result.reason == "budget-exceeded":
            return f"{label} ran out of time."
        case "interrupted":
            return f"{label} was interrupted: {result.error}"


def milestone_text(run: RunInfo, milestone: Milestone) -> str:
    """How a milestone is told by default."""
    told = f"{_label(run)} has reached {milestone.name!r}"
    return f"{told}: {milestone.message}" if milestone.message else f"{told}."


def _label(run: RunInfo) -> str:
    """The run by its class and id (AT-270), after what pages call it if that says more."""
    name = run.display.get("name") if isinstance(run.display, dict) else None
    if not isinstance(name, str) or _bare(name) in {"", _bare(run.agent_type)}:
        return f"Background run {run.agent_type} ({run.run_id})"
    return f"Background run {name.strip()} ({run.agent_type}, {run.run_id})"


def _bare(name: str) -> str:
    """A name without what tells `ResearchAgent` from "Research agent"."""
    return name.replace(" ", "").casefold()


def _origin(run: RunInfo) -> JsonObject:
    return {
        "source": run.notify_source or DEFAULT_SOURCE,
        "runId": run.run_id,
        "agentType": run.agent_type,
    }


def _message(key: str, text: str, metadata: JsonObject) -> UIMessage:
    return user_message(text, id=key, metadata=metadata)


def _last_settled(chat: Chat) -> str | None:
    """The message to put something behind: questions that wait, and asking answers, stay last.

    What stands behind a question would keep its turn from being taken up after a crash (CR-017).
    """
    open_ids = {each for live in chat.turns for each in live.plan.message_ids}
    messages = chat.transcript.all()
    if messages and asks_client(messages[-1]):
        open_ids.add(str(messages[-1]["id"]))
    while messages and str(messages[-1]["id"]) in open_ids:
        messages.pop()
    return str(messages[-1]["id"]) if messages else None


def _nothing() -> None:
    return None
