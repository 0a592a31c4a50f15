"""Runs asked for wrongly and children that answer wrongly: one sentence, nothing left open."""

from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet.agent_tools.records import Inspection, StoredChunk
from ramet.core.json import NotJson
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


class Chat(ramet.AIChatAgent):
    """A child that keeps what it is asked."""


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
        kinds = [f["event"]["kind"] for f in client.of_type("agent-tool-event")]
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
        ({"signal": 5}, "signal must be a ramet.AbortSignal, not 5"),
        ({"signal": 5, "detached": True}, "signal must be a ramet.AbortSignal, not 5"),
        ({"run_id": "\ud83c"}, "run_id must be valid Unicode, not '.ud83c'"),
        ({"run_id": "\ud83c", "detached": True}, "run_id must be valid Unicode"),
        ({"parent_tool_call_id": "\ud83c"}, "parent_tool_call_id must be valid Unicode"),
        (
            {"detached": ramet.Detached(max_budget=10**400)},
            "max_budget is too large a number of seconds",
        ),
        (
            {"detached": ramet.Detached(no_progress_budget=-(10**400))},
            "no_progress_budget is too large a number of seconds",
        ),
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


@pytest.mark.parametrize("status", ["foo", ["completed", "foo"]])
async def test_a_status_that_no_run_has_is_refused(tmp_path: Path, status: Any) -> None:
    async with harness(tmp_path) as h:
        parent = await h.agent(Parent, "p")
        await parent.run_agent_tool(Liar, input={})
        sentence = (
            "'foo' is not one of the statuses "
            "aborted, completed, error, interrupted, running, starting"
        )
        with pytest.raises(InvalidArguments, match=sentence):
            parent.list_agent_tool_runs(status=status)
        with pytest.raises(InvalidArguments, match=sentence):
            await parent.clear_agent_tool_runs(status=status)
        assert len(parent.list_agent_tool_runs()) == 1
        assert len(parent.list_agent_tool_runs(status=["completed", "error"])) == 1
        assert parent.list_agent_tool_runs(status="running") == []


async def test_what_can_be_no_id_is_refused_where_runs_are_looked_for(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        parent = await h.agent(Parent, "p")
        half = "\ud83c"
        with pytest.raises(InvalidArguments, match="run_id must be valid Unicode"):
            await parent.inspect_agent_tool(half)
        with pytest.raises(InvalidArguments, match="run_id must be valid Unicode"):
            await parent.cancel_agent_tool(half)
        with pytest.raises(InvalidArguments, match="run_id must be valid Unicode"):
            parent.has_agent_tool_run(Liar, half)
        with pytest.raises(InvalidArguments, match="parent_tool_call_id must be valid Unicode"):
            parent.list_agent_tool_runs(parent_tool_call_id=half)


def nested(levels: int) -> list[Any]:
    """Lists in lists."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("detached", [True, False])
@pytest.mark.parametrize("wrong", [{"n": object()}, nested(300), nested(100_000)])
async def test_an_input_that_a_chat_cannot_keep_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, wrong: object, detached: Any
) -> None:
    async with Harness(agents=[Parent], sub_agents=[Chat], data_dir=tmp_path) as h:
        parent = await h.agent(Parent, "p")
        with pytest.raises(NotJson, match="The input of the run cannot be written as JSON: "):
            await parent.run_agent_tool(Chat, input=wrong, detached=detached)
        (row,) = h.rows(Parent, "p", "SELECT status, error_message FROM cf_agent_tool_runs")
        assert row["status"] == "error"
        assert str(row["error_message"]).startswith("The input of the run cannot be written")
    assert not caplog.records  # it is the caller's fault, and the caller was told
