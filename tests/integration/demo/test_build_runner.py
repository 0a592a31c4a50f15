"""A process that an agent runs: what is told of it, and that nothing is left of it."""

from pathlib import Path

import pytest

from ramet.demo.assistant import Assistant
from ramet.demo.build_runner import BuildRunner
from ramet.protocol.messages import text_of, user_message
from tests.integration.demo.stage import Demo, eventually, lives, opened_demo

ALL_WELL = """
print("collected 2 items")
for number in (1, 2):
    print(f"test_{number} PASSED [{number * 50:3}%]")
"""
ONE_FAILS = """
import sys
print("collected 2 items")
print("test_1 FAILED [ 50%]")
print("test_2 FAILED [100%]")
sys.exit(3)
"""
TWO_THAT_STAY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pids", "w").write(f"{os.getpid()} {child.pid}\\n")
print("collected 1 items")
time.sleep(600)
"""
DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("pids", "w").write(f"{os.getpid()}\\n")
time.sleep(600)
"""


NAMES = ("collected", "first-failure", "started-again")


def pids(root: Path) -> list[int]:
    """The processes that a program has written down; none while it has not."""
    file = root / "project" / "pids"
    text = file.read_text() if file.exists() else ""
    return [int(pid) for pid in text.split()] if text.endswith("\n") else []


def milestones(demo: Demo) -> list[str]:
    """The milestones of the only run that clients were shown."""
    query = "SELECT body FROM cf_agent_tool_frames WHERE kind = 'milestone' ORDER BY number"
    bodies = [str(row["body"]) for row in demo.harness.rows(Assistant, "ada", query)]
    return [name for body in bodies for name in NAMES if f'"{name}"' in body]


async def test_a_build_runs_in_the_background_and_its_end_is_a_message(tmp_path: Path) -> None:
    async with opened_demo(tmp_path, {"tests": ALL_WELL}) as demo:
        answer = await demo.ask("Run the tests")
        assert answer.startswith("At work in the background: **The tests**.")
        await demo.reported("completed")

        *_, notice, told = demo.texts()
        assert notice.startswith("user: In the background: The tests has finished.")
        assert told.startswith("assistant: **The tests** is done.")
        assert "ended well (exit code 0); the last 3 of 3 lines" in told
        assert "test_2 PASSED [100%]" in told
        assert milestones(demo) == ["collected"]


async def test_a_build_that_fails_says_where_and_with_which_code(tmp_path: Path) -> None:
    async with opened_demo(tmp_path, {"tests": ONE_FAILS}) as demo:
        await demo.ask("Run the tests")
        run = await demo.reported("completed")

        inspection = await demo.assistant.inspect_agent_tool(run.run_id)
        assert inspection is not None
        assert inspection.result is not None
        assert isinstance(inspection.result.output, dict)
        assert inspection.result.output["exit_code"] == 3
        assert milestones(demo) == ["collected", "first-failure"]
        assert any("— test_1 FAILED" in text for text in demo.texts())
        assert "failed with exit code 3" in demo.texts()[-1]


async def test_cancelling_a_build_ends_the_whole_process_group(tmp_path: Path) -> None:
    async with opened_demo(tmp_path, {"tests": TWO_THAT_STAY}) as demo:
        await demo.ask("Run the tests")
        await eventually(lambda: pids(tmp_path))
        both = pids(tmp_path)
        assert all(lives(pid) for pid in both)

        await demo.page.send(
            {"type": "rpc", "id": "1", "method": "cancelRun", "args": [demo.run().run_id]}
        )
        await demo.reported("aborted")
        await eventually(lambda: not any(lives(pid) for pid in both))
        assert len(both) == 2
        assert not any(text.startswith("user: In the background") for text in demo.texts())


async def test_a_build_that_dies_with_its_instance_leaves_no_process_and_is_run_again(
    tmp_path: Path,
) -> None:
    async with opened_demo(tmp_path, {"tests": TWO_THAT_STAY}) as demo:
        await demo.ask("Run the tests")
        await eventually(lambda: pids(tmp_path))
        first = pids(tmp_path)
        await demo.harness.crash()
        await eventually(lambda: not any(lives(pid) for pid in first))

        (tmp_path / "project" / "pids").unlink()
        await demo.harness.restart()
        await demo.harness.advance(6)
        await eventually(lambda: pids(tmp_path))
        second = pids(tmp_path)
        assert set(first).isdisjoint(second)
    await eventually(lambda: not any(lives(pid) for pid in second))


async def test_a_task_is_run_once_at_a_time(tmp_path: Path) -> None:
    async with opened_demo(tmp_path, {"tests": TWO_THAT_STAY}) as demo:
        await demo.ask("Run the tests")
        answer = await demo.ask("Run the tests")
        assert "The tests is at work already." in answer
        assert len(demo.assistant.list_agent_tool_runs()) == 1


async def test_a_task_that_is_not_on_the_list_is_not_run(tmp_path: Path) -> None:
    async with opened_demo(tmp_path, {"syntax": ALL_WELL}) as demo:
        answer = await demo.ask("Run the tests")
        assert "'tests' cannot be run in this folder, only: syntax." in answer
        assert demo.assistant.list_agent_tool_runs() == []


@pytest.mark.parametrize("typed", ["ls", '{"task": "ls -l"}', '{"task": ["ls"]}', "[]"])
async def test_what_a_visitor_types_is_never_a_command(tmp_path: Path, typed: str) -> None:
    async with opened_demo(tmp_path, {"tests": ALL_WELL}) as demo:
        await demo.ask("Run the tests")
        run = await demo.reported("completed")
        builder = await demo.harness.agent(Assistant, "ada", sub=[(BuildRunner, run.run_id)])
        assert isinstance(builder, BuildRunner)
        result = await builder.save_messages([user_message(typed, id="typed")])
        assert result.message is not None
        assert text_of(result.message) == "I run one of these and nothing else: tests."
