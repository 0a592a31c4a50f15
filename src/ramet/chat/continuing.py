"""Continues an answer in one turn once a page has answered all tool calls of its last step."""

from typing import Final

from ramet.chat.continuation_store import Wish
from ramet.chat.lapsing import lapse
from ramet.chat.ports import ChatPorts
from ramet.chat.turns import TurnRequest, Turns
from ramet.connections.link import ClientLink
from ramet.core.failpoints import failpoint
from ramet.errors import StorageError
from ramet.protocol import frames
from ramet.protocol.client_answers import last_step_is_answered

COALESCED_SECONDS: Final = 0.05
"""How long answers of the same moment are waited for (AC-001)."""


class Continuing:
    """The continuation that pages have asked for, if any.

    The wish is on disk: what was to go on when the process ended goes on in the next one.
    """

    def __init__(self, ports: ChatPorts, turns: Turns) -> None:
        self._ports = ports
        self._turns = turns
        self._due = False
        self._sender: ClientLink | None = None

    def busy(self) -> str | None:
        """Why the instance may not be evicted; an answer that is still awaited is no reason."""
        return "an answer is about to go on" if self._due else None

    @property
    def due(self) -> bool:
        """Whether a continuation begins as soon as answers of the same moment are in."""
        return self._due

    def wished(self) -> bool:
        """Whether somebody wants an answer to go on."""
        return self._ports.continuation.wish() is not None

    def wish(self, wish: Wish, sender: ClientLink) -> None:
        """Remember, in the transaction of an answer, that a page wants it to go on."""
        self._ports.continuation.keep_wish(wish)
        self._sender = sender

    def recheck(self) -> None:
        """Look whether the time has come: after an answer, after a turn, when the agent opens.

        What a page has asked for is forgotten once the conversation has gone on without it.
        """
        try:
            self._recheck()
        except StorageError as error:
            self._ports.errors.report(error)

    def _recheck(self) -> None:
        if self._due or not self._idle():
            return
        wish = self._ports.continuation.wish()
        if wish is None:
            return
        last = self._ports.transcript.last()
        if last is None or last["id"] != wish.message_id:
            self._give_up(wish)
        elif last_step_is_answered(last):
            self._due = True
            self._ports.waking.promise()
            self._ports.context.clock.call_later(COALESCED_SECONDS, self._begin)

    def _give_up(self, wish: Wish) -> None:
        """Forget what was wished: something has come behind the answer."""
        transcript = self._ports.transcript
        with transcript.changing():
            self._ports.continuation.forget_wish()
            changed = lapse(transcript, wish.message_id)
        if changed is not None:
            self._ports.clients.broadcast_frame(frames.message_updated(changed))

    def _idle(self) -> bool:
        return self._turns.busy() is None and self._ports.turns.recovering() is None

    def _begin(self) -> None:
        """Run the continuation, unless something has come between (AC-005)."""
        self._due = False
        if self._ports.context.fence.down or not self._idle():
            return
        wish, last = self._ports.continuation.wish(), self._ports.transcript.last()
        if wish is None or last is None:
            return
        if last["id"] != wish.message_id or not last_step_is_answered(last):
            self.recheck()
            return
        try:
            self._continue(wish)
        except StorageError as error:
            self._ports.errors.report(error)

    def _continue(self, wish: Wish) -> None:
        store = self._ports.continuation
        asked = store.awaiting(wish.message_id)
        live = self._turns.accept(
            TurnRequest(
                trigger="auto-continuation",
                store=lambda _: store.forget_wish(),
                continues=asked.message_id,
                message_ids=asked.message_ids,
                body=asked.body,
                client_tools=store.newest_tools(wish.message_id, asked.client_tools),
                sender=self._sender,
            )
        )
        failpoint("continuation.accepted")
        self._turns.enqueue(live)
