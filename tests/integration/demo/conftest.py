"""The corpus that the tests of the demo share, closed behind the last of them."""

from collections.abc import Iterator

import pytest

from tests.unit.demo.small_reference import small_reference


@pytest.fixture(scope="package", autouse=True)
def corpus() -> Iterator[None]:
    """Made before the first test, which would have to close it otherwise."""
    opened = small_reference()
    yield
    opened.close()
    small_reference.cache_clear()
