"""The end of a run: the first that is recorded stays (QK-009, AT-087)."""

import asyncio
from pathlib import Path
from typing import ClassVar

import pytest

from ramet.testing import Harness
from tests.integration.chat.support import END, Fed


class Slow(Fed):
    """Takes its time to give the output of a run."""

    gate: ClassVar[asyncio.Event]

    async def get_agent_tool_output(self, run_id: str) -> object:
        await self.gate.wait()
        return "late"


@pytest.mark.behaviour("QK-009")
async def test_a_run_that_is_cancelled_while_it_completes_stays_aborted(tmp_path: Path) -> None:
    Slow.gate = asyncio.Event()
    async with Harness(agents=[Slow], data_dir=tmp_path) as host:
        child = await host.agent(Slow, "run")
        await child.start_agent_tool_run("q", run_id="run")
        child.give("all", END)
        await host.settle()
        await child.cancel_agent_tool_run("run", "enough")
        Slow.gate.set()
        await host.settle()
        inspected = await child.inspect_agent_tool_run("run")
        assert inspected is not None
        assert (inspected.status, inspected.output) != ("completed", "late")
        assert inspected.status == "aborted"
