"""Durable submissions: messages that are stored at once and answered later (SB-001 …)."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime

from ramet.chat.feature import Chat
from ramet.chat.live_turn import TurnPlan
from ramet.chat.saving import Given, given_messages
from ramet.chat.turns import TurnRequest
from ramet.core.current import current_agent, working_for
from ramet.core.failpoints import failpoint
from ramet.core.json import JsonObject
from ramet.core.listing import bound_ms, clamped
from ramet.core.payloads import dump_payload
from ramet.errors import InvalidArguments
from ramet.fibers.policy import check_id
from ramet.protocol import frames
from ramet.protocol.messages import trailing_user_ids
from ramet.protocol.ui_message import UIMessage
from ramet.think.submission_records import (
    UNREADABLE,
    End,
    Submission,
    SubmitResult,
    listed,
    the_one,
)
from ramet.think.submission_recovery import InterruptedSubmissions
from ramet.think.submission_store import SubmissionStore

DRAIN_SUBMISSIONS = "_drainThinkSubmissions"
"""The internal handler that goes on with submissions, should a crash have left some."""
RESUME_MS = 30_000
"""While something waits the agent is woken no further away than this: what a crash costs."""
MOST_LISTED = 100
MOST_DELETED = 500
ID_LENGTH = 16
CANCELLED = "The submission was cancelled"
CLEARED = "The chat was cleared before the submission was answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionPorts:
    """What submissions need of their surroundings."""

    chat: Chat
    hook: Callable[[Submission], object]
    """The user's `on_submission_status`, which may be a coroutine function."""
    wake: Callable[[str, int | None], object]
    """Has a handler called at a moment, in place of the one before; None for never."""
    recovery_owns: Callable[[str], bool]
    """Whether chat recovery goes on with the turn of a request (SB-013)."""
    recovery_busy: Callable[[], bool]
    """Whether there are lost turns that have not gone on yet."""


