"""Another process that holds a data directory and does nothing else."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.server import environment

_HOLD = """
import sys, pathlib
from ramet.storage import DataDirectory
DataDirectory(pathlib.Path(sys.argv[1])).acquire()
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_by_another_process(data: Path) -> Iterator[None]:
    """The lock of a data directory is taken for the length of the block."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(data)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        try:
            yield
        finally:
            holder.kill()
