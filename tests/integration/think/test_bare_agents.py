"""A user's own pydantic-ai agent inside an `AIChatAgent`, with another agent as its tool."""

from collections.abc import AsyncIterator
from pathlib import Path

from pydantic_ai import Agent

import ramet
from ramet.chat.turn import Turn
from ramet.core.json import JsonObject, dumps
from ramet.protocol.messages import parts_of, user_message
from ramet.testing import Harness, ScriptedModel, ToolCall
from tests.integration.think.stage import Researcher


class Bare(ramet.AIChatAgent[None]):
    """Answers with an agent of its own."""

    def on_chat_message(self, turn: Turn) -> AsyncIterator[JsonObject]:
        research = ramet.agent_tool(Researcher, name="research", description="Research.")
        script = ScriptedModel([ToolCall("research", {"input": "bees"}, id="c1"), "Report"])
        agent = Agent(script, tools=[research])
        return ramet.chunks_from_pydantic_ai(agent.run_stream_events("go"))


async def test_its_answer_and_the_run_of_its_tool_are_the_chats(tmp_path: Path) -> None:
    Researcher.rule = ScriptedModel.by_rule(lambda messages, tools: "about bees")
    async with Harness(agents=[Bare], sub_agents=[Researcher], data_dir=tmp_path) as host:
        client = await host.connect(Bare, "b")
        body = dumps({"messages": [user_message("hi", id="u1")]})
        init: JsonObject = {"method": "POST", "body": body}
        await client.send({"type": "cf_agent_use_chat_request", "id": "r1", "init": init})
        agent = await host.agent(Bare, "b")
        _, call, _, text = parts_of(agent.messages[-1])
        assert (call["toolCallId"], call["output"]) == ("c1", "about bees")
        assert text["text"] == "Report"
        (run,) = agent.list_agent_tool_runs()
        assert (run.run_id, run.parent_tool_call_id) == ("agent-tool:c1", "c1")