class Submissions:
    """The submissions of one agent.

    They run one at a time, the oldest first, each in a turn of the chat's queue. The messages are
    added when the turn's slot comes, in the commit that records the turn: one that is called off
    before has added nothing.
    """

    def __init__(self, ports: SubmissionPorts) -> None:
        self._ports = ports
        self._chat = ports.chat
        self._context = ports.chat.ports.context
        self._store = SubmissionStore(self._context.database)
        self._due = False
        self._promised = False
        self._draining = False
        self._announcing = 0
        self._telling = 0
        self._interrupted = InterruptedSubmissions(ports.chat, self._store, ports.recovery_owns)
        self._held = False

    def busy(self) -> str | None:
        """Why the instance may not be evicted now."""
        working = self._due or self._draining or self._announcing or self._telling
        return "a submission is being worked on" if working else None

    async def submit(
        self, given: Given, *, submission_id: str | None, key: str | None, metadata: object
    ) -> SubmitResult:
        """Store messages to be answered later; see `ThinkTurnVerbs.submit_messages`."""
        messages = given_messages(given, self._context.ids)
        if not messages:
            raise InvalidArguments("A submission needs at least one message")
        check_id(submission_id, what="submission_id")
        check_id(key, what="idempotency_key")
        what = "The metadata of a submission"
        stored = None if metadata is None else dump_payload(metadata, what=what)
        known = the_one(
            None if submission_id is None else self._store.get(submission_id),
            None if key is None else self._store.of_key(key),
            submission_id=submission_id,
            key=key,
        )
        if known is not None:
            if known.status == "pending":
                self._drain_soon()
            return _result(known, accepted=False)
        new_id = submission_id or self._context.ids.url_safe(ID_LENGTH)
        return await self._add(new_id, messages, key=key, metadata=stored)

    def inspect(self, submission_id: str) -> Submission | None:
        """One submission by its id."""
        return self._store.get(submission_id)

    def newest(self, status: str | Iterable[str] | None, limit: int) -> list[Submission]:
        """Submissions, the newest first (SB-016)."""
        return self._store.newest(listed(status), clamped(limit, MOST_LISTED))

    def delete(
        self, status: str | Iterable[str] | None, *, completed_before: datetime | None, limit: int
    ) -> int:
        """Forget submissions that are over, the oldest first (SB-016)."""
        before = bound_ms(completed_before, what="completed_before")
        return self._store.delete(listed(status), before=before, limit=clamped(limit, MOST_DELETED))

    def delete_one(self, submission_id: str) -> bool:
        """Forget a submission that is over."""
        return self._store.delete_one(submission_id)

    async def cancel(self, submission_id: str, reason: str | None) -> bool:
        """Call a submission off; a recovered continuation of its turn too (SB-009)."""
        found = self._store.get(submission_id)
        text, now = reason or CANCELLED, self._context.clock.now_ms()
        if found is None or not self._store.call_off(submission_id, "aborted", error=text, now=now):
            return False
        failpoint("submission.ended")
        for request_id in self._interrupted.requests_of(found.request_id):
            self._chat.turns.cancel(request_id, text)
        await self._tell(submission_id)
        return True

    def cleared(self) -> None:
        """Skip what waits and runs, in the transaction that clears the chat (SB-010)."""
        now = self._context.clock.now_ms()
        self._interrupted.forget()
        ids = [each.submission_id for each in self._store.active()]
        for submission_id in ids:
            self._store.call_off(submission_id, "skipped", error=CLEARED, now=now)
        if ids:
            self._context.database.after_commit(lambda: self._tell_later(ids))

    def note_unfinished(self) -> None:
        """Note what an earlier process left running, before any code of the agent runs."""
        self._interrupted.note()

    def resume(self) -> None:
        """Decide what becomes of what was left, and go on with what waits; after `on_start`."""
        changed = self._interrupted.take_up()
        if changed:
            self._tell_later(changed)
        if self._store.first_pending() is not None:
            self._drain_soon()

    def turn_over(self) -> None:
        """Go on with what waits for turns to end: a lost one of ours, or one that was before us."""
        if self._interrupted.recovering or self._held:
            self._context.background.start(self._after_turn(), name="submissions")

    async def woken(self) -> None:
        """Go on, and be woken again while something waits; the handler `DRAIN_SUBMISSIONS`."""
        self._promised = False
        if self._store.first_pending() is not None:
            self._drain_soon()

    async def drain(self) -> None:
        """Answer what waits, one at a time; returns at once when that is being done.

        Turns that were lost go on first: they were accepted before.
        """
        self._due = False
        if self._draining:
            return
        self._draining = True
        try:
            while not self._announcing:
                pending = self._store.first_pending()
                if pending is None:
                    self._nothing_waits()
                    return
                if self._interrupted.recovering or self._ports.recovery_busy():
                    self._held = True
                    return
                await self._run(pending)
        finally:
            self._draining = False

    async def _add(
        self,
        submission_id: str,
        messages: list[UIMessage],
        *,
        key: str | None,
        metadata: str | None,
    ) -> SubmitResult:
        submission = Submission(
            submission_id=submission_id,
            request_id=submission_id,
            status="pending",
            created_at=self._context.clock.now_ms(),
            idempotency_key=key,
        )
        text = dump_payload(messages, what="The messages of a submission")
        self._announcing += 1  # nothing runs before the hook knows that it waits
        try:
            self._drain_soon()
            self._store.insert(submission, messages=text, metadata=metadata)
            failpoint("submission.stored")
            stored = self._store.get(submission_id)
            assert stored is not None, "it was written just before"
            self._context.events.emit("submission:create", _payload(stored))
            await self._tell(submission_id)
        finally:
            self._announced()
        return _result(stored, accepted=True)

    async def _run(self, pending: Submission) -> None:
        submission_id = pending.submission_id
        if not self._store.start(submission_id, self._context.clock.now_ms()):
            return
        failpoint("submission.started")
        await self._tell(submission_id)
        found = self._store.get(submission_id)
        if found is None or found.status != "running":
            return
        await self._end(submission_id, await self._answered(found))

    async def _answered(self, found: Submission) -> End:
        """Run the turn of a submission, and say how it ended."""
        submission_id, request_id = found.submission_id, found.request_id
        messages = self._store.messages(submission_id)
        if messages is None:
            return End("error", UNREADABLE)
        live = self._chat.turns.reserve(
            TurnRequest(
                trigger="submission",
                request_id=request_id,
                store=lambda plan: self._apply(submission_id, messages, plan),
                message_ids=trailing_user_ids(messages),
            )
        )
        self._chat.turns.enqueue(live)
        result = await self._chat.turns.result_of(live)
        end = End(result.status, result.error)
        # One that stood still and was overtaken is told as aborted, but recorded with the reason.
        return self._interrupted.recorded(request_id) or end if end.status == "aborted" else end

    def _apply(self, submission_id: str, messages: list[UIMessage], plan: TurnPlan) -> None:
        """Add the messages in the transaction that records the turn (SB-007)."""
        transcript = self._chat.transcript
        for message in messages:
            transcript.put(message)
        now = self._context.clock.now_ms()
        self._store.applied(submission_id, stream_id=plan.stream_id, now=now)
        clients = self._chat.ports.clients
        self._context.database.after_commit(
            lambda: clients.broadcast_frame(frames.chat_messages(transcript.all()))
        )

    async def _end(self, submission_id: str, end: End) -> None:
        now = self._context.clock.now_ms()
        if self._store.end(submission_id, end.status, error=end.error, now=now):
            failpoint("submission.ended")
            await self._tell(submission_id)

    async def _after_turn(self) -> None:
        """Conclude those whose lost turn has come to its end (SB-015), then go on."""
        over = self._interrupted.conclude()
        await self._tell_all(over)
        if over or self._held:
            self._held = False
            self._drain_soon()

    def _tell_later(self, ids: Iterable[str]) -> None:
        self._announcing += 1
        work = self._tell_all(list(ids))
        task = self._context.background.start(work, name="submission statuses")
        task.add_done_callback(lambda _: self._announced())

    async def _tell_all(self, ids: Iterable[str]) -> None:
        for submission_id in ids:
            await self._tell(submission_id)

    def _announced(self) -> None:
        self._announcing -= 1
        if not self._context.fence.down:
            self._drain_soon()

    def _drain_soon(self) -> None:
        self._due = True
        self._promise()
        self._context.background.start(self.drain(), name="submissions")

    def _promise(self) -> None:
        """Be woken should a crash come first; this stands before what it is for (D6)."""
        if not self._promised:
            self._promised = True
            self._ports.wake(DRAIN_SUBMISSIONS, self._context.clock.now_ms() + RESUME_MS)

    def _nothing_waits(self) -> None:
        if self._promised:
            self._promised = False
            self._ports.wake(DRAIN_SUBMISSIONS, None)

    async def _tell(self, submission_id: str) -> None:
        """Report the status of a submission, and run the hook (SB-017); a crash loses the call."""
        submission = self._store.get(submission_id)
        if submission is None:
            return
        self._context.events.emit("submission:status", _payload(submission))
        if submission.status == "error":
            payload = {**_payload(submission), "error": submission.error}
            self._context.events.emit("submission:error", payload)
        self._telling += 1
        try:
            with self._as_agent():
                answer = self._ports.hook(submission)
                if isinstance(answer, Awaitable):
                    await answer
        except Exception as error:  # noqa: BLE001 - a hook's fault must not stop what it is told of
            self._context.fence.check()
            self._chat.ports.errors.report(error)
        finally:
            self._telling -= 1

    def _as_agent(self) -> AbstractContextManager[None]:
        """Run as code of the agent; inside a turn it stays code of that turn (TQ-005)."""
        agent = self._chat.ports.agent
        return nullcontext() if current_agent() is agent else working_for(agent)


def _result(found: Submission, *, accepted: bool) -> SubmitResult:
    return SubmitResult(
        accepted=accepted,
        submission_id=found.submission_id,
        request_id=found.request_id,
        status=found.status,
        created_at=found.created_at,
        idempotency_key=found.idempotency_key,
        stream_id=found.stream_id,
        metadata=found.metadata,
        error=found.error,
        messages_applied_at=found.messages_applied_at,
        started_at=found.started_at,
        completed_at=found.completed_at,
    )


def _payload(submission: Submission) -> JsonObject:
    return {
        "submissionId": submission.submission_id,
        "requestId": submission.request_id,
        "status": submission.status,
    }
