"""A live chat agent from the inside: an agent's features plus turns, transcript, resume and runs."""

from collections.abc import AsyncIterator
from typing import ClassVar

from ramet.agent.context import AgentContext
from ramet.agent.runtime import AgentRuntime
from ramet.agent_tools.schema import AGENT_TOOL_MIGRATIONS
from ramet.chat.family import AI_CHAT, ChatFamily
from ramet.chat.feature import Chat
from ramet.chat.handler import answer_of
from ramet.chat.schema import CHAT_MIGRATIONS
from ramet.chat.turn import Chunk, Turn
from ramet.connections.connection import Connection
from ramet.connections.link import ClientLink
from ramet.core.http import Request, Response
from ramet.storage import Schema, combined
from ramet.sub_agents.registry import SUB_AGENT_MIGRATIONS


class ChatRuntime(AgentRuntime):
    """An agent with a chat. `Think` derives from it and answers turns in its own way.

    A subclass sets `schema` (its own migrations after these) and `family`, and overrides `produce`.
    """

    schema: ClassVar[Schema] = combined(
        SUB_AGENT_MIGRATIONS, AGENT_TOOL_MIGRATIONS, CHAT_MIGRATIONS
    )
    family: ClassVar[ChatFamily] = AI_CHAT

    def __init__(self, context: AgentContext, agent: object) -> None:
        super().__init__(context, agent)
        self.chat = Chat(
            context,
            agent,
            clients=self.clients,
            producer=self,
            errors=self.hooks,
            family=self.family,
        )
        self.chat.listen(self.inbox)
        self.busy_checks.append(self.chat.busy)

    def produce(self, turn: Turn) -> AsyncIterator[Chunk]:
        """Answer a turn: for `AIChatAgent`, what its `on_chat_message` gives."""
        return answer_of(self.agent, turn)
