"""Runs one command for a process that may be killed: `python leash.py GRACE COMMAND …`.

The other end of standard input is the leash. Once it is let go, by closing it or by the death of
whoever holds it, the command's whole process group is told to end, and killed after GRACE seconds.
The command's exit code becomes this process's; what the command leaves behind in its group is
killed. A file to be run, not imported: it needs nothing but the standard library.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

PR_SET_PDEATHSIG = 1
NOT_FOUND = 127
DRAIN_SECONDS = 1.0


def main(grace: float, command: list[str]) -> int:
    """Run the command on its leash; returns its exit code, or 128 and the signal that ended it."""
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
    _signal_group(process, signal.SIGKILL)
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
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        _signal_group(process, signal.SIGKILL)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _die_with_parent() -> None:
    """Have Linux kill the command should this process itself be killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
