"""Every Python block of the README and the docs is run, page by page, in the order of the page."""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, Block, Page
from tests.docs.running import Reader

LANGUAGES = {"console", "json", "python", "sql", "text", "ts", "tsx", "js", "html"}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def python_blocks(page: Page) -> list[Block]:
    return [block for block in page.blocks() if block.language == "python"]


PAGES_WITH_CODE = [page for page in PAGES if python_blocks(page)]


@pytest.fixture(autouse=True)
def log_levels() -> Iterator[None]:
    """A page may set levels of ramet's loggers; the tests after it find them as they were."""
    loggers = [logging.getLogger(f"ramet.{name}") for name in ("agent", "chat", "host", "think")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=lambda page: page.name)
async def test_the_code_of_the_page_runs(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    reader = Reader(tmp_path, name=f"page_{PAGES.index(page)}")
    try:
        for block in page.blocks():
            if block.not_run is None:
                await reader.follow(block)
    finally:
        reader.close()


@each_page
def test_every_block_says_what_language_it_is_in(page: Page) -> None:
    unknown = [block.place for block in page.blocks() if block.language not in LANGUAGES]
    assert not unknown


def test_there_is_code_to_run() -> None:
    assert {"README.md", "docs/tutorial.md"} <= {page.name for page in PAGES_WITH_CODE}
