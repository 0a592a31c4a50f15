"""Two researchers at work for one call when the process dies: one whole answer in the end."""

import asyncio
from pathlib import Path

from ramet.core.json import JsonObject
from ramet.demo.assistant import Assistant
from ramet.protocol.messages import user_message
from tests.integration.demo.stage import opened_demo

BOTH = 2


def begun(frame: JsonObject) -> bool:
    event = frame.get("event")
    return isinstance(event, dict) and event.get("kind") == "started" and event.get("order") == 1


async def test_a_comparison_goes_on_with_both_of_its_runs(tmp_path: Path) -> None:
    go_on, assistants = asyncio.Event(), list[Assistant]()

    async def held(seconds: float) -> None:
        """Stand still once both researchers are at work, until the process was killed."""
        if any(len(each.list_agent_tool_runs()) == BOTH for each in assistants):
            await go_on.wait()

    async with opened_demo(tmp_path, sleep=held) as demo:
        assistants.append(demo.assistant)
        asked = demo.assistant.save_messages([user_message("Compare lists and generators", id="q")])
        asking = asyncio.ensure_future(asked)
        await demo.page.wait_for(begun)
        assert not asking.done()
        await demo.harness.crash()
        asking.cancel()
        assistants.clear()
        go_on.set()
        await demo.harness.restart()
        again = await demo.reopened()
        await again.harness.settle()

        runs = again.assistant.list_agent_tool_runs()
        assert [(run.display_order, run.status) for run in runs] == [
            (0, "completed"),
            (1, "completed"),
        ]
        question, answer = again.texts()
        assert question == "user: Compare lists and generators"
        assert "questions were answered" in answer
        assert "None of this could be answered" not in answer
