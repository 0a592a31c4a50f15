"""Named places where a test may kill the process, and switches that break what it checks.

`RAMET_FAILPOINT=name` kills the process with SIGKILL when the place is passed; `name:3` on the
third pass. The faults are there so that the project's own kill tests can show that they would
notice: `RAMET_FAULT_HOLD_CHUNKS=10` makes the stream log keep chunks back from the disk,
`RAMET_FAULT_SPLIT_COMMITS=1` has each statement of a transaction committed by itself, and
`RAMET_FAULT_SEAL_TWICE=1` ends each run a second time, past the guard of its row.
"""

import os
import signal

_ARMED, _, _COUNT = os.environ.get("RAMET_FAILPOINT", "").partition(":")
_passes_left = int(_COUNT or 1)

HELD_CHUNKS = int(os.environ.get("RAMET_FAULT_HOLD_CHUNKS", "0"))
SPLIT_COMMITS = os.environ.get("RAMET_FAULT_SPLIT_COMMITS") == "1"
SEAL_TWICE = os.environ.get("RAMET_FAULT_SEAL_TWICE") == "1"


def failpoint(name: str) -> None:
    """Kill this process here if `name` is the armed place; else nothing."""
    if _ARMED and name == _ARMED:
        _pass_armed()


def _pass_armed() -> None:
    global _passes_left
    _passes_left -= 1
    if _passes_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
