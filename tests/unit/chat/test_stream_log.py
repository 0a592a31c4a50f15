"""The chunks of answers on disk (RS-001 …, D1)."""

from pathlib import Path

import pytest

from ramet.chat.stream_log import PAGE_CHARACTERS, StoredStream, StreamLog
from ramet.storage import Database
from ramet.testing.manual_clock import ManualClock
from tests.unit.chat.support import body, chat_database


def stream(stream_id: str, request_id: str = "r1") -> StoredStream:
    return StoredStream(
        stream_id=stream_id, request_id=request_id, turn_id=f"turn-{stream_id}", message_id="m"
    )


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return chat_database(tmp_path)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(database: Database, clock: ManualClock) -> StreamLog:
    return StreamLog(database, clock, held=0)


def rows(database: Database) -> int:
    return len(database.query("SELECT 1 FROM cf_ai_chat_stream_chunks"))


def indexes(log: StreamLog, *, after: int = -1, limit: int = 100) -> list[int]:
    return [chunk.index for chunk in log.page("s1", after=after, limit=limit).chunks]


@pytest.mark.behaviour("D1", "RS-007", "RS-008")
def test_each_chunk_is_a_row_and_a_commit_of_its_own(log: StreamLog, database: Database) -> None:
    log.open(stream("s1"))
    before = database.commits
    for number in range(3):
        log.append("s1", number, body(number))
    assert database.commits - before == 3
    page = log.page("s1", after=-1)
    assert [(chunk.index, chunk.body) for chunk in page.chunks] == [
        (number, body(number)) for number in range(3)
    ]
    assert page.at_end


@pytest.mark.behaviour("RS-002", "RS-009")
def test_a_log_says_how_it_ended(log: StreamLog) -> None:
    log.open(stream("s1"))
    assert log.of_turn("turn-s1") == stream("s1")
    log.close("s1", "error")
    ended = log.of_request("r1")
    assert ended is not None
    assert (ended.status, ended.outcome) == ("error", "error")
    log.open(stream("s2"))
    log.close("s2", "aborted")
    ended = log.of_request("r1")
    assert ended is not None
    assert (ended.stream_id, ended.status, ended.outcome) == ("s2", "completed", "aborted")
    assert log.of_request("r9") is None


def test_pages_follow_each_other_without_gap(log: StreamLog) -> None:
    log.open(stream("s1"))
    for number in range(5):
        log.append("s1", number, body(number))
    assert indexes(log, limit=2) == [0, 1]
    assert indexes(log, after=1, limit=2) == [2, 3]
    assert not log.page("s1", after=1, limit=3).at_end, "there may be more"
    assert log.page("s1", after=4, limit=3).at_end


@pytest.mark.behaviour("D21")
def test_a_page_of_large_chunks_is_short(log: StreamLog) -> None:
    log.open(stream("s1"))
    for number in range(4):
        log.append("s1", number, "x" * (PAGE_CHARACTERS // 2 + 1))
    log.append("s1", 4, "x" * (3 * PAGE_CHARACTERS))
    assert indexes(log) == [0]
    assert indexes(log, after=3) == [4]


@pytest.mark.behaviour("RS-011", "D3")
def test_clearing_forgets_all_logs_but_those_of_runs(log: StreamLog, database: Database) -> None:
    for name, request_id in (("s1", "r1"), ("s2", "r2")):
        log.open(stream(name, request_id))
        log.append(name, 0, body(0))
    log.clear(keep=["r2"])
    assert rows(database) == 1
    assert [each.stream_id for each in log.all()] == ["s2"]


@pytest.mark.behaviour("RS-001", "D7")
def test_the_tables_have_the_columns_of_the_catalogue_and_what_turns_need(
    log: StreamLog, database: Database
) -> None:
    log.open(stream("s1"))
    columns = {
        table: [row["name"] for row in database.query(f"PRAGMA table_info({table})")]
        for table in ("cf_ai_chat_stream_chunks", "cf_ai_chat_stream_metadata")
    }
    assert columns == {
        "cf_ai_chat_stream_chunks": ["id", "stream_id", "body", "chunk_index", "created_at"],
        "cf_ai_chat_stream_metadata": [
            *("id", "request_id", "status", "created_at", "completed_at", "message_id"),
            *("is_continuation", "turn_id", "outcome", "number"),
        ],
    }
    ends = []
    for outcome in ("completed", "error", "aborted"):
        log.close("s1", outcome)
        ends.append(database.query("SELECT status, outcome FROM cf_ai_chat_stream_metadata")[0])
    assert [tuple(end) for end in ends] == [
        ("completed", "completed"),
        ("error", "error"),
        ("completed", "aborted"),
    ]


@pytest.mark.behaviour("RS-012", "RS-013", "D3")
def test_logs_that_ended_ten_minutes_ago_are_swept_but_not_those_of_runs(
    log: StreamLog, clock: ManualClock
) -> None:
    for name, request_id in (("s1", "r1"), ("s2", "r2"), ("s3", "r3")):
        log.open(stream(name, request_id))
        log.append(name, 0, body(0))
    log.close("s1", "completed")
    log.close("s2", "completed")
    clock.move(600)
    log.sweep(list)
    assert len(log.all()) == 3
    clock.move(0.001)
    log.sweep(lambda: ["r2"])
    assert [each.stream_id for each in log.all()] == ["s2", "s3"]


def test_the_switch_that_breaks_durability_holds_chunks_back_but_loses_none_in_memory(
    database: Database, clock: ManualClock
) -> None:
    log = StreamLog(database, clock, held=3)
    log.open(stream("s1"))
    for number in range(5):
        log.append("s1", number, body(number))
    assert rows(database) == 3
    assert indexes(log) == [0, 1, 2, 3, 4]
    log.close("s1", "completed")
    assert rows(database) == 5
