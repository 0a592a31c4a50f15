"""The page of `ramet demo` in Chromium, used as a person uses it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.rig import Group, check, names_of, run_group
from tests.support.server import Server, running

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

PAGE_CHECKS = [
    check("the page names the model that answers"),
    check("an example question is answered by an agent that is seen at work"),
    check(
        "a reload in the middle of a run loses and doubles nothing",
        pytest.mark.behaviour("AT-136", "AT-161"),
    ),
    check("a comparison shows two agents side by side", pytest.mark.behaviour("AT-154")),
    check("a plan is made by the planner"),
    check(
        "a run opens as a chat that the address names", pytest.mark.behaviour("AT-333", "AT-337")
    ),
    check("a run that never was says so and lets one go back", pytest.mark.behaviour("AT-335")),
    check("the keyboard is enough"),
    check("the transcript stays at its end until the reader moves up"),
    check("the focus returns to the message box"),
    check("the work of a run folds away once the answer holds what came of it"),
    check("the button that leads to the end leaves the focus in the message box"),
    check("clear asks first and Escape keeps everything"),
    check("cancel ends the answer and its runs", pytest.mark.behaviour("AT-176")),
    check("an answer can be cancelled from another tab", pytest.mark.behaviour("AT-176")),
    check("clear empties both tabs, panels included", pytest.mark.behaviour("AT-325", "AT-330")),
    check("clear in the middle of a run leaves nothing behind", pytest.mark.behaviour("AT-327")),
    check("each user has an assistant of their own"),
    check(
        "the page says that it lost the connection and catches up", pytest.mark.behaviour("AT-161")
    ),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("demo")
    with running("demo", folder=folder) as server:
        yield server


@pytest.fixture(scope="module")
def page_checks(server: Server) -> Group:
    return run_group("demo", server.address)


@pytest.mark.parametrize("name", PAGE_CHECKS)
def test_a_person_finds_that(page_checks: Group, name: str) -> None:
    page_checks.assert_passed(name)


def test_every_check_of_the_page_is_listed(page_checks: Group) -> None:
    assert page_checks.names == names_of(PAGE_CHECKS)
