"""Runs as a client collects them from their events, and as npm's hook does from the same frames."""

import json
import logging
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from ramet.client import AgentClient, AgentToolEvents
from ramet.core.json import JsonObject
from ramet.protocol import AgentToolState, chunks, run_events
from ramet.protocol.run_events import RunEvent, encode_event
from tests.support.recorded_runs import RECORDED, SCENES, play
from tests.unit.client.wire import ScriptedServer

NPM_NOW = 1_000
"""What the clock says where npm's hook is run."""


def recorded(name: str) -> tuple[list[str], JsonObject]:
    read: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return read["frames"], read["state"]


def as_npm_has_it(state: AgentToolState) -> JsonObject:
    """The state in the form of npm's hook."""
    return {
        "runsById": {key: run.to_json() for key, run in state.runs_by_id.items()},
        "runsByToolCallId": {
            key: [run.to_json() for run in runs] for key, runs in state.runs_by_tool_call_id.items()
        },
        "unboundRuns": [run.to_json() for run in state.unbound_runs],
    }


def without(keys: set[str], value: Any) -> Any:
    """The value without some keys of the objects in it."""
    if isinstance(value, dict):
        return {key: without(keys, item) for key, item in value.items() if key not in keys}
    return [without(keys, item) for item in value] if isinstance(value, list) else value


def shape(text: str) -> tuple[object, ...]:
    """What a frame is about, without its words."""
    told: dict[str, Any] = json.loads(text)
    event = told.get("event", {})
    return (told["type"], event.get("kind"), event.get("runId"), told.get("sequence"))


def frame(event: RunEvent, sequence: int = 0, *, replay: bool = False) -> str:
    return encode_event(event, sequence=sequence, parent_tool_call_id="call", replay=replay)


STARTED = run_events.Started(run_id="r", agent_type="Researcher")
WORD = run_events.Chunk(run_id="r", body=chunks.chunk_body(chunks.text_delta("t", "word")))
FINISHED = run_events.Finished(run_id="r", summary="done")
RUN = [frame(STARTED), frame(WORD, 1), frame(FINISHED, 2)]


async def collected(frames: list[str]) -> AgentToolState:
    """What the client has after these frames."""
    server = ScriptedServer()
    server.clock._start_ms = NPM_NOW
    async with server.connected() as client:
        runs = AgentToolEvents(client)
        await server.socket.say(*frames)
        return runs.state


@pytest.mark.behaviour("D27", "AT-141", "AT-154")
@pytest.mark.parametrize("name", SCENES)
async def test_recorded_frames_end_in_the_state_that_npms_hook_has(name: str) -> None:
    frames, npm = recorded(name)
    left_out = {"reason", "childStillRunning"} if name == "repaired" else set[str]()

    state = as_npm_has_it(await collected(frames))

    assert without(left_out, state) == without(left_out, npm)


@pytest.mark.behaviour("D27", "QK-007")
async def test_a_repaired_run_does_not_say_why_it_was_given_up() -> None:
    frames, npm = recorded("repaired")
    (before,) = (await collected(recorded("interrupted")[0])).runs_by_id.values()
    (run,) = (await collected(frames)).runs_by_id.values()

    assert (before.status, before.reason, before.child_still_running) == (
        "interrupted",
        "no-progress",
        True,
    )
    assert (run.status, run.reason, run.child_still_running) == ("completed", None, None)
    assert "no-progress" in json.dumps(npm)


@pytest.mark.parametrize("name", SCENES)
async def test_what_was_recorded_is_what_a_parent_sends_today(name: str, tmp_path: Path) -> None:
    frames, _ = recorded(name)

    told = [shape(frame) for frame in await play(name, tmp_path)]

    assert told == [shape(frame) for frame in frames], "run `python -m tests.support.recorded_runs`"


@pytest.mark.behaviour("AT-159", "AT-160", "AT-161")
async def test_the_same_frames_live_and_replayed_count_once() -> None:
    replayed = [frame(STARTED, replay=True), frame(WORD, 1, replay=True)]
    (run,) = (await collected([*RUN, *replayed, *RUN])).runs_by_id.values()

    assert [part["text"] for part in run.parts] == ["word"]
    assert run.status == "completed"


async def test_runs_survive_a_reconnect() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        runs = AgentToolEvents(client)
        await server.socket.say(*RUN[:2])
        await server.socket.hang_up()
        await server.advance(1)
        await server.socket.say(*RUN)

        (run,) = runs.runs_for_tool_call("call")
        assert [part["text"] for part in run.parts] == ["word"]
        assert run.status == "completed"


@pytest.mark.behaviour("AT-162")
async def test_after_a_reset_nothing_is_known_and_the_same_frames_count_again() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        runs = AgentToolEvents(client)
        await server.socket.say(*RUN)
        before = runs.state
        runs.reset_local_state()
        assert runs.state == AgentToolState()
        assert runs.runs_for_tool_call("call") == ()
        await server.socket.say(*RUN)

        assert runs.state == before


async def test_runs_are_found_by_id_by_tool_call_and_without_one() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        runs = AgentToolEvents(client)
        loose = run_events.Started(run_id="loose", agent_type="A")
        await server.socket.say(
            *RUN, encode_event(loose, sequence=0, parent_tool_call_id=None, replay=False)
        )

        assert set(runs.runs_by_id) == {"r", "loose"}
        assert [run.run_id for run in runs.runs_by_tool_call_id["call"]] == ["r"]
        assert [run.run_id for run in runs.unbound_runs] == ["loose"]
        assert runs.runs_for_tool_call("nobody's") == ()


async def test_changes_are_told_until_that_is_ended() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        runs = AgentToolEvents(client)
        told: list[str] = []
        stop = runs.on_change(lambda state: told.append(state.runs_by_id["r"].status))
        await server.socket.say(*RUN[:2], *RUN)
        stop()
        runs.reset_local_state()

        assert told == ["running", "running", "completed"]


async def test_what_was_told_before_anybody_listened_is_not_lost() -> None:
    server = ScriptedServer()
    async with server.connected() as client:
        await server.socket.say(*RUN[:2])
        runs = AgentToolEvents(client)
        await server.socket.say(RUN[2])
        late = AgentToolEvents(client)

        assert runs.runs_by_id["r"].status == "completed"
        assert late.runs_by_id == {}


async def test_too_much_of_it_is_dropped_and_said_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ScriptedServer()
    caplog.set_level(logging.WARNING, "ramet.client")
    async with server.connected(max_buffered_bytes=200) as client:
        await server.socket.say(*RUN)
        runs = AgentToolEvents(client)

        assert runs.runs_by_id == {}
        assert "make AgentToolEvents before the client connects" in caplog.text


async def test_it_can_be_made_before_the_client_connects_and_stopped() -> None:
    server = ScriptedServer()
    client: AgentClient = server.client()
    runs = AgentToolEvents(client)
    async with client:
        await server.socket.say(RUN[0])
        runs.close()
        await server.socket.say(RUN[2])

    assert runs.runs_by_id["r"].status == "running"


@pytest.mark.behaviour("AT-163")
async def test_foreign_frames_are_not_counted() -> None:
    odd = ['{"type":"agent-tool-event"}', '{"type":"agent-tool-event","event":{"kind":"x"}}', "[]"]

    assert await collected(odd) == AgentToolState()


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_a_run_is_there_only_once_it_has_started(order: tuple[int, ...]) -> None:
    state = await collected([RUN[at] for at in order])

    assert state.runs_by_id["r"].status == (
        "completed" if order.index(0) < order.index(2) else "running"
    )
