"""What all tests share: how Hypothesis runs, and that no database stays open."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support.databases import all_closed

# The machine that runs the checks is small and shared: a slow example is no failure. The same
# examples each time, so that a red run is red again; look further with `--hypothesis-profile=hunt`.
settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.register_profile("hunt", deadline=None, max_examples=2000)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def every_database_is_closed() -> Iterator[None]:
    """Whatever opened it in the test."""
    with all_closed():
        yield
