"""The registry's table: its columns, and values that are not what they should be."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from ramet.agent_tools import run_store
from ramet.agent_tools.policy import Ending, interruption
from ramet.agent_tools.run_store import RunStore, StoredRun
from ramet.agent_tools.schema import AGENT_TOOL_MIGRATIONS
from ramet.protocol.run_events import ABSENT
from ramet.storage import Database, combined
from tests.support.databases import open_database

COLUMNS = """
run_id parent_tool_call_id agent_type input_preview input_redacted status summary output_json
error_message interrupted_reason child_still_running display_metadata display_order started_at
completed_at detached detached_on_finish detached_notify_source detached_max_budget_at
detached_no_progress_budget_ms detached_on_milestones last_progress_at finish_claimed_at
finish_delivered_at give_up_claimed_at give_up_delivered_at
""".split()


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return open_database(tmp_path / "agent.db", combined(AGENT_TOOL_MIGRATIONS))


@pytest.fixture
def runs(database: Database) -> RunStore:
    return RunStore(database)


def run(run_id: str = "r", **fields: object) -> StoredRun:
    return StoredRun(run_id=run_id, agent_type="A", status="running", **fields)  # type: ignore[arg-type] # named by each test


@pytest.mark.behaviour("AT-025", "AT-026", "AT-027", "D7")
def test_the_table_has_every_column_and_index_from_the_first_version_on(
    database: Database,
) -> None:
    columns = database.query("SELECT name FROM pragma_table_info('cf_agent_tool_runs')")
    indexes = database.query(
        "SELECT name FROM pragma_index_info('cf_agent_tool_runs_by_call') ORDER BY seqno"
    )

    names = [row["name"] for row in columns]
    assert [name for name in names if name in COLUMNS] == COLUMNS
    assert set(names) - set(COLUMNS) == {
        "call_position",
        "recovery_root",
        "class_gone_since",
        "input_digest",
    }
    assert [row["name"] for row in indexes] == ["parent_tool_call_id", "display_order"]


@pytest.mark.behaviour("AT-029", "AT-068")
def test_what_is_absent_is_null_and_null_is_a_value(runs: RunStore, database: Database) -> None:
    runs.add(run("absent"))
    runs.add(run("null", input_preview=None, display={"name": "R"}))

    absent, null = runs.get("absent"), runs.get("null")

    assert absent is not None
    assert null is not None
    assert (absent.input_preview, absent.output, absent.display) == (ABSENT, ABSENT, None)
    assert (null.input_preview, null.display) == (None, {"name": "R"})
    stored = database.query("SELECT input_preview FROM cf_agent_tool_runs ORDER BY rowid")
    assert [row["input_preview"] for row in stored] == [None, "null"]


@pytest.mark.behaviour("AT-029")
def test_a_stored_value_that_is_not_json_is_given_back_as_it_is(
    runs: RunStore, database: Database
) -> None:
    runs.add(run())
    database.run("UPDATE cf_agent_tool_runs SET input_preview = '{oops', output_json = 'x'")

    found = runs.get("r")

    assert found is not None
    assert (found.input_preview, found.output) == ("{oops", "x")


@pytest.mark.behaviour("AT-030", "AT-059")
def test_a_repair_clears_what_belongs_to_the_interruption(
    runs: RunStore, database: Database
) -> None:
    runs.add(run())
    assert runs.seal("r", interruption("no-progress", child_still_running=True), 5)
    [row] = database.query("SELECT child_still_running, interrupted_reason FROM cf_agent_tool_runs")
    assert tuple(row) == (1, "no-progress")

    assert runs.seal("r", Ending(status="completed", output=None), 6)

    found = runs.get("r")
    assert found is not None
    assert (found.status, found.reason, found.child_still_running) == ("completed", None, None)
    assert (found.output, found.completed_at) == (None, 6)


@pytest.mark.behaviour("AT-058", "AT-060")
def test_a_hard_terminal_is_only_filled_up(runs: RunStore) -> None:
    runs.add(run())
    runs.seal("r", Ending(status="completed", summary="first"), 5)

    assert not runs.seal("r", Ending(status="error", error="late"), 6)
    runs.fill("r", Ending(status="completed", output=[1], summary="late"))

    found = runs.get("r")
    assert found is not None
    assert (found.status, found.summary, found.output) == ("completed", "first", [1])


@pytest.mark.behaviour("AT-039")
def test_only_a_starting_run_is_marked_running(runs: RunStore) -> None:
    runs.add(StoredRun(run_id="s", agent_type="A", status="starting"))
    runs.add(run("r"))

    assert runs.mark_running("s")
    assert not runs.mark_running("r")
    assert not runs.mark_running("unknown")


def test_runs_of_many_tool_calls_are_found(runs: RunStore) -> None:
    for number in range(1200):
        runs.add(run(f"r{number}", parent_tool_call_id=f"c{number}", started_at=number))

    found = runs.of_calls([f"c{number}" for number in range(0, 1200, 2)], 3)

    assert [each.run_id for each in found] == ["r1198", "r1196", "r1194"]


@pytest.mark.parametrize(
    ("statement", "values", "index"),
    [
        (run_store.GET, 1, "autoindex"),
        (run_store.UNFINISHED, 0, "by_status"),
        (run_store.UNFINISHED_AWAITED, 0, "by_status"),
        (run_store.COUNT_UNFINISHED, 0, "by_status"),
        (run_store.COUNT_LET_GO, 0, "by_status"),
        (run_store.NOT_COMPLETED, 4, "by_status"),
        (run_store.STARTED_BEFORE, 4, "by_time"),
        (run_store.OF_CALL, 4, "by_call"),
        (run_store.OF_CALLS, 2, "by_call"),
        (run_store.NEWEST, 1, "by_time"),
        (run_store.OUTSTANDING, 0, "outstanding"),
    ],
)
def test_runs_that_do_not_matter_are_not_read(
    database: Database, statement: str, values: int, index: str
) -> None:
    plan = database.query("EXPLAIN QUERY PLAN " + statement, *["[]"] * values)
    details = [str(row["detail"]) for row in plan if "cf_agent_tool_runs" in str(row["detail"])]
    assert details
    assert all(index in detail for detail in details), details


def test_whatever_is_asked_for_together_is_what_is_found(runs: RunStore) -> None:
    statuses = ["completed", "error", "aborted", "interrupted", "running"]
    for number in range(20):
        runs.add(
            run(
                f"r{number}",
                parent_tool_call_id="call" if number % 3 else None,
                started_at=number // 2,
            )
        )
        status: Any = statuses[number % 5]
        if status != "running":
            runs.seal(f"r{number}", Ending(status=status), number)
    every = runs.matching()
    assert [each.run_id for each in every] == [f"r{number}" for number in range(20)]
    calls, before = [None, "call", "other"], [None, 4]
    sets = [None, ["error"], ["error", "aborted"], ["completed", "error"], []]
    for call, wanted, border in itertools.product(calls, sets, before):
        found = runs.matching(
            parent_tool_call_id=call, statuses=wanted, started_before=border, agent_type="A"
        )
        assert found == [
            each
            for each in every
            if (call is None or each.parent_tool_call_id == call)
            and (wanted is None or each.status in wanted)
            and (border is None or each.started_at < border)
        ]
    assert runs.matching(agent_type="B") == []
