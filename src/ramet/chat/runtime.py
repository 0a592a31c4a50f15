"""A live chat agent from the inside: an agent's features, and a chat with resume and runs."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import ClassVar

from ramet.agent.context import AgentContext
from ramet.agent.hooks import Hooked
from ramet.agent.runtime import AgentRuntime
from ramet.agent.schema import AGENT_MIGRATIONS
from ramet.agent_tools.detached.ports import DetachedPorts, Notices
from ramet.agent_tools.ports import AgentToolPorts
from ramet.chat.family import AI_CHAT, ChatFamily
from ramet.chat.feature import Chat, ChatSurroundings
from ramet.chat.handler import answer_of
from ramet.chat.hooks import ChatHooked
from ramet.chat.notices import ChatNotices
from ramet.chat.schema import CHAT_MIGRATIONS
from ramet.chat.turn import Chunk, Turn
from ramet.chat.turn_waking import RESUME_TURNS
from ramet.connections.connection import Connection
from ramet.connections.link import ClientLink
from ramet.connections.rpc import RpcTable
from ramet.core.http import Request, Response
from ramet.storage import Schema, combined

JSON = {"content-type": "application/json"}


class ChatRuntime(AgentRuntime):
    """An agent with a chat. `Think` derives from it and answers turns in its own way.

    A subclass sets `schema` (its own migrations after these) and `family`, and overrides `produce`.
    """

    schema: ClassVar[Schema] = combined(*AGENT_MIGRATIONS, CHAT_MIGRATIONS)
    family: ClassVar[ChatFamily] = AI_CHAT

    def __init__(
        self,
        context: AgentContext,
        agent: Hooked,
        *,
        rpc_table: RpcTable,
        overridden: Callable[[str], bool],
    ) -> None:
        super().__init__(context, agent, rpc_table=rpc_table, overridden=overridden)
        assert isinstance(agent, ChatHooked)
        self.chat = Chat(
            ChatSurroundings(
                context=context,
                agent=agent,
                clients=self.clients,
                producer=self,
                errors=self.hooks,
                family=self.family,
                cleared=self.chat_cleared,
                runs_here=self.runs_here,
                turn_over=self.turn_over,
                alarm=self.alarm,
                wake=self.durable.schedules.wake,
                clear_runs=lambda: self.agent_tools.clear(older_than=None, status=None),
            )
        )
        self.chat.listen(self.inbox)
        if self.alarm is not None:
            self.alarm.add(next_due=self.chat.ports.waking.next_due, handle=self.chat.woken)
        self.internal[RESUME_TURNS] = self.chat.woken
        self.busy_checks.append(self.chat.busy)

    def produce(self, turn: Turn) -> AsyncIterator[Chunk]:
        """Answer a turn: for `AIChatAgent`, what its `on_chat_message` gives."""
        return answer_of(self.agent, turn)

    async def start(self) -> None:
        """End what an earlier process left of turns, make the agent ready, seal the open runs.

        Raises:
            InvalidOptions: The agent's `message_concurrency` or `max_persisted_messages` is none.
        """
        self.chat.check_settings()
        self.chat.note_lost()
        await super().start()
        await self.chat.child.reconcile()
        self.chat.take_up_lost()

    def started(self) -> None:
        """Have what code asks from here on wait for lost turns."""
        self.chat.started()

    def adopt(self, link: ClientLink) -> None:
        """Take over a client of an earlier instance, and tell it what has become of its turn."""
        super().adopt(link)
        connection = self.clients.of(link)
        if connection is not None:
            self.chat.adopted(connection)

    async def respond(self, request: Request) -> Response:
        """Give the transcript under `/get-messages`; the agent answers everything else."""
        if request.path.rstrip("/").rpartition("/")[2] == "get-messages":
            return Response(self.chat.transcript.json(), headers=JSON)
        return await super().respond(request)

    def chat_cleared(self) -> None:
        """Forget what is kept beside the chat, in the transaction that clears it."""

    def runs_here(self, tool_call_id: str) -> bool:
        """Whether a tool call is known to run here, so that no page gives its output."""
        del tool_call_id
        return False

    def turn_over(self) -> None:
        """Go on with what waits for turns to end."""

    def greet_with_chat(self, connection: Connection) -> None:
        """Tell a new client of streams to resume, or send the transcript."""
        self.chat.greet(connection)

    def disconnected(self, connection: Connection) -> None:
        """Forget what is kept for a client; its turn goes on (CW-020)."""
        self.chat.forget(connection)

    def notices(self) -> Notices:
        """Tells the chat of runs that were let go of."""
        return ChatNotices(lambda: self.chat)

    def _detached_ports(self) -> DetachedPorts:
        return replace(
            super()._detached_ports(),
            notices=self.notices(),
            between_turns=self._between_turns,
        )

    def _between_turns(
        self, *, at_most: float, overdue: Callable[[], object]
    ) -> AbstractAsyncContextManager[None]:
        return self.chat.gaps.between_turns(at_most=at_most, overdue=overdue)

    def _agent_tool_ports(self) -> AgentToolPorts:
        return replace(
            super()._agent_tool_ports(),
            turn_root=lambda: self.chat.turn_root(),
            transcript_calls=lambda: self.chat.tool_calls(),
            forwarded=lambda: self.chat.run_gave_something(),
        )
