"""What users call on a `Think` to run turns and to submit messages durably."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, overload

from ramet.chat.feature import Chat
from ramet.chat.saving import Given, add_messages, given_messages
from ramet.chat.turn import TurnResult
from ramet.core.signals import AbortSignal
from ramet.think.submission_records import Submission, SubmitResult
from ramet.think.submissions import Submissions
from ramet.think.turn_modes import TurnCallback, TurnMode, TurnOrder, carry_out, stream_turn


class ThinkTurnVerbs:
    """The turns of a `Think` that code starts: each method hands over to a feature."""

    _ramet_chat: Chat
    _ramet_submissions: Submissions

    @overload
    async def run_turn(
        self, input: Given, *, mode: Literal["wait"] = "wait", signal: AbortSignal | None = None
    ) -> TurnResult: ...
    @overload
    async def run_turn(
        self, *, continuation: Literal[True], signal: AbortSignal | None = None
    ) -> TurnResult: ...
    @overload
    async def run_turn(
        self,
        input: Given,
        *,
        mode: Literal["submit"],
        submission_id: str | None = None,
        idempotency_key: str | None = None,
        metadata: object = None,
    ) -> SubmitResult: ...
    @overload
    async def run_turn(
        self,
        input: Given,
        *,
        mode: Literal["stream"],
        callback: TurnCallback,
        signal: AbortSignal | None = None,
    ) -> None: ...
    async def run_turn(
        self,
        input: Given | None = None,
        *,
        mode: TurnMode = "wait",
        continuation: bool = False,
        signal: AbortSignal | None = None,
        callback: TurnCallback | None = None,
        submission_id: str | None = None,
        idempotency_key: str | None = None,
        metadata: object = None,
    ) -> TurnResult | SubmitResult | None:
        """Run a turn on a text, a UI message or several.

        `wait` returns how it ended, and runs nothing for an empty input; `continuation=True` goes
        on with the last answer instead. `submit` is `submit_messages`, `stream` is `chat`.

        Raises:
            InvalidArguments: The arguments do not fit together; nothing was stored.
            TurnInsideTurn: `wait` or `stream` inside a turn of the same agent.
        """
        return await carry_out(
            self._ramet_chat,
            self._ramet_submissions,
            TurnOrder(
                input=input,
                mode=mode,
                continuation=continuation,
                signal=signal,
                callback=callback,
                submission_id=submission_id,
                idempotency_key=idempotency_key,
                metadata=metadata,
            ),
        )

    async def chat(
        self, message: Given, callback: TurnCallback, *, signal: AbortSignal | None = None
    ) -> None:
        """Run a turn and call back with each chunk of its answer, then with its end."""
        await stream_turn(self._ramet_chat, message, callback, signal=signal)

    def add_messages(
        self,
        messages: Given,
        *,
        mode: Literal["append", "upsert"] = "append",
        parent_id: str | None = None,
    ) -> None:
        """Store messages without running a turn; allowed inside one too.

        They go behind the message `parent_id`, else to the end. One whose id is known stays as it
        is, and is replaced with `mode="upsert"`. Clients are told, inside a turn by its end.

        Raises:
            InvalidArguments: There is no message `parent_id`; nothing was stored.
        """
        given = given_messages(messages, self._ramet_chat.ports.context.ids)
        add_messages(self._ramet_chat, given, mode=mode, parent=parent_id)

    async def submit_messages(
        self,
        messages: Given,
        *,
        submission_id: str | None = None,
        idempotency_key: str | None = None,
        metadata: object = None,
    ) -> SubmitResult:
        """Store messages that are answered later, whatever happens to the process, at most once.

        Returns before the model is asked. Submissions run one at a time, the oldest first, each in
        a turn of its own. A second call with the same id or key gives the first one's state, with
        `accepted=False`, whatever its messages are.

        Raises:
            InvalidArguments: There is no message, or id and key name different submissions.
            NotJson: JSON cannot carry the metadata.
        """
        return await self._ramet_submissions.submit(
            messages, submission_id=submission_id, key=idempotency_key, metadata=metadata
        )

    def inspect_submission(self, submission_id: str) -> Submission | None:
        """Give what is known of a submission; None when there is none of that id."""
        return self._ramet_submissions.inspect(submission_id)

    def list_submissions(
        self, status: str | Iterable[str] | None = None, *, limit: int = 50
    ) -> Sequence[Submission]:
        """Give submissions of some statuses, the newest first, 1 to 100 of them."""
        return self._ramet_submissions.newest(status, limit)

    async def cancel_submission(self, submission_id: str, reason: str | None = None) -> bool:
        """Call off a submission that waits or runs; False when it is over or unknown.

        One that waits adds no message. Of one that runs, what there is of the answer is kept.
        """
        return await self._ramet_submissions.cancel(submission_id, reason)

    def delete_submission(self, submission_id: str) -> bool:
        """Forget a submission that is over; False when it is not, or unknown."""
        return self._ramet_submissions.delete_one(submission_id)

    def delete_submissions(
        self,
        status: str | Iterable[str] | None = None,
        *,
        completed_before: datetime | None = None,
        limit: int = 100,
    ) -> int:
        """Forget submissions that are over, the oldest first, 1 to 500 of them; gives how many."""
        return self._ramet_submissions.delete(
            status, completed_before=completed_before, limit=limit
        )

    def on_submission_status(self, submission: Submission) -> object:
        """Run when a submission has come to a new status; waited for, and may be async.

        A crash right after a change of status loses the call: look at `list_submissions` at start.
        """
