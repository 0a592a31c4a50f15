"""A child through its adapter: what it must have and what it must give."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ramet.agent_tools.children import Child, check_adapter
from ramet.agent_tools.records import Inspection, StoredChunk
from ramet.core.paths import AgentPath
from ramet.core.ports import Call
from ramet.errors import NotAnAgentTool

PATH = AgentPath.of(("Parent", "p"), ("Adapter", "r"))


class Adapter:
    """Every method of the adapter."""

    async def start_agent_tool_run(self, input: object, *, run_id: str) -> object:
        return Inspection(run_id=run_id, status="running", started_at=1)

    async def cancel_agent_tool_run(self, run_id: str, reason: str | None = None) -> object:
        return None

    async def inspect_agent_tool_run(self, run_id: str) -> object:
        return None

    async def get_agent_tool_chunks(self, run_id: str, *, after_sequence: int = -1) -> object:
        return [StoredChunk(sequence=after_sequence + 1, body="{}")]


class Paged(Adapter):
    async def get_agent_tool_chunks(
        self, run_id: str, *, after_sequence: int = -1, limit: int = 1
    ) -> object:
        return [StoredChunk(sequence=limit, body="{}")]


class Wrong(Adapter):
    async def start_agent_tool_run(self, input: object, *, run_id: str) -> object:
        return "started"

    async def inspect_agent_tool_run(self, run_id: str) -> object:
        return {"status": "completed"}

    async def get_agent_tool_chunks(self, run_id: str, *, after_sequence: int = -1) -> object:
        return ["{}"]


class Direct:
    """A caller that calls the child as it stands."""

    def __init__(self, child: object) -> None:
        self._child = child

    async def call(self, target: AgentPath, call: Call) -> object:
        method: Any = getattr(self._child, call.method)
        answer: object = await method(*call.args, **call.kwargs)
        return answer

    def stream(self, target: AgentPath, call: Call) -> AsyncIterator[object]:
        raise NotImplementedError


def reached(cls: type) -> Child:
    return Child(Direct(cls()), PATH, cls=cls, run_id="r")


@pytest.mark.behaviour("AT-042", "AT-043")
def test_a_class_with_the_four_methods_is_a_legal_child() -> None:
    check_adapter(Adapter)
    assert not reached(Adapter).tailable


@pytest.mark.behaviour("AT-042")
def test_methods_that_are_missing_or_not_async_are_named() -> None:
    class Half(Adapter):
        cancel_agent_tool_run = None  # type: ignore[assignment] # as a user may get it wrong

        def inspect_agent_tool_run(self, run_id: str) -> object:  # type: ignore[override] # too
            return None

    with pytest.raises(NotAnAgentTool) as raised:
        check_adapter(Half)
    assert "no async cancel_agent_tool_run, inspect_agent_tool_run." in str(raised.value)


async def test_a_child_that_pages_its_chunks_is_asked_for_pages() -> None:
    assert (await reached(Paged).chunks(-1))[0].sequence == 256
    assert (await reached(Adapter).chunks(4))[0].sequence == 5


@pytest.mark.parametrize(
    ("status", "output", "sentence"),
    [
        ("done", 1, "Adapter reports the run status 'done', which is none of starting, running,"),
        ("completed", object(), "Adapter gave an output that is not JSON"),
    ],
)
async def test_an_inspection_that_cannot_be_stored_is_refused(
    status: Any, output: Any, sentence: str
) -> None:
    class Careless(Adapter):
        async def inspect_agent_tool_run(self, run_id: str) -> object:
            return Inspection(run_id=run_id, status=status, started_at=1, output=output)

    child = Child(Direct(Careless()), PATH, cls=Adapter, run_id="r")

    with pytest.raises(NotAnAgentTool, match=sentence):
        await child.inspect()


async def test_an_output_is_taken_in_as_json() -> None:
    class Modelled(Adapter):
        async def inspect_agent_tool_run(self, run_id: str) -> object:
            output: Any = {"items": (1, 2)}
            return Inspection(run_id=run_id, status="completed", started_at=1, output=output)

    inspection = await reached(Modelled).inspect()

    assert inspection is not None
    assert inspection.output == {"items": [1, 2]}


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda child: child.start(1),
            "Wrong.start_agent_tool_run must give an Inspection, not str",
        ),
        (lambda child: child.inspect(), "must give an Inspection or None, not dict"),
        (lambda child: child.chunks(-1), "must give a list of StoredChunk, not list"),
    ],
)
async def test_an_answer_of_the_wrong_kind_is_named(ask: Any, sentence: str) -> None:
    with pytest.raises(NotAnAgentTool, match=sentence):
        await ask(reached(Wrong))
