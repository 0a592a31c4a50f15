"""A row that holds no JSON: what needs it says so once, everything else goes on."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from ramet.core.paths import AgentPath
from ramet.errors import DatabaseUnusable
from ramet.testing import Harness
from tests.histories.desk import STEADY_CALL, Desk
from tests.histories.make import FOLDER, desk_harness
from tests.histories.test_histories import unpacked

BROKEN = "{broken"
MAIN = AgentPath.of(("Desk", "main"))
HELPER = MAIN.child("Helper", "run-trees")
STEADY = MAIN.child("Steady", f"agent-tool:{STEADY_CALL}")
BELOW = MAIN.child("Helper", "below")
HOST = AgentPath.of()
DAMAGED = "[This message was damaged on disk and cannot be read.]"
LEDGER = "SELECT line FROM ledger ORDER BY rowid"
NOT_CALLED = {"delayed", "interval"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A statement that damages rows, and what is said of them."""

    name: str
    at: AgentPath = MAIN
    damage: str
    said: str | None = None
    """What stands in the log or is told to `on_error`; None for what can be done without."""
    lost: frozenset[str] = frozenset()
    """Lines of the ledger that nothing can write any more."""

    def __str__(self) -> str:
        return self.name


CASES = [
    Case(
        name="a-message",
        damage="UPDATE cf_ai_chat_agent_messages SET message = :broken WHERE position = 2",
        said="cannot be read",
    ),
    Case(
        name="a-step",
        damage="UPDATE cf_think_steps SET message = :broken WHERE rowid = 1",
        said="the model is told what was shown",
    ),
    Case(
        name="a-step-of-the-running-turn",
        damage="UPDATE cf_think_steps SET message = :broken "
        "WHERE rowid = (SELECT max(rowid) FROM cf_think_steps)",
        said="The steps of turn_",
    ),
    Case(
        name="a-chunk",
        damage="UPDATE cf_ai_chat_stream_chunks SET body = :broken WHERE chunk_index = 2",
    ),
    Case(
        name="a-chunk-of-a-child",
        at=HELPER,
        damage="UPDATE cf_ai_chat_stream_chunks SET body = :broken",
    ),
    Case(
        name="the-questions-of-a-turn",
        damage="UPDATE cf_chat_turns SET message_ids = :broken WHERE status = 'running'",
        said="has lost its questions",
    ),
    Case(name="recovery", damage="UPDATE cf_chat_recovery SET value = :broken"),
    Case(
        name="recovery-of-a-child", at=STEADY, damage="UPDATE cf_chat_recovery SET value = :broken"
    ),
    Case(
        name="runs",
        damage="UPDATE cf_agent_tool_runs SET input_preview = :broken, output_json = :broken, "
        "display_metadata = :broken",
    ),
    Case(name="frames-of-runs", damage="UPDATE cf_agent_tool_frames SET body = :broken"),
    Case(
        name="the-child's-side-of-a-run",
        at=HELPER,
        damage="UPDATE cf_agent_tool_child_runs SET output_json = :broken, input_json = :broken, "
        "request_ids = :broken",
    ),
    Case(
        name="the-child's-side-of-a-running-run",
        at=STEADY,
        damage="UPDATE cf_agent_tool_child_runs SET input_json = :broken, request_ids = :broken",
    ),
    Case(
        name="milestones",
        at=HELPER,
        damage="UPDATE cf_agent_tool_milestones SET data_json = :broken",
    ),
    Case(
        name="payloads-of-schedules",
        damage="UPDATE cf_agents_schedules SET payload = :broken WHERE id NOT LIKE 'cf:%'",
        said="unexpected character",
        lost=frozenset(NOT_CALLED),
    ),
    Case(
        name="the-payload-of-a-queue-item",
        damage="UPDATE cf_agents_queues SET payload = :broken WHERE payload LIKE '%first%'",
        said="unexpected character",
        lost=frozenset({"queued first"}),
    ),
    Case(
        name="the-snapshot-of-a-fiber",
        damage="UPDATE cf_agents_runs SET snapshot = :broken",
        said="The snapshot of the fiber f-managed cannot be read",
        lost=frozenset({"managed recovered at {'step': 1}"}),
    ),
    Case(
        name="the-ledger-of-fibers",
        damage="UPDATE cf_agents_fibers SET snapshot = :broken, metadata_json = :broken",
    ),
    Case(
        name="whose-a-fiber-is",
        damage="UPDATE cf_agents_facet_runs SET owner_path = :broken",
        said="Nobody knows whose the fiber f-below is",
    ),
    Case(
        name="a-submission",
        damage="UPDATE cf_think_submissions SET messages_json = :broken, metadata_json = :broken",
    ),
    Case(
        name="a-wake-up",
        at=HOST,
        damage="UPDATE ramet_wakeups SET root = :broken",
        said="has a wake-up for nobody",
    ),
    Case(
        name="the-state",
        damage="UPDATE cf_agents_state SET state = :broken WHERE id = 'cf_state_row_id'",
        said="agent.db is no JSON",
    ),
]


