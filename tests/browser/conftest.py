"""What the checks of the published hooks share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import Server, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The wire app, served for the checks of one file."""
    folder: Path = tmp_path_factory.mktemp("wire")
    with running("serve", "tests.wire_app:app", folder=folder) as server:
        yield server
