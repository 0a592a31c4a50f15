"""Which process is named to whoever finds a data directory in use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ramet.control.host_file import HostFile, lock_of, with_holder, write_host_file
from ramet.errors import DataDirectoryInUse
from ramet.storage import DataDirectory

pytestmark = pytest.mark.behaviour("D15")

IN_USE = DataDirectoryInUse("It is in use")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    files = DataDirectory(tmp_path)
    files.acquire()
    files.release()
    return tmp_path


def served_by(data: Path, pid: int, *, lock: tuple[int, int] | None = None) -> None:
    host = HostFile(pid=pid, version="1", started_at=0, lock=lock or lock_of(data), token="")
    write_host_file(data, host)


def test_the_process_that_serves_it_is_named(data: Path) -> None:
    served_by(data, os.getppid())
    assert str(with_holder(IN_USE, data)) == (
        f"The data directory {data} is in use by another process (pid {os.getppid()}); "
        "stop it or choose another directory"
    )


def test_nobody_is_named_where_nobody_says_who_it_is(data: Path) -> None:
    assert with_holder(IN_USE, data) is IN_USE


def test_the_process_of_another_lock_is_not_named(data: Path) -> None:
    served_by(data, os.getppid(), lock=(0, 0))
    assert with_holder(IN_USE, data) is IN_USE


def test_a_process_that_is_gone_is_not_named(data: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    served_by(data, gone.pid)
    assert with_holder(IN_USE, data) is IN_USE


def test_this_process_is_not_called_another(data: Path) -> None:
    served_by(data, os.getpid())
    assert with_holder(IN_USE, data) is IN_USE
