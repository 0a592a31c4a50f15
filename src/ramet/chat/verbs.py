"""What users call on a chat agent, and the hooks they override; shared by both families."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from ramet.agent_tools.records import (
    ChildRun,
    Inspection,
    Milestone,
    RunInfo,
    RunResult,
    StoredChunk,
)
from ramet.chat.child import default_input
from ramet.chat.child_tail import ChildTail
from ramet.chat.concurrency import MessageConcurrency
from ramet.chat.feature import Chat
from ramet.chat.notices import completion_text, milestone_text
from ramet.chat.progress import ReportOutcome, checked_report
from ramet.chat.recovery_options import ChatRecovery, ChatRecoveryContext
from ramet.chat.saving import Given, run_continued, run_saved
from ramet.chat.stream_reader import read_stored_run
from ramet.chat.turn import ChatErrorContext, ChatResult, TurnResult
from ramet.core.durations import Duration
from ramet.core.json import JsonValue
from ramet.core.signals import AbortSignal
from ramet.protocol.ui_message import UIMessage

F = TypeVar("F", bound=Callable[..., object])


def through_stubs(method: F) -> F:
    """Let other agents call a method that gives an async iterator but is not async itself."""
    method.__dict__["__ramet_stub_callable__"] = True
    return method


class ChatVerbs:
    """The chat half of an agent: each method hands over to the chat feature."""

    _ramet_chat: Chat

    message_concurrency: MessageConcurrency = "queue"
    """What becomes of a client's question while another is running or waiting.

    "queue" answers all in order, "latest" only the newest of those that wait, "merge" those that
    wait together; "drop" gives the new one back; `Debounce(seconds)` answers the newest once none
    has come for a while. What code starts, and a regenerated answer, always queues.
    """

    chat_recovery: ChatRecovery | bool = ChatRecovery()
    """How hard a turn that was lost with the process is brought to its end; False ends it (D4).

    Read before `on_start`.
    """
    max_persisted_messages: int | None = None
    """How many messages are kept: after a turn the oldest go. None keeps all."""
    chat_stream_stall_timeout: Duration = 0
    """Seconds without a chunk after which an answer is taken up anew; 0 waits without end."""

    read_stored_run = staticmethod(read_stored_run)
    """Reads a run's items from a stored agent of this class without opening it."""

    @property
    def messages(self) -> list[UIMessage]:
        """The transcript: UI messages, in order. What is returned is a copy."""
        return self._ramet_chat.transcript.all()

    async def save_messages(
        self, messages: Given, *, signal: AbortSignal | None = None
    ) -> TurnResult:
        """Append messages and answer them in a turn of their own; returns how that ended.

        A text is one message of the user. A message whose id is known replaces the stored one.
        Aborting the signal, or cancelling the caller, cancels the turn.

        Raises:
            TurnInsideTurn: Called from inside a turn of the same agent.
            UnknownModelResult: A message lacks its id, its role or its parts; nothing was stored.
        """
        return await run_saved(self._ramet_chat, messages, signal)

    async def continue_last_turn(self, *, signal: AbortSignal | None = None) -> TurnResult:
        """Go on with the last answer in a turn of its own; returns how that ended.

        What comes is added to the stored message. When the last message is no answer nothing is
        run: the status is "skipped" and the request id empty.

        Raises:
            TurnInsideTurn: Called from inside a turn of the same agent.
        """
        return await run_continued(self._ramet_chat, signal)

    async def clear_messages(self) -> None:
        """Forget the chat: turns end, messages and stored answers go, clients are told."""
        self._ramet_chat.clear()

    def cancel_chat(self, request_id: str) -> None:
        """End a turn early and keep what there is of its answer; unknown ids change nothing."""
        self._ramet_chat.turns.cancel(request_id)

    def cancel_all_chats(self) -> None:
        """End every turn early, those that wait too."""
        self._ramet_chat.turns.cancel_all()

    def has_pending_interaction(self) -> bool:
        """Whether the last answer waits for a person's approval or a tool of the browser."""
        return self._ramet_chat.has_pending_interaction()

    async def wait_until_stable(
        self,
        timeout: Duration | None = None,  # noqa: ASYNC109 - the clock is ours, its time-out too
    ) -> bool:
        """Wait until no turn runs or waits, and nobody is to approve or answer a tool call.

        Returns:
            False when that takes longer than `timeout` seconds.
        """
        return await self._ramet_chat.stable(timeout)

    async def report_progress(
        self,
        *,
        fraction: float | None = None,
        message: str | None = None,
        phase: str | None = None,
        milestone: str | None = None,
        data: object = None,
        persist: bool = False,
    ) -> ReportOutcome:
        """Tell the parent, and whoever watches, how far the run is that this turn works for.

        Returns:
            "emitted"; "coalesced" when the last signal was less than 200 ms ago, so that this one
            is sent a moment later unless another overtakes it; "inactive" outside of a run.

        Raises:
            ValueError: The fraction is not finite, the milestone has no name, or the data is not
                JSON.
        """
        return self._ramet_chat.report(
            checked_report(
                fraction=fraction,
                message=message,
                phase=phase,
                milestone=milestone,
                data=data,
                persist=persist,
            )
        )

    def agent_tool_child_run(self, run_id: str) -> ChildRun:
        """What a run was asked, and the messages that it has added; raises LookupError."""
        return self._ramet_chat.child.run_of(run_id)

    def on_chat_response(self, result: ChatResult) -> object:
        """Run after a turn that gave a message, once it has left the queue; may be async."""

    def on_chat_error(self, error: BaseException, ctx: ChatErrorContext) -> object:
        """Run when a turn failed, before clients are told; may be async.

        A returned text, or the message of a returned exception, is shown instead of the error's.
        """

    def on_chat_recovery(self, ctx: ChatRecoveryContext) -> object:
        """Say what is to become of a turn that was lost; may be async.

        Return a `ChatRecoveryDecision`, or None to keep what there is and go on. Raising, returning
        anything else and taking longer than `ChatRecovery.hook_timeout` end the turn with an error.
        After a crash in it, it is asked again.
        """

    def format_agent_tool_input(
        self, input: JsonValue, run: ChildRun
    ) -> str | UIMessage | Mapping[str, object]:
        """Give the message that a run begins with, as a text or a UI message; may be async."""
        return default_input(input, run)

    def get_agent_tool_output(self, run_id: str) -> object:
        """Give the output of a run that has completed; may be async."""
        return self._ramet_chat.child.default_output(run_id)

    def get_agent_tool_summary(self, run_id: str, output: object) -> object:
        """Give the summary of a run that has completed; may be async."""
        return self._ramet_chat.child.default_summary(run_id, output)

    def format_detached_completion(self, run: RunInfo, result: RunResult[object]) -> object:
        """Give the message by which the chat is told of the end of a detached run; may be async.

        For runs with `notify`. An empty text tells nothing.
        """
        return completion_text(run, result)

    def format_detached_milestone(self, run: RunInfo, milestone: Milestone) -> object:
        """Give the message by which the chat is told of a milestone; may be async.

        For those in `on_milestones`. An empty text tells nothing.
        """
        return milestone_text(run, milestone)

    async def start_agent_tool_run(
        self, input: object, *, run_id: str, signal: AbortSignal | None = None
    ) -> Inspection:
        """Begin a run for a parent and return at once; known runs are only looked at."""
        return await self._ramet_chat.child.start(input, run_id=run_id, signal=signal)

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        """End a run early; harmless when it has ended."""
        self._ramet_chat.child.cancel(run_id, reason)

    async def inspect_agent_tool_run(self, run_id: str) -> Inspection | None:
        """Give what is known of a run; None when nothing is yet."""
        return self._ramet_chat.child.inspect(run_id)

    async def get_agent_tool_chunks(
        self, run_id: str, *, after_sequence: int = -1, limit: int | None = None
    ) -> list[StoredChunk]:
        """Give the stored items of a run after a chunk index."""
        return self._ramet_chat.child.chunks(run_id, after=after_sequence, limit=limit)

    @through_stubs
    def tail_agent_tool_run(
        self, run_id: str, *, after_sequence: int = -1, signal: AbortSignal | None = None
    ) -> ChildTail:
        """Follow the items of a run after a chunk index, until it ends."""
        return self._ramet_chat.child.tail(run_id, after=after_sequence, signal=signal)
