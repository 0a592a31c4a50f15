"""The host that the chat tests run in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ramet.testing.harness import Harness
from tests.integration.chat.support import Fed


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with Harness(agents=[Fed], data_dir=tmp_path) as harness:
        yield harness
