"""Plans how a client's question enters the chat, by the policy of the agent (PROTOCOL 4.9)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ramet.chat.concurrency import (
    Admission,
    Enqueue,
    MessageConcurrency,
    Supersede,
    admission_of,
    merged_question,
)
from ramet.chat.live_turn import LiveTurn, OpenSubmit
from ramet.chat.ports import ChatPorts
from ramet.chat.turns import Turns
from ramet.protocol.incoming import ChatRequest
from ramet.protocol.messages import trailing_user_ids
from ramet.protocol.ui_message import UIMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSubmit:
    """A question on its way into the chat."""

    messages: Sequence[UIMessage]
    """The client's list as it is to be stored."""
    message_ids: Sequence[str]
    """The user messages that the turn answers."""
    supersedes: Sequence[LiveTurn] = ()
    """The waiting turns whose place it takes."""
    submit: OpenSubmit | None = None
    """Set when a newer question may take its place."""
    quiet: float = 0.0
    """Seconds that it waits for a newer one."""
    joined: bool = False
    """Whether it was changed, so that its sender has to be told."""


class Submits:
    """The questions of one chat's clients."""

    def __init__(
        self, ports: ChatPorts, turns: Turns, *, policy: Callable[[], MessageConcurrency]
    ) -> None:
        self._ports = ports
        self._turns = turns
        self._policy = policy

    def admission(self, frame: ChatRequest) -> Admission:
        """What becomes of a request: only questions that overlap another turn are not queued."""
        if frame.trigger != "submit-message":
            return Enqueue()
        return admission_of(self._policy(), overlaps=self._turns.overlapped())

    def plan(self, frame: ChatRequest, admission: Enqueue | Supersede) -> PlannedSubmit:
        """How an admitted request is stored and queued."""
        trailing = trailing_user_ids(frame.messages)
        if isinstance(admission, Enqueue):
            return PlannedSubmit(messages=frame.messages, message_ids=trailing)
        replaced = self._turns.open_submits()
        going_on = {
            message_id
            for live in self._turns
            if live not in replaced
            for message_id in live.plan.message_ids
        }
        waiting = [live.submit for live in replaced if live.submit is not None]
        absorbed = frozenset[str]().union(*(submit.absorbed for submit in waiting))
        own = [each for each in trailing if each not in going_on and each not in absorbed]
        if admission.merges and own:
            earlier = [each for submit in waiting for each in submit.questions if each not in own]
            submit = OpenSubmit(questions=[*earlier, *own], absorbed=absorbed)
            return self._merged(frame, submit, supersedes=replaced)
        return PlannedSubmit(
            messages=frame.messages,
            message_ids=trailing,
            supersedes=replaced,
            submit=OpenSubmit(questions=own),
            quiet=admission.quiet,
        )

    def _merged(
        self, frame: ChatRequest, submit: OpenSubmit, *, supersedes: Sequence[LiveTurn]
    ) -> PlannedSubmit:
        """The waiting questions and the new one together (TQ-019)."""
        if not self._ports.family.joins_questions:
            trailing = trailing_user_ids(frame.messages)
            earlier = [each for each in submit.questions if each not in trailing]
            return PlannedSubmit(
                messages=frame.messages,
                message_ids=[*earlier, *trailing],
                supersedes=supersedes,
                submit=submit,
            )
        *earlier, last = submit.questions
        absorbed = submit.absorbed.union(earlier)
        joined = merged_question(self._questions(frame, submit.questions))
        messages = [
            joined if message["id"] == last else message
            for message in frame.messages
            if message["id"] not in absorbed
        ]
        return PlannedSubmit(
            messages=messages,
            message_ids=trailing_user_ids(messages),
            supersedes=supersedes,
            submit=OpenSubmit(questions=[last], absorbed=absorbed),
            joined=bool(absorbed),
        )

    def _questions(self, frame: ChatRequest, ids: Sequence[str]) -> list[UIMessage]:
        """The questions as they are stored, which may be joined ones; the new ones as they came."""
        known = {str(message["id"]): message for message in frame.messages}
        known.update({str(message["id"]): message for message in self._ports.transcript.some(ids)})
        return [known[each] for each in ids if each in known]
