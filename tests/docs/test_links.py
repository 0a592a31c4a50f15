"""The links of the README and the docs lead somewhere."""

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, Page

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@each_page
def test_the_links_of_the_page_lead_somewhere(page: Page) -> None:
    broken = [target for target in page.links() if not leads_somewhere(page, target)]
    assert not broken


def test_every_page_of_the_docs_can_be_reached_from_the_index() -> None:
    by_file = {page.file: page for page in PAGES}
    seen, waiting = {DOCS / "index.md"}, [DOCS / "index.md"]
    while waiting:
        page = by_file[waiting.pop()]
        for target in page.links():
            file = (page.file.parent / target.partition("#")[0]).resolve()
            if file in by_file and file not in seen:
                seen.add(file)
                waiting.append(file)
    assert {page.file for page in PAGES} - seen == {ROOT / "README.md"} - seen


def leads_somewhere(page: Page, target: str) -> bool:
    """Whether a link's file is there, with the heading if it names one; the web is believed."""
    if target.startswith(("https://", "http://", "mailto:")):
        return True
    path, _, anchor = target.partition("#")
    file = (page.file.parent / path).resolve() if path else page.file
    if not file.exists():
        return False
    return not anchor or anchor in Page(file=file).anchors()
