"""The demo's researcher as a child of the assistant: what it reports while it works."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ramet.demo.assistant import Assistant
from ramet.demo.folder import Folder
from ramet.demo.offline_model import OfflineModel
from ramet.demo.planner import Planner
from ramet.demo.researcher import Researcher
from ramet.demo.stage import Stage, Staged
from ramet.testing import Harness
from tests.unit.demo.rig import no_sleep
from tests.unit.demo.small_reference import small_reference


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    Staged.set_stage(
        Stage(
            model=OfflineModel(sleep=no_sleep),
            model_label="offline",
            offline=True,
            corpus=small_reference(),
            folder=Folder(tmp_path),
        )
    )
    async with Harness(
        agents=[Assistant], sub_agents=[Researcher, Planner], data_dir=tmp_path / "data"
    ) as harness:
        yield harness


async def milestones_after(harness: Harness, question: str) -> list[str]:
    """The milestones of the runs that a question leads to."""
    assistant = await harness.agent(Assistant, "ada")
    await assistant.save_messages(question)
    assert [run.status for run in assistant.list_agent_tool_runs()] == ["completed"]
    query = "SELECT body FROM cf_agent_tool_frames WHERE kind = 'milestone'"
    return [str(row["body"]) for row in harness.rows(Assistant, "ada", query)]


async def test_sources_are_found_once_when_the_first_passage_is_read(harness: Harness) -> None:
    (milestone,) = await milestones_after(harness, "What is a generator?")
    assert "sources-found" in milestone
    assert "Generator functions" in milestone


async def test_hits_that_do_not_fit_are_no_sources(harness: Harness) -> None:
    question = "Who won the football world cup on that list?"
    assert small_reference().search(question)
    assert await milestones_after(harness, question) == []
