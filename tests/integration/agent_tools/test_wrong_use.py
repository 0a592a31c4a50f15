"""Runs asked for wrongly and children that answer wrongly: one sentence, nothing left open."""

from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet.agent_tools.records import Inspection, StoredChunk
from ramet.errors import InvalidArguments
from ramet.testing import Harness


class Liar(ramet.Agent[None]):
    """A child whose inspection cannot be stored as it is."""

    summary: Any = {"a": 1}

    async def start_agent_tool_run(
        self, input: object, *, run_id: str, signal: object = None
    ) -> Inspection:
        return Inspection(run_id=run_id, status="running", started_at=1)

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> None:
        pass

    async def inspect_agent_tool_run(self, run_id: str) -> Inspection | None:
        return Inspection(
            run_id=run_id, status="completed", started_at=1, completed_at=2, summary=self.summary
        )

    async def get_agent_tool_chunks(
        self, run_id: str, *, after_sequence: int = -1
    ) -> list[StoredChunk]:
        return []


class HalfEmoji(Liar):
    summary = "\udce9"


class Parent(ramet.Agent[None]):
    pass


def harness(tmp_path: Path) -> Harness:
    return Harness(agents=[Parent], sub_agents=[Liar, HalfEmoji], data_dir=tmp_path)


@pytest.mark.behaviour("AT-047")
@pytest.mark.parametrize("child", [Liar, HalfEmoji])
async def test_a_result_that_cannot_be_stored_ends_its_run_all_the_same(
    tmp_path: Path, child: type
) -> None:
    async with harness(tmp_path) as h:
        parent = await h.agent(Parent, "p")
        result = await parent.run_agent_tool(child, input={"q": 1})
        assert result.status in {"completed", "error"}
        (row,) = h.rows(Parent, "p", "SELECT status FROM cf_agent_tool_runs")
        assert row["status"] == result.status
        client = await h.connect(Parent, "p")
        kinds = [f["event"]["kind"] for f in client.of_type("agent-tool-event")]  # type: ignore[index, call-overload] # JSON
        assert kinds[-1] in {"finished", "error"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"run_id": 5}, "run_id must be a text that is not empty, not 5"),
        ({"run_id": ""}, "run_id must be a text that is not empty, not ''"),
        ({"display_order": None}, "display_order must be a whole number, not None"),
        ({"display_order": 2**70}, "display_order must be a whole number"),
        ({"output": "Facts"}, "output must be a type, not the text 'Facts'"),
        ({"detached": "yes"}, "detached is True, False or a ramet.Detached, not 'yes'"),
        ({"cls": "Liar"}, "run_agent_tool takes an agent class, not 'Liar'"),
    ],
)
async def test_arguments_of_a_wrong_kind_are_refused_before_anything_is_written(
    tmp_path: Path, arguments: dict[str, Any], sentence: str
) -> None:
    async with harness(tmp_path) as h:
        parent = await h.agent(Parent, "p")
        cls = arguments.pop("cls", Liar)
        with pytest.raises(InvalidArguments, match=sentence):
            await parent.run_agent_tool(cls, input={}, **arguments)
        assert h.rows(Parent, "p", "SELECT * FROM cf_agent_tool_runs") == []
