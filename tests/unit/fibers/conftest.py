"""A world for each test, closed at its end."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.fibers.world import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    await made.close()
