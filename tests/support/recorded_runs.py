"""Records what a parent's clients are told of runs, and what npm's hook makes of it.

`python -m tests.support.recorded_runs` writes `tests/unit/client/recorded/` anew; it needs Node and
the packages of `tests/browser`.
"""

import asyncio
import json
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import ramet
from ramet.core.json import JsonObject, dumps
from ramet.protocol import chunks
from ramet.testing import Cut, Ending, Gate, Harness, ScriptedChild, TestClient
from tests.support.npm import NPM_FOLDER

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "unit" / "client" / "recorded"
REDUCER = NPM_FOLDER / "rig" / "reduce_runs.mjs"


class Parent(ramet.Agent[object]):
    """Starts runs as its scene says."""


class Middle(ramet.AIChatAgent):
    """A child that has a run of its own."""

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[JsonObject]:
        yield chunks.start_step()
        yield chunks.tool_input_start("inner", "look")
        yield chunks.tool_input_available("inner", "look", {"what": "bees"})
        result = await self.run_agent_tool(
            Leaf, input="bees", run_id="leaf", parent_tool_call_id="inner"
        )
        yield chunks.tool_output_available("inner", result.summary)
        yield chunks.text_start("t")
        yield chunks.text_delta("t", "found")
        yield chunks.text_end("t")


def said(*words: str) -> list[JsonObject]:
    """The chunks of a text part."""
    deltas = [chunks.text_delta("text", word) for word in words]
    return [chunks.text_start("text"), *deltas, chunks.text_end("text")]


class Scenes:
    """A host, and the scenes that are played on it, with gates where children wait."""

    def __init__(self, folder: Path) -> None:
        self.gate = Gate()
        self.cuts = (Gate(), Gate())
        thought: list[JsonObject] = [
            chunks.reasoning_start("r"),
            chunks.reasoning_delta("r", "hm"),
            chunks.reasoning_end("r"),
        ]
        half = ramet.Milestone(name="half", sequence=0, at=5, data={"seen": 2})
        self.talker = ScriptedChild.script(
            "Talker",
            [
                *thought,
                *said("one", " two"),
                ramet.Progress(at=7, fraction=0.5, message="half", phase="reading"),
                half,
                self.gate,
                *said("three"),
                chunks.data("note", {"n": 1}, data_id="n"),
                chunks.data("note", {"n": 2}, data_id="n"),
                ramet.Progress(at=9, fraction=1.0, data={"left": 0}),
                "four",
            ],
            ending=Ending(summary="said it"),
        )
        self.failing = ScriptedChild.script(
            "Failing", said("so far"), ending=Ending(status="error", error="kaput")
        )
        self.cut = ScriptedChild.script(
            "Lost",
            [*said("begun"), self.cuts[0], Cut(), self.cuts[1], Cut(), self.gate],
            ending=Ending(summary="after all"),
        )
        self.harness = Harness(
            agents=[Parent],
            sub_agents=[self.talker, self.failing, self.cut, Middle, Leaf],
            data_dir=folder,
        )
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, cls: type, run_id: str, **options: Any) -> None:
        """Start a run and let it go on as far as it can."""
        parent = await self.harness.agent(Parent, "p")
        work: Coroutine[Any, Any, object] = parent.run_agent_tool(
            cls, input={"topic": run_id}, run_id=run_id, **options
        )
        self._tasks.add(asyncio.get_running_loop().create_task(work))
        await self.harness.settle()

    async def client(self) -> TestClient:
        """A new client of the parent."""
        return await self.harness.connect(Parent, "p")

    async def fan_out(self) -> Sequence[str]:
        """Two runs of one tool call, the later one first by order; and one of another call."""
        client = await self.client()
        await self.run(self.talker, "b", parent_tool_call_id="call", display_order=1)
        await self.run(
            self.talker,
            "a",
            parent_tool_call_id="call",
            display={"name": "Talker", "icon": "🐝"},
        )
        self.gate.open()
        await self.harness.settle()
        await self.run(self.talker, "c", parent_tool_call_id="other", input_preview="see c")
        return client.texts

    async def failed(self) -> Sequence[str]:
        """A run that fails, a run that is cancelled, both without a tool call."""
        client = await self.client()
        await self.run(self.failing, "f")
        await self.run(self.talker, "t")
        parent = await self.harness.agent(Parent, "p")
        await parent.cancel_agent_tool("t", "not needed")
        await self.harness.settle()
        return client.texts

    async def interrupted(self) -> Sequence[str]:
        """A run whose child is lost from sight."""
        client = await self.client()
        await self.run(self.cut, "r", parent_tool_call_id="call")
        for gate in self.cuts:
            gate.open()
            await self.harness.settle()
        return client.texts

    async def repaired(self) -> Sequence[str]:
        """The same, and the child turns out to have ended well."""
        texts = await self.interrupted()
        self.gate.open()
        await self.harness.settle()
        await self.run(self.cut, "r", parent_tool_call_id="call")
        return texts

    async def reconnected(self) -> Sequence[str]:
        """A client that loses its connection in the middle, and again after the end."""
        first = await self.client()
        await self.run(self.talker, "b", parent_tool_call_id="call", display_order=1)
        await self.run(self.failing, "f", parent_tool_call_id="call")
        await first.close()
        second = await self.client()
        self.gate.open()
        await self.harness.settle()
        await second.close()
        third = await self.client()
        return [*first.texts, *second.texts, *third.texts]

    async def nested(self) -> Sequence[str]:
        """A child that has a run of its own, seen from above."""
        client = await self.client()
        await self.run(Middle, "m", parent_tool_call_id="call")
        return client.texts

    async def nested_inside(self) -> Sequence[str]:
        """The same, seen from inside the child by a client that comes afterwards."""
        await self.run(Middle, "m", parent_tool_call_id="call")
        client = await self.harness.connect(Parent, "p", [(Middle, "m")])
        return client.texts

    async def end(self) -> None:
        """End what still runs."""
        self.gate.open()
        for gate in self.cuts:
            gate.open()
        for task in self._tasks:
            task.cancel()
        await self.harness.settle()


Leaf = ScriptedChild.script("Leaf", said("leaf"), ending=Ending(summary="a leaf"))

SCENES = (
    "fan_out",
    "failed",
    "interrupted",
    "repaired",
    "reconnected",
    "nested",
    "nested_inside",
)


async def play(name: str, folder: Path) -> list[str]:
    """The frames that the clients of a scene are sent, in order."""
    scenes = Scenes(folder)
    scene: Callable[[], Awaitable[Sequence[str]]] = getattr(scenes, name)
    async with scenes.harness:
        texts = [*await scene()]
        await scenes.end()
    return texts


def reduced_by_npm(texts: Sequence[str]) -> JsonObject:
    """What npm's hook makes of the frames."""
    done = subprocess.run(
        ["node", str(REDUCER)],
        cwd=REDUCER.parent,
        input=dumps([*texts]),
        capture_output=True,
        text=True,
        check=True,
    )
    state: JsonObject = json.loads(done.stdout)
    return state


def main() -> None:
    """Record every scene."""
    RECORDED.mkdir(exist_ok=True)
    for name in SCENES:
        with tempfile.TemporaryDirectory() as folder:
            texts = asyncio.run(play(name, Path(folder)))
        recorded = {"frames": texts, "state": reduced_by_npm(texts)}
        text = json.dumps(recorded, indent=1, ensure_ascii=False)
        (RECORDED / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
