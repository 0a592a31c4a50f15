"""Calls and states of clients that end or look in odd ways: each gets an answer."""

import asyncio
from pathlib import Path

import pytest

import ramet
from ramet.core.json import JsonObject, JsonValue, dumps
from ramet.core.options import HostOptions
from ramet.protocol import types
from ramet.testing import Harness


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


RAISED: dict[str, BaseException] = {
    "cancelled": asyncio.CancelledError(),
    "base": BaseException("b"),
    "group": BaseExceptionGroup("g", [BaseException("x")]),
    "exit": SystemExit(2),
    "mute": Mute(),
    "surrogate": ValueError("x\ud800"),
}


class Odd(ramet.Agent[JsonValue]):
    initial_state: JsonValue = {"n": 0}

    @ramet.rpc
    async def fail(self, how: str) -> None:
        raise RAISED[how]

    @ramet.rpc(streaming=True)
    async def flood(self, stream: ramet.RpcStream, count: int) -> int:
        for _ in range(count):
            stream.send("x" * 100)
            await stream.drain()
        return count

    @ramet.rpc
    def echo(self, value: JsonValue) -> JsonValue:
        return value


def rpc_frame(method: str, *args: JsonValue) -> JsonObject:
    return {"type": types.RPC, "id": "1", "method": method, "args": list(args)}


@pytest.mark.parametrize("how", RAISED)
async def test_a_call_is_answered_whatever_it_raises(tmp_path: Path, how: str) -> None:
    async with Harness(agents=[Odd], data_dir=tmp_path) as h:
        client = await h.connect(Odd, "a")
        await client.send(rpc_frame("fail", how))
        answers = client.of_type(types.RPC)
        assert [answer["success"] for answer in answers] == [False]
        assert answers[0]["error"]


async def test_half_an_emoji_comes_back_replaced(tmp_path: Path) -> None:
    async with Harness(agents=[Odd], data_dir=tmp_path) as h:
        client = await h.connect(Odd, "a")
        await client.send(dumps(rpc_frame("echo", "cut CUT")).replace("CUT", r"\ud83d"))
        assert client.of_type(types.RPC)[0]["result"] == "cut \N{REPLACEMENT CHARACTER}"


async def test_a_state_too_deep_to_send_is_refused_and_the_truth_is_told(tmp_path: Path) -> None:
    async with Harness(agents=[Odd], data_dir=tmp_path) as h:
        client = await h.connect(Odd, "a")
        text = '{"type":"cf_agent_state","state":' + "[" * 254 + "]" * 254 + "}"
        before = len(client.frames)
        await client.send(text)
        assert [frame["type"] for frame in client.frames[before:]] == [
            types.STATE_ERROR,
            types.STATE,
        ]
        assert client.frames[-1]["state"] == {"n": 0}
        assert (await h.agent(Odd, "a")).state == {"n": 0}


async def test_a_stream_that_drains_floods_no_client_that_reads(tmp_path: Path) -> None:
    options = HostOptions(outbox_bytes=4096)
    async with Harness(agents=[Odd], data_dir=tmp_path, options=options) as h:
        client = await h.connect(Odd, "a")
        await client.send(rpc_frame("flood", 200))
        assert client.closed is None
        answers = client.of_type(types.RPC)
        assert len(answers) == 201
        assert (answers[-1]["done"], answers[-1]["result"]) == (True, 200)
