"""`ramet runs`: what it shows and does beside a running host, and on the files of a stopped one."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import ramet
from ramet.cli.asking import objects
from ramet.control import host_answers
from ramet.core.json import JsonObject, JsonValue
from ramet.core.paths import AgentPath
from ramet.testing import Gate, ScriptedChild
from tests.integration.control.desk import Clerk, Desk
from tests.integration.control.shell import Said, Shell, desks

pytestmark = pytest.mark.behaviour("D15")


@pytest.fixture(autouse=True)
def gates() -> Iterator[None]:
    """Every test begins with gates of its own."""
    Clerk.gates.clear()
    Desk.finished.clear()
    yield
    Clerk.gates.clear()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def listed(said: Said) -> list[JsonValue]:
    runs = said.json["runs"]
    assert isinstance(runs, list)
    return [run["run_id"] for run in runs if isinstance(run, dict)]


def part(said: Said, key: str) -> dict[str, JsonValue]:
    found = said.json[key]
    assert isinstance(found, dict)
    return found


def part_of(answer: JsonObject, key: str) -> JsonObject:
    found = answer[key]
    assert isinstance(found, dict)
    return found


async def let_go(app: ramet.App, run_id: str, *, desk: str = "ada") -> None:
    """Begin a run that is under way until its gate opens."""
    await app.get_agent(Desk, desk).give(run_id)
    await Clerk.gates.setdefault(run_id, Gate()).reached()


async def test_runs_of_all_agents_are_listed_newest_first_and_none_is_opened(shell: Shell) -> None:
    async with desks(shell.data) as app:
        for name, run_id in [("ada", "r1"), ("bob", "r2"), ("ada", "r3")]:
            await app.get_agent(Desk, name).ask(run_id)
    async with desks(shell.data) as app:
        assert listed(await shell.run("runs", "list", "--json")) == ["r3", "r2", "r1"]
        assert len(app.host.instances) == 0
    assert listed(shell.run_here("runs", "list", "--json")) == ["r3", "r2", "r1"]


async def test_runs_are_listed_by_agent_and_by_status(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        await app.get_agent(Desk, "bob").ask("r2")
        await let_go(app, "slow")
        running = await shell.run("runs", "list", "--status", "running", "--json")
        assert listed(running) == ["slow"]
        several = ("--status", "running", "--status", "completed")
        assert listed(await shell.run("runs", "list", *several, "--json")) == ["slow", "r2", "r1"]
        of_bob = await shell.run("runs", "list", "--agent", "desk/bob", "--json")
        assert listed(of_bob) == ["r2"]
        below = ("--agent", "Desk/bob/sub/Clerk/r2")
        assert listed(await shell.run("runs", "list", *below, "--json")) == []
    left = shell.run_here("runs", "list", "--status", "running", "--agent", "Desk/ada", "--json")
    assert listed(left) == ["slow"]


async def test_pages_of_runs_follow_each_other(shell: Shell) -> None:
    async with desks(shell.data) as app:
        for number in range(5):
            await app.get_agent(Desk, f"d{number % 2}").ask(f"r{number}")
        first = await shell.run("runs", "list", "--limit", "2", "--json")
        second = await shell.run("runs", "list", "--limit", "2", "--skip", "2", "--json")
        last = await shell.run("runs", "list", "--limit", "2", "--skip", "4", "--json")
        people = await shell.run("runs", "list", "--limit", "2")
    assert [listed(each) for each in (first, second, last)] == [["r4", "r3"], ["r2", "r1"], ["r0"]]
    assert [each.json["more"] for each in (first, second, last)] == [True, True, False]
    assert people.err == "There are older ones: --skip 2 shows the next.\n"


async def test_people_are_shown_a_table(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
    said = shell.run_here("runs", "list")
    heading, row = said.out.splitlines()
    assert " ".join(heading.split()) == "RUN NAME AGENT CHILD STATUS STARTED TOOK RESULT"
    assert row.split()[:5] == ["r1", "-", "Desk/ada", "Clerk", "completed"]


async def test_a_run_is_shown_by_the_name_that_it_was_given(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask_by_name("r1", "Book\nsearch")
    [run] = objects(shell.run_here("runs", "list", "--json").json["runs"])
    assert run["display"] == {"name": "Book\nsearch", "icon": "🔎"}
    assert "r1   Book search  Desk/ada" in shell.run_here("runs", "list").out
    name = shell.run_here("runs", "show", "r1").out.splitlines()[1]
    assert name.split() == ["name", "Book", "search"]


async def test_the_result_of_a_run_under_way_is_its_progress(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await let_go(app, "slow")
        [run] = objects((await shell.run("runs", "list", "--json")).json["runs"])
        people = await shell.run("runs", "list")
        await shell.run("runs", "cancel", "slow")
        [ended] = objects((await shell.run("runs", "list", "--json")).json["runs"])
    assert part_of(run, "progress")["fraction"] == 0.25
    assert people.out.splitlines()[1].endswith("25% look-up Reading")
    assert people.err == ""
    assert ended["progress"] is None


async def test_without_a_server_nothing_under_way_goes_on(shell: Shell) -> None:
    stands_still = f"No server runs on {shell.data}; what was under way goes on at the next start\n"
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        await let_go(app, "slow")
        for command in (("runs", "list"), ("runs", "show", "slow")):
            assert (await shell.run(*command, "--json")).json["server_running"] is True
            assert (await shell.run(*command)).err == ""
    for command in (("runs", "list"), ("runs", "show", "slow")):
        said, for_programs = shell.run_here(*command), shell.run_here(*command, "--json")
        assert said.err == stands_still
        assert (for_programs.json["server_running"], for_programs.err) == (False, "")
    row = shell.run_here("runs", "list", "--status", "running").out.splitlines()[1]
    assert row.endswith("  -     25% look-up Reading")
    assert "took" not in shell.run_here("runs", "show", "slow").out
    assert shell.run_here("runs", "list", "--status", "completed").err == ""
    assert shell.run_here("runs", "show", "r1").err == ""


async def test_what_a_run_says_does_nothing_to_the_terminal(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "a\x1b[31m\nda").ask("r1")
    said = shell.run_here("runs", "list")
    assert "\x1b" not in said.out
    assert len(said.out.splitlines()) == 2


async def test_a_run_under_way_is_shown_with_its_progress_and_milestones(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await let_go(app, "slow")
        said = await shell.run("runs", "show", "slow", "--json")
        people = await shell.run("runs", "show", "slow")
    run, child = part(said, "run"), part(said, "child")
    assert (run["status"], run["detached"], run["agent"]) == ("running", True, "Desk/ada")
    assert run["input_preview"] == {"question": "slow"}
    assert said.json["child_agent"] == "Desk/ada/sub/Clerk/slow"
    assert said.json["child_open"] is True
    assert said.json["child_busy"]
    progress, milestones = child["progress"], child["milestones"]
    assert isinstance(progress, dict)
    assert isinstance(milestones, list)
    assert (progress["fraction"], progress["message"]) == (0.25, "Reading")
    assert [each["name"] for each in milestones if isinstance(each, dict)] == ["found"]
    assert "25% look-up Reading" in people.out
    assert "milestone found" in people.out


async def test_a_run_whose_host_is_gone_is_shown_as_it_was_left(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await let_go(app, "slow")
    said = shell.run_here("runs", "show", "slow", "--json")
    assert part(said, "run")["status"] == "running"
    assert part(said, "child")["progress"]
    assert said.json["child_open"] is False


async def test_a_cancelled_run_ends_and_its_parent_is_told(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await let_go(app, "slow")
        said = await shell.run("runs", "cancel", "slow", "--reason", "wrong topic", "--json")
        await Desk.finished["slow"].wait()
        shown = await shell.run("runs", "show", "slow", "--json")
        again = await shell.run("runs", "cancel", "slow")
    assert said.json["asked"] is True
    assert part(said, "run")["status"] == "aborted"
    assert part(shown, "run")["status"] == "aborted"
    assert part(shown, "run")["error"] == "wrong topic"
    assert (again.code, again.out) == (0, "The run slow had ended already: aborted.\n")


async def test_an_awaited_run_is_cancelled_too(shell: Shell) -> None:
    async with desks(shell.data) as app:
        asking = asyncio.create_task(app.get_agent(Desk, "ada").ask("slow"))
        await Clerk.gates.setdefault("slow", Gate()).reached()
        said = await shell.run("runs", "cancel", "slow")
        assert await asking == "aborted"
    assert said.out == "The run slow was told to stop and has ended: aborted.\n"


async def test_a_cancelled_run_that_does_not_end_is_not_waited_for_long(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_answers, "CANCEL_SECONDS", 0.05)
    gate = Gate()
    stubborn = ScriptedChild.script("Stubborn", [gate], ignores_cancel=True)

    class Chief(Desk):
        async def order(self) -> str:
            return (await self.run_agent_tool(stubborn, input="", run_id="slow")).status

    async with ramet.App(agents=[Chief], sub_agents=[stubborn], data_dir=shell.data) as app:
        ordering = asyncio.create_task(app.get_agent(Chief, "ada").order())
        await gate.reached()
        said = await shell.run("runs", "cancel", "slow")
        gate.open()
        assert await ordering == "completed"
    assert said.out == (
        "The run slow was told to stop and has not ended yet; see `ramet runs show slow`.\n"
    )


async def test_of_several_runs_of_one_id_the_one_that_has_not_ended_is_cancelled(
    shell: Shell,
) -> None:
    async with desks(shell.data) as app:
        Clerk.gates.setdefault("slow", Gate()).open()
        await app.get_agent(Desk, "bob").ask("slow")
        Clerk.gates.clear()
        await let_go(app, "slow")
        said = await shell.run("runs", "cancel", "slow", "--json")
        again = (await shell.run("runs", "cancel", "slow")).sentence
    assert part(said, "run")["agent"] == "Desk/ada"
    assert again == (
        "Several agents have a run 'slow': say with --agent which of Desk/ada, Desk/bob"
    )


async def test_only_finished_runs_are_cleared_with_their_children(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        await app.get_agent(Desk, "ada").ask("r2")
        await app.get_agent(Desk, "bob").ask("r3")
        await let_go(app, "slow")
        said = await shell.run("runs", "clear", "--agent", "Desk/ada")
        assert listed(await shell.run("runs", "list", "--json")) == ["slow", "r3"]
        child = AgentPath.of(("Desk", "ada"), ("Clerk", "r1"))
        assert not app.host.files.exists(child)
    assert said.out == "Removed 2 runs of Desk/ada.\n"


async def test_a_dry_run_of_clearing_removes_nothing(shell: Shell) -> None:
    dry = ("runs", "clear", "--agent", "Desk/ada", "--dry-run")
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        await app.get_agent(Desk, "ada").ask("r2")
        await app.get_agent(Desk, "bob").ask("r3")
        await let_go(app, "slow")
        said = await shell.run(*dry)
        older = await shell.run(*dry, "--older-than", "1d", "--json")
        failed = await shell.run(*dry, "--status", "error", "--json")
        assert listed(await shell.run("runs", "list", "--json")) == ["slow", "r3", "r2", "r1"]
    assert said.out == "Would remove 2 runs of Desk/ada.\n"
    assert older.json == {"agent": "Desk/ada", "would_remove": 0}
    assert failed.json == {"agent": "Desk/ada", "would_remove": 0}
    assert shell.run_here(*dry).out == said.out


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (("--older-than", "1d"), ["r1"]),
        (("--older-than", "0s"), []),
        (("--older-than", "2020-01-01T00:00Z"), ["r1"]),
        (("--status", "error"), ["r1"]),
        (("--status", "error", "--status", "completed"), []),
    ],
)
async def test_clearing_can_be_narrowed(
    shell: Shell, options: tuple[str, ...], left: list[JsonValue]
) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        await shell.run("runs", "clear", "--agent", "Desk/ada", *options)
        assert listed(await shell.run("runs", "list", "--json")) == left


@pytest.mark.parametrize("command", [("cancel", "slow"), ("clear", "--agent", "Desk/ada")])
async def test_what_changes_something_needs_a_running_host(
    shell: Shell, command: tuple[str, ...]
) -> None:
    async with desks(shell.data) as app:
        await let_go(app, "slow")
    assert shell.run_here("runs", *command).sentence == (
        f"No server runs on {shell.data}, and only a running one can do that; "
        "a run whose process is gone is taken up at the next start"
    )
    assert listed(shell.run_here("runs", "list", "--json")) == ["slow"]


RUNS = "; `ramet runs list` shows those there are"
ALL = "; `ramet inspect --all` lists those there are"


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("runs", "show", "r9"), f"No agent has a run 'r9'{RUNS}"),
        (("runs", "show", "r1", "--agent", "Desk/bob"), f"Desk/bob has no run 'r1'{RUNS}"),
        (
            ("runs", "show", "both"),
            "Several agents have a run 'both': say with --agent which of Desk/ada, Desk/bob",
        ),
        (("runs", "cancel", "r9"), f"No agent has a run 'r9'{RUNS}"),
        (("runs", "list", "--agent", "Desk/c"), f"There is no agent 'Desk/c' in {{data}}{ALL}"),
        (("runs", "clear", "--agent", "Desk/c"), f"There is no agent 'Desk/c' in {{data}}{ALL}"),
        (
            ("inspect", "Desk/a/sub/Clerk/r9"),
            f"There is no agent 'Desk/a/sub/Clerk/r9' in {{data}}{ALL}",
        ),
        (
            ("inspect", "Desk/ada/sub/Clerk/r"),
            f"There is no agent 'Desk/ada/sub/Clerk/r' in {{data}}{ALL}",
        ),
        (
            ("inspect", "Desk"),
            "'Desk' is no agent's address: write CLASS/NAME, and /sub/CLASS/NAME behind it for a "
            "sub-agent, with %2F for a / in a name",
        ),
    ],
)
async def test_what_is_not_there_is_one_sentence(
    shell: Shell, command: tuple[str, ...], sentence: str
) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        await app.get_agent(Desk, "ada").ask("both")
        await app.get_agent(Desk, "bob").ask("both")
        said = (await shell.run(*command)).sentence
    assert said == sentence.format(data=shell.data)
    if command[1] not in {"cancel", "clear"}:
        assert shell.run_here(*command).sentence == said


@pytest.mark.parametrize(
    "command",
    [
        ("runs", "list", "--status", "lost"),
        ("runs", "clear", "--agent", "Desk/ada", "--status", "running"),
        ("runs", "clear"),
        ("runs", "clear", "--agent", "Desk/ada", "--older-than", "soon"),
        ("runs", "clear", "--agent", "Desk/ada", "--older-than", "2026-01-31T12:00"),
        ("runs", "list", "--limit", "0"),
        ("runs", "show"),
    ],
)
def test_a_command_that_is_written_wrongly_is_refused(
    shell: Shell, command: tuple[str, ...]
) -> None:
    said = shell.run_here(*command)
    assert said.code == 2
    assert "Error: " in said.err


@pytest.mark.parametrize("command", [("runs", "list"), ("runs", "cancel", "r1"), ("inspect",)])
def test_a_directory_that_is_none_of_ramet_is_left_alone(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    missing = Shell(tmp_path / "missing").run_here(*command)
    other = Shell(tmp_path).run_here(*command)
    assert missing.sentence == (
        f"There is no data directory {tmp_path / 'missing'}; name one with --data or RAMET_DATA"
    )
    assert other.sentence == (
        f"{tmp_path} is no data directory of ramet: there is no ramet.lock in it; "
        "name one with --data or RAMET_DATA"
    )
    assert list(tmp_path.iterdir()) == []


async def test_an_agent_that_cannot_be_read_is_left_out(shell: Shell) -> None:
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").ask("r1")
        await app.get_agent(Desk, "bob").ask("r2")
        file = app.host.files.file_of(AgentPath.of(("Desk", "bob")))
    file.write_bytes(b"no database" * 100)
    said = shell.run_here("runs", "list", "--json")
    assert listed(said) == ["r1"]
    assert said.err.startswith(f"Left out: The database {file} cannot be used")
    async with desks(shell.data):
        assert listed(await shell.run("runs", "list", "--json")) == ["r1"]
