"""What users may do wrong without the server, their data or other agents suffering from it."""

import sys
from pathlib import Path

import pytest

import ramet
from ramet.core.json import JsonValue, NotJson
from ramet.errors import DatabaseUnusable, InvalidArguments, StateRejected
from ramet.testing import Harness


class Wild(ramet.Agent[dict[str, JsonValue]]):
    initial_state = {"n": 0}

    @ramet.rpc
    async def leave(self) -> None:
        sys.exit(3)

    @ramet.rpc
    async def hello(self) -> str:
        return "hello"


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("BEGIN", "BEGIN"),
        ("  -- a note\n begin immediate", "BEGIN"),
        ("/* x */ COMMIT", "COMMIT"),
        ("savepoint a", "SAVEPOINT"),
        ("ATTACH 'x.db' AS x", "ATTACH"),
        ("PRAGMA journal_mode = DELETE", "PRAGMA JOURNAL_MODE"),
    ],
)
async def test_a_statement_that_would_change_the_connection_is_refused(
    tmp_path: Path, statement: str, named: str
) -> None:
    async with Harness(agents=[Wild], data_dir=tmp_path) as h:
        agent = await h.agent(Wild, "a")
        with pytest.raises(InvalidArguments, match=f"does not take {named}"):
            agent.sql(statement)
        agent.set_state({"n": 1})
        await h.crash()
        await h.restart()
        assert (await h.agent(Wild, "a")).state == {"n": 1}
        assert (await h.agent(Wild, "a")).sql("PRAGMA user_version")[0][0] == 0


async def test_a_state_that_contains_itself_is_refused(tmp_path: Path) -> None:
    async with Harness(agents=[Wild], data_dir=tmp_path) as h:
        agent = await h.agent(Wild, "a")
        state: dict[str, JsonValue] = {"n": 1}
        state["self"] = state
        with pytest.raises((NotJson, StateRejected)):
            agent.set_state(state)
        assert agent.state == {"n": 0}


async def test_code_that_calls_sys_exit_ends_its_own_call_and_not_the_server(
    tmp_path: Path,
) -> None:
    async with Harness(agents=[Wild], data_dir=tmp_path) as h:
        client = await h.connect(Wild, "a")
        await client.send({"type": "rpc", "id": "1", "method": "leave", "args": []})
        await client.send({"type": "rpc", "id": "2", "method": "hello", "args": []})
        assert client.of_type("rpc")[-1]["result"] == "hello"


async def test_a_database_that_lost_its_content_is_not_taken_for_a_new_one(
    tmp_path: Path,
) -> None:
    async with Harness(agents=[Wild], data_dir=tmp_path) as h:
        (await h.agent(Wild, "a")).set_state({"n": 1})
        await h.crash()
        h.host.files.file_of(h.path(Wild, "a")).write_bytes(b"")
        await h.restart()
        with pytest.raises(DatabaseUnusable, match="is empty: its content is lost"):
            await h.agent(Wild, "a")


@pytest.mark.parametrize(("code", "reason"), [(99_999, ""), (1005, ""), (4000, "é" * 200)])
async def test_a_close_that_no_socket_can_carry_is_refused(
    tmp_path: Path, code: int, reason: str
) -> None:
    async with Harness(agents=[Wild], data_dir=tmp_path) as h:
        await h.connect(Wild, "a")
        (connection,) = (await h.agent(Wild, "a")).get_connections()
        with pytest.raises(ValueError, match="close"):
            connection.close(code, reason)
