"""`ramet inspect` of an agent that has much: everything is counted, only the first are read."""

from pathlib import Path

import pytest

import ramet
from ramet.control.agent_reports import SHOWN
from ramet.core.fence import Fence
from ramet.core.json import JsonObject, JsonValue
from ramet.storage import Database, combined, migrate
from ramet.think.submission_records import Submission
from ramet.think.submission_store import SUBMISSION_MIGRATIONS, SubmissionStore
from tests.integration.control.desk import Desk, Folder
from tests.integration.control.shell import Said, Shell, desks

pytestmark = pytest.mark.behaviour("D15")

MANY = SHOWN + 5


def part(said: Said, key: str) -> JsonObject:
    found = said.json[key]
    assert isinstance(found, dict)
    return found


def first(said: Said, kind: str, key: str) -> list[JsonValue]:
    shown = part(said, kind)["first"]
    assert isinstance(shown, list)
    return [each[key] for each in shown if isinstance(each, dict)]


class Busy(Desk):
    """Has more of everything than is shown."""

    async def plan_much(self) -> None:
        for number in range(MANY):
            await self.schedule(3600 + MANY - number, self.remind, f"{number}")
            await self.queue(self.hang if number == 0 else self.rest, None)
            await self.start_fiber(f"sort {number}", self.sort)
            await self.sub_agent(Folder, f"f{number}")

    async def rest(self, payload: None) -> None:
        """Nothing."""


async def test_all_are_counted_and_the_first_are_shown(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "data")
    app = ramet.App(agents=[Busy], sub_agents=[Folder], data_dir=shell.data)
    app.options = ramet.HostOptions(grace_period=0)
    async with app:
        await app.get_agent(Busy, "ada").plan_much()
        said = await shell.run("inspect", "Busy/ada", "--json")
    for kind in ("schedules", "queue", "fibers", "sub_agents"):
        assert part(said, kind)["count"] == MANY
    assert first(said, "queue", "callback") == ["hang", *["rest"] * (SHOWN - 1)]
    due = [each for each in first(said, "schedules", "due_at") if isinstance(each, int)]
    assert due == sorted(due)
    assert said.json["next_wakeup"] is not None
    assert first(said, "fibers", "name") == [f"sort {number}" for number in range(SHOWN)]
    assert first(said, "sub_agents", "agent") == [
        f"Busy/ada/sub/Folder/f{number}" for number in range(SHOWN)
    ]


async def test_schedules_of_the_frameworks_own_are_not_counted(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "data")
    async with desks(shell.data) as app:
        await app.get_agent(Desk, "ada").give("slow")  # which has a watch of its own
        said = await shell.run("inspect", "Desk/ada", "--json")
    assert part(said, "schedules") == {"count": 0, "first": []}


def test_submissions_that_run_come_before_those_that_wait() -> None:
    database = Database(":memory:", fence=Fence("test"))
    migrate(database, combined(SUBMISSION_MIGRATIONS))
    store = SubmissionStore(database)
    for number in range(5):
        each = Submission(
            submission_id=f"s{number}", request_id=f"s{number}", status="pending", created_at=number
        )
        store.insert(each, messages="[]", metadata=None)
    store.start("s3", 9)
    store.start("s0", 9)
    store.end("s0", "completed", error=None, now=9)
    assert store.count_active() == 4
    assert [each.submission_id for each in store.few_active(3)] == ["s3", "s1", "s2"]
    database.close()
