"""`Think`: a chat agent that is a model with instructions and tools."""

from typing import Any, ClassVar, Generic

from typing_extensions import TypeVar

from ramet.agent.agent import Agent
from ramet.agent.runtime import AgentRuntime
from ramet.chat.verbs import ChatVerbs
from ramet.think.runtime import ThinkRuntime
from ramet.think.turn_verbs import ThinkTurnVerbs
from ramet.think.verbs import ThinkVerbs

S = TypeVar("S", default=Any)


class Think(ThinkVerbs, ThinkTurnVerbs, ChatVerbs, Agent[S], Generic[S]):
    """A chat agent that asks a model, runs the tools it calls, and asks again until it is done.

    ```python
    class Assistant(ramet.Think):
        model = "openai:gpt-5"
        instructions = "You answer with the help of your researchers."

        def get_tools(self):
            return [ramet.agent_tool(Researcher, description="Researches one topic.")]
    ```

    The model can be any of pydantic-ai's. What it says, and each tool's result, is stored as it
    comes; the next turn goes on from there, after a restart too. Any other agent may run it as a
    tool.
    """

    _runtime_type: ClassVar[type[AgentRuntime]] = ThinkRuntime

    def _bind(self, runtime: AgentRuntime) -> None:
        super()._bind(runtime)
        assert isinstance(runtime, ThinkRuntime)
        self._ramet_chat = runtime.chat
        self._ramet_submissions = runtime.submissions
