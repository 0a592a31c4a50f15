"""The demo's agents in one process, over a small reference and tasks that a test chooses."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import ramet
from ramet.demo import leash
from ramet.demo.assistant import Assistant
from ramet.demo.build_runner import BuildRunner
from ramet.demo.folder import Folder
from ramet.demo.offline_model import OfflineModel
from ramet.demo.planner import Planner
from ramet.demo.researcher import Researcher
from ramet.demo.stage import Stage, Staged
from ramet.demo.tasks import Task
from ramet.protocol.messages import text_of, user_message
from ramet.protocol.ui_message import UIMessage
from ramet.testing import Harness, TestClient
from tests.unit.demo.rig import no_sleep
from tests.unit.demo.small_reference import small_reference

PATIENCE = 20.0
"""Seconds that real processes may take for anything."""


@dataclass
class Demo:
    """The assistant of one user, with what its page is sent."""

    harness: Harness
    assistant: Assistant
    page: TestClient

    async def ask(self, question: str) -> str:
        """Put a question and return the text of its answer."""
        asked = user_message(question, id=f"q{len(self.assistant.messages)}")
        result = await self.assistant.save_messages([asked])
        assert result.message is not None
        return spoken(result.message)

    async def reopened(self) -> "Demo":
        """The same assistant after a restart."""
        return await _opened(self.harness)

    def run(self) -> ramet.RunInfo:
        """The only run."""
        [run] = self.assistant.list_agent_tool_runs()
        return run

    async def reported(self, status: str) -> ramet.RunInfo:
        """Wait until the only run has ended so, and the conversation knows."""
        await eventually(lambda: self.run().status == status)
        await self.harness.settle()
        return self.run()

    def texts(self) -> list[str]:
        """The conversation as `role: text` lines."""
        return [f"{each['role']}: {spoken(each)}" for each in self.assistant.messages]


def spoken(message: UIMessage) -> str:
    """The text of a message."""
    return text_of(message)


@asynccontextmanager
async def opened_demo(
    root: Path,
    tasks: dict[str, str] | None = None,
    *,
    sleep: Callable[[float], Awaitable[None]] = no_sleep,
) -> AsyncIterator[Demo]:
    """The demo over a folder, whose tasks are Python programs by their names."""
    project = root / "project"
    project.mkdir(exist_ok=True)
    Staged.set_stage(
        Stage(
            model=OfflineModel(sleep=sleep),
            model_label="offline",
            offline=True,
            corpus=small_reference(),
            folder=Folder(project),
            tasks={name: program(name, code) for name, code in (tasks or {}).items()},
        )
    )
    async with Harness(
        agents=[Assistant],
        sub_agents=[Researcher, Planner, BuildRunner],
        data_dir=root / "data",
    ) as harness:
        yield await _opened(harness)
    await eventually(lambda: not leashes())  # the event loop must see them end


async def _opened(harness: Harness) -> Demo:
    page = await harness.connect(Assistant, "ada")
    return Demo(harness, await harness.agent(Assistant, "ada"), page)


def program(name: str, code: str) -> Task:
    """A task that runs Python code."""
    return Task(name=name, title=f"The {name}", command=(sys.executable, "-uc", code))


async def eventually(condition: Callable[[], object]) -> None:
    """Wait in real time, as processes do, until a condition holds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while True:
        waited: asyncio.Future[None] = loop.create_future()
        loop.call_later(0.02, waited.set_result, None)
        await waited
        if condition():
            return
        assert loop.time() < end, "it did not come about"


def leashes() -> list[int]:
    """The processes of this one that keep a command on its leash, ended or not; only on Linux."""
    tasks = Path("/proc/self/task").glob("*/children")
    children = [int(pid) for children in tasks for pid in children.read_text().split()]
    return [pid for pid in children if _is_leash(pid)]


def _is_leash(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return not command or str(leash.__file__).encode() in command
    return False


def lives(pid: int) -> bool:
    """Whether a process is there and no mere zombie."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):  # it may go between two looks
        return False
