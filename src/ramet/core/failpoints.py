"""Named places where a test may kill the process, and a switch that breaks durability.

`RAMET_FAILPOINT=name` kills the process with SIGKILL when the place is passed; `name:3` on the
third pass. `RAMET_FAULT_HOLD_CHUNKS=10` makes the stream log keep chunks back from the disk, so
that the project's own kill tests can show that they would notice.
"""

import os
import signal

_ARMED, _, _COUNT = os.environ.get("RAMET_FAILPOINT", "").partition(":")
_passes_left = int(_COUNT or 1)

HELD_CHUNKS = int(os.environ.get("RAMET_FAULT_HOLD_CHUNKS", "0"))


def failpoint(name: str) -> None:
    """Kill this process here if `name` is the armed place; else nothing."""
    if _ARMED and name == _ARMED:
        _pass_armed()


def _pass_armed() -> None:
    global _passes_left
    _passes_left -= 1
    if _passes_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
