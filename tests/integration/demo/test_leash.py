"""A command on a leash: it ends with whoever holds it, with all that it started."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ramet.demo import leash
from ramet.demo.command_output import LONGEST_LINE, MOST_LINES, CommandOutput
from ramet.demo.leashed_command import leashed
from tests.integration.demo.stage import eventually, lives

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere groups only")

HOLDER = """
import subprocess, sys, time
process = subprocess.Popen([sys.executable, "-I", *sys.argv[1:]], stdin=subprocess.PIPE)
print(process.pid, flush=True)
time.sleep(600)
"""
STAYS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""
DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
time.sleep(600)
"""
ESCAPES = """
import subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
)
print(child.pid, flush=True)
"""
HIDES = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
    else:
        os._exit(0)
time.sleep(600)
"""
LEAVES_ONE_BEHIND = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
"""


async def output_of(code: str, folder: Path) -> tuple[int, list[str]]:
    """The exit code and the lines of a program that ends by itself."""
    found: list[str] = []
    async with leashed((sys.executable, "-c", code), folder=folder) as command:
        async for lines in command.lines():
            found += lines
        return await command.exit_code(), found


async def test_a_command_gives_its_lines_and_its_exit_code(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd()); print('oh', file=sys.stderr); sys.exit(3)"
    exit_code, lines = await output_of(code, tmp_path)
    assert (exit_code, sorted(lines)) == (3, sorted([str(tmp_path), "oh"]))


async def test_a_command_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    async with leashed(("no-such-command",), folder=tmp_path) as command:
        lines = [line async for block in command.lines() for line in block]
        assert lines == ["no-such-command: No such file or directory"]
        assert await command.exit_code() == leash.NOT_FOUND


async def test_a_command_that_a_signal_ends_says_which(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert await output_of(code, tmp_path) == (128 + signal.SIGKILL, [])


async def test_a_command_is_given_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    _, lines = await output_of("import os; print(sorted(os.environ))", tmp_path)
    assert "OPENAI_API_KEY" not in lines[0]
    assert "PATH" in lines[0]


async def test_a_command_that_does_not_listen_is_killed_after_the_grace(tmp_path: Path) -> None:
    command = (sys.executable, "-c", DEAF)
    async with leashed(command, folder=tmp_path, grace=0.2) as running:
        first = await anext(running.lines())
        pid = int(first[0])
        assert lives(pid)
    assert not lives(pid)
    assert await running.exit_code() == 128 + signal.SIGKILL


async def test_what_a_command_leaves_behind_in_its_group_ends_with_it(tmp_path: Path) -> None:
    exit_code, [pid] = await output_of(LEAVES_ONE_BEHIND, tmp_path)
    assert exit_code == 0
    await eventually(lambda: not lives(int(pid)))


async def test_the_output_ends_with_the_command_though_something_else_holds_it(
    tmp_path: Path,
) -> None:
    exit_code, [pid] = await output_of(ESCAPES, tmp_path)
    with suppress(ProcessLookupError):
        os.kill(int(pid), signal.SIGKILL)
    assert exit_code == 0


@ON_LINUX
async def test_what_a_command_leaves_behind_in_another_session_ends_with_it(tmp_path: Path) -> None:
    _, [pid] = await output_of(ESCAPES, tmp_path)
    await eventually(lambda: not lives(int(pid)))


@ON_LINUX
async def test_what_hides_from_the_group_of_a_command_ends_when_that_is_cancelled(
    tmp_path: Path,
) -> None:
    async with leashed((sys.executable, "-c", HIDES), folder=tmp_path) as running:
        pid = int((await anext(running.lines()))[0])
        assert lives(pid)
    await eventually(lambda: not lives(pid))


async def test_however_much_is_printed_little_is_kept(tmp_path: Path) -> None:
    code = "for number in range(100_000): print(number)\nprint('x' * 5_000_000)"
    output = CommandOutput()
    async with leashed((sys.executable, "-c", code), folder=tmp_path) as command:
        async for lines in command.lines():
            for line in lines:
                output.take(line)
    assert output.lines == 100_001
    assert len(output.last) == MOST_LINES
    assert output.last[-1] == "x" * LONGEST_LINE


def held(code: str = STAYS) -> "subprocess.Popen[str]":
    """A process that holds the leash of a command."""
    command = (sys.executable, "-c", code)
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(leash.__file__), "5", *command],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.kill
@pytest.mark.parametrize("killed", ["the holder", "the leash"])
async def test_a_command_does_not_outlive_a_kill_9_of(killed: str) -> None:
    holder = held()
    assert holder.stdout is not None
    own = int(holder.stdout.readline())
    command, child = map(int, holder.stdout.readline().split())
    assert lives(command)
    assert lives(child)
    os.kill(holder.pid if killed == "the holder" else own, signal.SIGKILL)
    await eventually(lambda: not lives(command))
    if killed == "the holder":
        await eventually(lambda: not lives(child) and not lives(own))
    else:
        os.kill(child, signal.SIGKILL)
        holder.kill()
    holder.wait()
    holder.stdout.close()


@ON_LINUX
@pytest.mark.kill
async def test_what_hides_from_the_group_of_a_command_does_not_outlive_a_kill_9_of_the_holder() -> (
    None
):
    holder = held(HIDES)
    assert holder.stdout is not None
    own, hidden = int(holder.stdout.readline()), int(holder.stdout.readline())
    assert lives(hidden)
    holder.kill()
    await eventually(lambda: not lives(hidden) and not lives(own))
    holder.wait()
    holder.stdout.close()
