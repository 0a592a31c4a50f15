"""Runs one command for a process that may be killed: `python leash.py GRACE COMMAND …`.

The other end of standard input is the leash. Once it is let go, by closing it or by the death of
whoever holds it, the command's whole process group is told to end, and killed after GRACE seconds.
The command's exit code becomes this process's; what the command leaves behind in its group is
killed. On Linux that goes for everything that it has started, in whatever session that is by now.
A file to be run, not imported: it needs nothing but the standard library.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
NOT_FOUND = 127
DRAIN_SECONDS = 1.0


def main(grace: float, command: list[str]) -> int:
    """Run the command on its leash; returns its exit code, or 128 and the signal that ended it."""
    _set_for_process(PR_SET_CHILD_SUBREAPER, 1)  # whose parent ends is below this one then
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
    except OSError as error:
        os.write(1, f"{command[0]}: {error.strerror}\n".encode())
        return NOT_FOUND
    for work in (_watch_leash, _pass_on):
        threading.Thread(target=work, args=(process, grace), daemon=True).start()
    code = process.wait()
    _kill_all(process)
    # The output ends with the command, even where something got out of its group and holds it.
    _passed_on.wait(DRAIN_SECONDS)
    return code if code >= 0 else 128 - code


_passed_on = threading.Event()


def _watch_leash(process: subprocess.Popen[bytes], grace: float) -> None:
    while os.read(0, 1024):
        pass
    _stop(process, grace)


def _pass_on(process: subprocess.Popen[bytes], grace: float) -> None:
    """Copy the command's output; a reader that has gone holds no leash any more."""
    assert process.stdout is not None
    output = process.stdout.fileno()
    try:
        while block := os.read(output, 65536):
            os.write(1, block)
    except OSError:
        _stop(process, grace)
    _passed_on.set()


def _stop(process: subprocess.Popen[bytes], grace: float) -> None:
    _signal_group(process, signal.SIGTERM)
    for pid in _outside(process):
        _signal(pid, signal.SIGTERM)
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        _kill_all(process)


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill the group and what has left it, until nothing new has been started meanwhile."""
    _signal_group(process, signal.SIGKILL)
    killed: set[int] = set()
    while found := _outside(process) - killed:
        for pid in found:
            _signal(pid, signal.SIGKILL)
        killed |= found


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _outside(process: subprocess.Popen[bytes]) -> set[int]:
    """What lives below this process and is not in the command's group; nothing but on Linux."""
    parents, groups = {}, {}
    for folder in Path("/proc").glob("[0-9]*") if sys.platform == "linux" else ():
        with suppress(OSError):
            stat = (folder / "stat").read_text(errors="replace")
            state, parent, group = stat.rpartition(")")[2].split()[:3]
            if state != "Z":
                parents[int(folder.name)], groups[int(folder.name)] = int(parent), int(group)
    below, found = {os.getpid()}, {os.getpid()}
    while found := {pid for pid, parent in parents.items() if parent in found} - below:
        below |= found
    return {pid for pid in below - {os.getpid()} if groups[pid] != process.pid}


def _die_with_parent() -> None:
    """Have Linux kill the command should this process itself be killed."""
    _set_for_process(PR_SET_PDEATHSIG, signal.SIGKILL)


def _set_for_process(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
