"""The corpora that the tests of the demo share, closed behind the last of them."""

from collections.abc import Iterator

import pytest

from ramet.demo.corpus import language_reference
from tests.unit.demo.small_reference import small_reference


@pytest.fixture(scope="package", autouse=True)
def corpora() -> Iterator[None]:
    """Made before the first test, which would have to close them otherwise."""
    kept = (language_reference, small_reference)
    opened = [corpus() for corpus in kept]
    yield
    for corpus in opened:
        corpus.close()
    for each in kept:
        each.cache_clear()
