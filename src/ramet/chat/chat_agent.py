"""`AIChatAgent`: a chat agent whose `on_chat_message` gives the answer, chunk by chunk."""

from typing import Any, ClassVar, Generic

from typing_extensions import TypeVar

from ramet.agent.agent import Agent
from ramet.agent.runtime import AgentRuntime
from ramet.chat.runtime import ChatRuntime
from ramet.chat.saving import Given, add_messages, given_messages
from ramet.chat.turn import Turn
from ramet.chat.verbs import ChatVerbs

S = TypeVar("S", default=Any)


class AIChatAgent(ChatVerbs, Agent[S], Generic[S]):
    """An agent with a chat: override `on_chat_message`.

    What it gives is stored chunk by chunk before anybody sees it, and reaches every client of the
    agent. Turns run one after another. Any other agent may run it as a tool.
    """

    _runtime_type: ClassVar[type[AgentRuntime]] = ChatRuntime

    def on_chat_message(self, turn: Turn) -> object:
        """Answer a turn.

        Give (or yield, or return an awaitable of) UI message chunks as dicts or pydantic models,
        texts, an iterable of these, or None for no answer. Raising ends the turn with an error.
        """
        raise NotImplementedError(f"{type(self).__name__} must override on_chat_message")

    async def persist_messages(self, messages: Given) -> None:
        """Store messages without running a turn; allowed inside one too.

        A text is one message of the user. One whose id is known replaces the stored one, others go
        to the end. Clients are told, inside a turn by its end.

        Raises:
            UnknownModelResult: A message lacks its id, its role or its parts; nothing was stored.
            NotJson: JSON cannot carry one; nothing was stored.
        """
        checked = given_messages(messages, self._ramet_chat.ports.context.ids)
        add_messages(self._ramet_chat, checked, mode="upsert", parent=None)

    def _bind(self, runtime: AgentRuntime) -> None:
        super()._bind(runtime)
        assert isinstance(runtime, ChatRuntime)
        self._ramet_chat = runtime.chat
