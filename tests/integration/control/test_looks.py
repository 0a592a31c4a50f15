"""`ramet runs show` beside a running host: what it looks at it does not wake."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest

import ramet
from ramet.control.host_answers import ASLEEP
from ramet.core.paths import AgentPath
from ramet.testing import ScriptedChild
from tests.integration.control.desk import Clerk, Desk, Folder
from tests.integration.control.shell import Shell, desks

pytestmark = pytest.mark.behaviour("D15")

CHILD = AgentPath.of(("Desk", "ada"), ("Clerk", "slow"))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    Clerk.gates.clear()
    return Shell(tmp_path / "data")


async def begin(shell: Shell) -> None:
    """Leave a run behind that is under way, of which its child has stored nothing."""
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").give("slow")
        files = app.host.files
    files.delete(CHILD)
    with closing(sqlite3.connect(shell.data / "host.db")) as index, index:
        index.execute("DELETE FROM ramet_wakeups")


async def test_a_run_that_has_not_begun_is_shown_without_waking_its_parent(shell: Shell) -> None:
    await begin(shell)
    async with desks(shell.data) as app:
        said = await shell.run("runs", "show", "slow", "--json")
        assert len(app.host.instances) == 0
    assert (said.json["child"], said.json["child_error"]) == (None, None)


async def test_a_run_whose_classes_the_host_does_not_know_is_shown_by_its_row(shell: Shell) -> None:
    await begin(shell)
    async with ramet.App(agents=[Folder], data_dir=shell.data):
        said = await shell.run("runs", "show", "slow", "--json")
    assert said.json["child_error"] == (
        "The agent class 'Desk' is not registered: "
        "give it to App(agents=[…]) or App(sub_agents=[…])"
    )


async def test_a_child_with_tables_of_its_own_is_asked_only_when_it_is_in_memory(
    shell: Shell,
) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask_stranger("r1")
        awake = await shell.run("runs", "show", "r1", "--json")
        app.host.evict(AgentPath.of(("Desk", "ada"), ("Stranger", "r1")), force=True)
        asleep = await shell.run("runs", "show", "r1", "--json")
    assert (awake.json["child"] is None, awake.json["child_error"]) == (False, None)
    assert (asleep.json["child"], asleep.json["child_error"]) == (None, ASLEEP)
    assert shell.run_here("runs", "show", "r1", "--json").json["child"] is None


class Mute(ScriptedChild):
    """Gives no answer any more when it is asked for its run."""

    mute: ClassVar[bool] = False

    async def inspect_agent_tool_run(self, run_id: str) -> ramet.Inspection | None:
        if self.mute:
            await asyncio.Event().wait()
        return await super().inspect_agent_tool_run(run_id)


class Asker(Desk):
    """Asks it."""

    async def ask_mute(self, run_id: str) -> str:
        return (await self.run_agent_tool(Mute, input=run_id, run_id=run_id)).status


async def test_a_child_that_gives_no_answer_is_not_waited_for(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ramet.control.host_answers.CHILD_SECONDS", 0.01)
    async with ramet.App(agents=[Asker], sub_agents=[Mute], data_dir=shell.data) as app:
        await app.get_agent(Asker, "ada").ask_mute("r1")
        monkeypatch.setattr(Mute, "mute", True)
        said = await shell.run("runs", "show", "r1", "--json")
    assert said.json["child_error"] == "It gave no answer within 0.01 s"


async def test_the_path_of_a_directory_need_not_be_text(tmp_path: Path) -> None:
    shell = Shell(tmp_path / os.fsdecode(b"bad\xff"))
    commands = (("inspect",), ("inspect", "Desk/ada"), ("runs", "list"), ("runs", "show", "r1"))
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        served = [(await shell.run(*words)).code for words in commands]
    assert served == [0, 0, 0, 0]
    assert [shell.run_here(*words).code for words in commands] == [0, 0, 0, 0]
    assert "bad" in shell.run_here("inspect", "Desk/bob").sentence


async def test_words_that_are_no_text_are_refused(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        said = (await shell.run("runs", "show", "r\udcff")).sentence
    assert said == "'r\\udcff' is not UTF-8"
    assert shell.run_here("runs", "show", "r\udcff").sentence == said
    assert shell.run_here("inspect", "Desk/\udcff").sentence == "'Desk/\\udcff' is not UTF-8"
