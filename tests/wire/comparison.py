"""`compare A B [fail]`: two runs under one tool call, for both families of chat agents."""

import asyncio

import ramet
from ramet.core.json import JsonObject, JsonValue
from tests.wire.researchers import Researcher
from tests.wire.script import Command, Topic


async def compare(agent: ramet.Agent[JsonValue], command: Command, tool_call_id: str) -> JsonObject:
    """Research both at once; a side that failed says why instead of a summary."""
    first, second = command.args[:2]
    topics = [Topic(topic=first), Topic(topic=second)]
    if "fail" in command.args[2:]:
        topics[1]["fail"] = True
    results = await asyncio.gather(
        *(
            agent.run_agent_tool(
                Researcher,
                input=topic,
                run_id=f"agent-tool:{tool_call_id}:{order}",
                parent_tool_call_id=tool_call_id,
                display_order=order,
            )
            for order, topic in enumerate(topics)
        )
    )
    return {
        side: _side(topic["topic"], result)
        for side, topic, result in zip("ab", topics, results, strict=True)
    }


def _side(query: str, result: ramet.RunResult[JsonValue]) -> JsonObject:
    if result.status == "completed":
        return {"query": query, "summary": result.summary}
    return {"query": query, "error": result.error}


def verdict(output: JsonObject) -> str:
    """What the answer says of both sides."""
    return " | ".join(
        f"{side['query']}: {side.get('summary') or side.get('error')}"
        for side in output.values()
        if isinstance(side, dict)
    )
