"""Code of agents that raises what is no error, as `sys.exit` does: it fails, and nothing else."""

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ramet
from ramet.core.callbacks import run_callback
from ramet.core.json import dumps
from ramet.core.options import AgentOptions, RetryOptions
from ramet.fibers.records import FiberContext, InterruptedFiber
from ramet.protocol.messages import text_of, user_message
from ramet.protocol.ui_message import UIMessage
from ramet.testing import Harness, ScriptedModel, ToolCall
from ramet.testing.quiet import quiet


class Unheard(BaseException):
    """Neither an error nor an exit."""


EXITS: dict[str, Callable[[], BaseException]] = {
    "sys.exit": lambda: SystemExit(3),
    "GeneratorExit": GeneratorExit,
    "another": Unheard,
}
NAMES = tuple(EXITS)
CALLS: list[str] = []


class Leaver(ramet.Agent[None]):
    options = AgentOptions(retry=RetryOptions(max_attempts=2, base_delay=0.1, max_delay=0.1))

    async def leave(self, kind: str) -> None:
        CALLS.append(kind)
        raise EXITS[kind]()

    def leave_at_once(self) -> None:
        CALLS.append("at once")
        sys.exit(3)

    async def stay(self, payload: str) -> None:
        CALLS.append(payload)

    async def hang(self, fiber: FiberContext) -> None:
        await asyncio.get_running_loop().create_future()

    async def on_fiber_recovered(self, fiber: InterruptedFiber) -> None:
        CALLS.append("recovered")
        sys.exit(3)


class Toolsmith(ramet.Think):
    kind = ""

    def get_model(self) -> ScriptedModel:
        return ScriptedModel([ToolCall("leave", {}), "on it goes"])

    def get_tools(self) -> list[Callable[..., object]]:
        return [interrupted if self.kind == "thread" else self.leave]

    async def leave(self) -> str:
        """Leave."""
        raise EXITS[self.kind]()


def interrupted() -> str:
    """Fail in a thread as nobody's Ctrl-C does."""
    raise KeyboardInterrupt("x")


interrupted.__name__ = "leave"


def asked(text: str) -> list[UIMessage]:
    return [user_message(text, id="q")]


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    CALLS.clear()


@pytest.mark.parametrize("kind", NAMES)
async def test_a_schedule_whose_callback_exits_has_failed_and_is_dropped(
    tmp_path: Path, kind: str
) -> None:
    async with Harness(agents=[Leaver], data_dir=tmp_path) as h:
        agent = await h.agent(Leaver, "a")
        await agent.schedule(1, agent.leave, kind)
        await agent.schedule(2, agent.stay, "later")
        await h.advance(60)
        assert [kind, kind, "later"] == CALLS
        assert await agent.list_schedules() == []


async def test_an_interval_whose_callback_exits_goes_on_in_its_time(tmp_path: Path) -> None:
    async with Harness(agents=[Leaver], data_dir=tmp_path) as h:
        agent = await h.agent(Leaver, "a")
        await agent.schedule_every(10, agent.leave_at_once)
        await h.advance(25)
        assert CALLS == ["at once"] * 4


@pytest.mark.parametrize("kind", NAMES)
async def test_a_queue_goes_on_after_an_item_that_exits(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Harness(agents=[Leaver], data_dir=tmp_path) as h:
        agent = await h.agent(Leaver, "a")
        await agent.queue(agent.leave, kind)
        await agent.queue(agent.stay, "next")
        with caplog.at_level(logging.ERROR):
            await h.advance(60)
        assert [kind, kind, "next"] == CALLS
        assert await agent.get_queue() == []
        assert "Error in Leaver:a" in caplog.text


@pytest.mark.parametrize("kind", NAMES)
async def test_a_managed_fiber_that_exits_ends_as_an_error(tmp_path: Path, kind: str) -> None:
    async def leave(fiber: FiberContext) -> None:
        raise EXITS[kind]()

    async with Harness(agents=[Leaver], data_dir=tmp_path) as h:
        agent = await h.agent(Leaver, "a")
        started = await agent.start_fiber("leave", leave, wait=True)
        assert started.status == "error"
        assert "in an agent" in (started.error or "")


async def test_a_recovery_hook_that_exits_has_failed_and_the_agent_opens(tmp_path: Path) -> None:
    async with Harness(agents=[Leaver], data_dir=tmp_path) as h:
        agent = await h.agent(Leaver, "a")
        await agent.start_fiber("hang", agent.hang, fiber_id="f")
        await h.crash()
        await h.restart()
        found = (await h.agent(Leaver, "a")).inspect_fiber("f")
        assert CALLS == ["recovered"]
        assert found is not None
        assert found.status == "error"


@pytest.mark.parametrize("kind", [*NAMES, "thread"])
async def test_a_tool_that_exits_fails_alone_and_the_answer_goes_on(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Toolsmith, "kind", kind)
    async with Harness(agents=[Toolsmith], data_dir=tmp_path) as h:
        agent = await h.agent(Toolsmith, "a")
        result = await agent.save_messages(asked("go"))
        assert result.status == "completed"
        assert '"state":"output-error"' in dumps(agent.messages[-1])
        assert text_of(agent.messages[-1]) == "on it goes"


def test_a_callback_that_is_thrown_away_while_it_waits_raises_nothing() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    waiting = run_callback(wait, ())
    task = loop.create_task(waiting)
    loop.run_until_complete(quiet())
    waiting.close()  # as the garbage collector does; it passes on whatever is raised
    assert not task.done()
    loop.close()
