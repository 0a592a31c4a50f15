"""A server on a real port, in the event loop of the test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.web.serving import serving
from tests.wire_app import app


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    """`host:port` of the application that clients of all kinds are run against."""
    app.data_dir = tmp_path
    async with serving(app) as address:
        yield address
