"""The published React hooks in Chromium, both families: chats, and tools of the page."""

import pytest

from tests.browser.rig import FAMILIES, Group, check, names_of, run_group
from tests.support.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

CHAT_CHECKS = [
    check("an answer is streamed word by word"),
    check("the page is told how a turn ended"),
    check("reasoning is a part of its own before the text", pytest.mark.behaviour("MB-001")),
    check("a second question follows the first answer"),
    check(
        "a reload in mid-stream takes the answer up again",
        pytest.mark.behaviour("CW-005", "CW-020"),
    ),
    check("a reload after the end shows the same transcript"),
    check(
        "a connection cut in mid-stream is taken up again",
        pytest.mark.behaviour("CW-005", "CW-012"),
    ),
    check("no word is shown twice on the way after a cut", pytest.mark.behaviour("CW-012")),
    check("a second tab watches the answer grow"),
    check("a tab opened in mid-stream joins it", pytest.mark.behaviour("CW-004")),
    check("stop keeps what was said"),
    check(
        "a failure keeps what was said and names the error", pytest.mark.behaviour("CW-010", "D26")
    ),
    check("clear empties both tabs for good"),
    check("clear in mid-stream ends the answer"),
    check("regenerate replaces the answer"),
    check("a question asked offline is answered once the server is back"),
    check("two tabs that ask at once are both answered"),
    check("a page from another origin may talk to the agents", pytest.mark.behaviour("D20")),
]

TOOL_CHECKS = [
    check("a tool of the page is answered and the answer goes on", pytest.mark.behaviour("AC-001")),
    check("a second tab sees the answer go on, once"),
    check("an approved tool runs and the answer goes on"),
    check("a refused tool does not run and the answer goes on"),
    check("an approval can be given after a reload"),
    check("an approval in one tab is seen in another"),
]


@pytest.fixture(scope="module", params=FAMILIES)
def chat_checks(server: Server, request: pytest.FixtureRequest) -> Group:
    return run_group("chat", server.address, agent=request.param)


@pytest.fixture(scope="module", params=FAMILIES)
def tool_checks(server: Server, request: pytest.FixtureRequest) -> Group:
    return run_group("tools", server.address, agent=request.param)


@pytest.mark.parametrize("name", CHAT_CHECKS)
def test_a_chat_page_shows_that(chat_checks: Group, name: str) -> None:
    chat_checks.assert_passed(name)


def test_every_check_of_a_chat_page_is_listed(chat_checks: Group) -> None:
    assert chat_checks.names == names_of(CHAT_CHECKS)


@pytest.mark.parametrize("name", TOOL_CHECKS)
def test_a_page_with_tools_shows_that(tool_checks: Group, name: str) -> None:
    tool_checks.assert_passed(name)


def test_every_check_of_a_page_with_tools_is_listed(tool_checks: Group) -> None:
    assert tool_checks.names == names_of(TOOL_CHECKS)
