"""The published React hooks in Chromium against the wire app, for both families of chat agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.rig import Group, check, names_of, run_group
from tests.support.server import Server, running

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

FAMILIES = ["ChatAgent", "ThinkAgent"]

CHAT_CHECKS = [
    check("an answer is streamed word by word"),
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

RUN_CHECKS = [
    check(
        "a run is seen live under its tool call",
        pytest.mark.behaviour("AT-131", "AT-155", "AT-156"),
    ),
    check("every event of a run has a number of its own", pytest.mark.behaviour("D2")),
    check(
        "a reload in the middle of a run loses and doubles nothing",
        pytest.mark.behaviour("AT-136", "AT-161"),
    ),
    check(
        "a reload after the end gives the run again, frame for frame",
        pytest.mark.behaviour("AT-135", "D2", "D23"),
    ),
    check(
        "a cut in the middle of a run loses and doubles nothing", pytest.mark.behaviour("AT-161")
    ),
    check(
        "a cut that outlasts the run is healed by the replay",
        pytest.mark.behaviour("AT-135", "AT-161"),
    ),
    check("a second tab sees the same run", pytest.mark.behaviour("AT-122")),
    check("a child of the other family streams the same way"),
    check("a reload in the middle of a child of the other family", pytest.mark.behaviour("QK-004")),
    check("two runs stand in order under one tool call", pytest.mark.behaviour("AT-154")),
    check(
        "a run that fails is named and does not stop its sibling", pytest.mark.behaviour("AT-080")
    ),
    check("stop cancels the run", pytest.mark.behaviour("AT-176")),
    check(
        "a finished run opens as a chat with its transcript",
        pytest.mark.behaviour("AT-333", "AT-337"),
    ),
    check("a run under way opens as a chat and streams on", pytest.mark.behaviour("AT-337")),
    check("a run that never was cannot be opened", pytest.mark.behaviour("AT-335", "D19", "D20")),
    check("a run without a tool call is unbound", pytest.mark.behaviour("AT-154")),
]


TOOL_CHECKS = [
    check("a tool of the page is answered and the answer goes on", pytest.mark.behaviour("AC-001")),
    check("a second tab sees the answer go on, once"),
    check("an approved tool runs and the answer goes on"),
    check("a refused tool does not run and the answer goes on"),
    check("an approval can be given after a reload"),
    check("an approval in one tab is seen in another"),
]


BACKGROUND_CHECKS = [
    check(
        "the turn ends at once and the result arrives as a message",
        pytest.mark.behaviour("AT-229", "AT-272", "AT-274", "AT-275"),
    ),
    check("the conversation goes on meanwhile", pytest.mark.behaviour("AT-268", "AT-273")),
    check("a reload in the middle shows how far it is", pytest.mark.behaviour("D22", "AT-161")),
    check("a cut that outlasts the run is healed", pytest.mark.behaviour("AT-161")),
    check("a second tab is told the same"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("wire")
    with running("serve", "tests.wire_app:app", folder=folder) as server:
        yield server


@pytest.fixture(scope="module", params=FAMILIES)
def chat_checks(server: Server, request: pytest.FixtureRequest) -> Group:
    return run_group("chat", server.address, agent=request.param)


@pytest.fixture(scope="module", params=FAMILIES)
def run_checks(server: Server, request: pytest.FixtureRequest) -> Group:
    return run_group("runs", server.address, agent=request.param)


@pytest.fixture(scope="module", params=FAMILIES)
def tool_checks(server: Server, request: pytest.FixtureRequest) -> Group:
    return run_group("tools", server.address, agent=request.param)


@pytest.fixture(scope="module", params=FAMILIES)
def background_checks(server: Server, request: pytest.FixtureRequest) -> Group:
    return run_group("background", server.address, agent=request.param)


@pytest.mark.parametrize("name", CHAT_CHECKS)
def test_a_chat_page_shows_that(chat_checks: Group, name: str) -> None:
    chat_checks.assert_passed(name)


def test_every_check_of_a_chat_page_is_listed(chat_checks: Group) -> None:
    assert chat_checks.names == names_of(CHAT_CHECKS)


@pytest.mark.parametrize("name", RUN_CHECKS)
def test_a_page_with_runs_shows_that(run_checks: Group, name: str) -> None:
    run_checks.assert_passed(name)


def test_every_check_of_a_page_with_runs_is_listed(run_checks: Group) -> None:
    assert run_checks.names == names_of(RUN_CHECKS)


@pytest.mark.parametrize("name", TOOL_CHECKS)
def test_a_page_with_tools_shows_that(tool_checks: Group, name: str) -> None:
    tool_checks.assert_passed(name)


def test_every_check_of_a_page_with_tools_is_listed(tool_checks: Group) -> None:
    assert tool_checks.names == names_of(TOOL_CHECKS)


@pytest.mark.parametrize("name", BACKGROUND_CHECKS)
def test_a_page_with_runs_in_the_background_shows_that(background_checks: Group, name: str) -> None:
    background_checks.assert_passed(name)


def test_every_check_of_runs_in_the_background_is_listed(background_checks: Group) -> None:
    assert background_checks.names == names_of(BACKGROUND_CHECKS)