def damaged(case: Case, folder: Path) -> Harness:
    """The data directory of a killed process, in which rows are damaged."""
    harness = desk_harness(unpacked(sorted(FOLDER.glob("*.zip"))[-1], folder))
    file = folder / "host.db" if case.at == HOST else harness.host.files.file_of(case.at)
    with closing(sqlite3.connect(file)) as database, database:
        assert database.execute(case.damage, {"broken": BROKEN}).rowcount > 0
    return harness


async def answered(desk: Desk, harness: Harness, submission_id: str) -> str | None:
    await desk.submit_messages("and now?", submission_id=submission_id)
    await harness.settle()
    found = desk.inspect_submission(submission_id)
    return None if found is None else found.status


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_damaged_row_is_told_once_and_keeps_nothing_else_from_going_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, case: Case
) -> None:
    async with damaged(case, tmp_path) as harness:
        client = await harness.connect(Desk, "main")
        await harness.advance(120)
        desk = await harness.agent(Desk, "main")
        assert client.closed is None
        assert await answered(desk, harness, "new") == "completed"
        assert await answered(await harness.agent(Desk, "other"), harness, "new") == "completed"
        await harness.advance(3600)
        lines = {row["line"] for row in harness.rows(Desk, "main", LEDGER)}
        expected = {"made", "managed recovered at {'step': 1}", "queued first", "queued second"}
        assert lines >= (expected | NOT_CALLED) - case.lost
        assert not lines & case.lost
    assert (case.said or "") in caplog.text
    assert bool(caplog.records) is (case.said is not None)


async def test_a_damaged_message_says_so_in_its_place_and_its_row_is_kept(tmp_path: Path) -> None:
    async with damaged(CASES[0], tmp_path) as harness:
        desk = await harness.agent(Desk, "main")
        await harness.advance(120)
        texts = [str(message["parts"]) for message in desk.messages]
        assert [DAMAGED in text for text in texts[:4]] == [False, False, True, False]
        stored = "SELECT message FROM cf_ai_chat_agent_messages WHERE position = 2"
        assert harness.rows(Desk, "main", stored) == [{"message": BROKEN}]


async def test_a_damaged_state_is_refused_each_time_and_healed_by_a_new_one(tmp_path: Path) -> None:
    async with damaged(CASES[-1], tmp_path) as harness:
        desk = await harness.agent(Desk, "main")
        for _ in range(2):
            with pytest.raises(DatabaseUnusable, match=r"The state of Desk in .*agent\.db is no"):
                assert desk.state
        client = await harness.connect(Desk, "main")
        assert client.of_type("cf_agent_state") == []
        desk.set_state({"topic": "wasps"})
        await harness.settle()
        assert [frame["state"] for frame in client.of_type("cf_agent_state")] == [
            {"topic": "wasps"}
        ]
