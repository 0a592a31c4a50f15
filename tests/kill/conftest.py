"""What the kill tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kill.victim import Victim


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Victim]:
    """A data directory of its own; whoever uses it starts the server."""
    victim = Victim(tmp_path)
    yield victim
    victim.stop()
