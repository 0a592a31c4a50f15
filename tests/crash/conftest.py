"""What the kill tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.forked import ForkServer
from tests.crash.victim import Victim


@pytest.fixture(scope="session")
def forks() -> Iterator[ForkServer]:
    """Where servers are forked from."""
    server = ForkServer()
    yield server
    server.stop()


@pytest.fixture
def fresh(tmp_path: Path, forks: ForkServer) -> Iterator[Victim]:
    """A data directory of its own; whoever uses it starts the server."""
    victim = Victim(forks, tmp_path)
    yield victim
    victim.kill()
