"""The published React hooks in Chromium, both families: runs, and runs in the background."""

import pytest

from tests.browser.rig import FAMILIES, Group, check, names_of, run_group
from tests.support.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

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


@pytest.fixture(scope="module", params=FAMILIES)
def run_checks(server: Server, request: pytest.FixtureRequest) -> Group:
    return run_group("runs", server.address, agent=request.param)


@pytest.fixture(scope="module", params=FAMILIES)
def background_checks(server: Server, request: pytest.FixtureRequest) -> Group:
    return run_group("background", server.address, agent=request.param)


@pytest.mark.parametrize("name", RUN_CHECKS)
def test_a_page_with_runs_shows_that(run_checks: Group, name: str) -> None:
    run_checks.assert_passed(name)


def test_every_check_of_a_page_with_runs_is_listed(run_checks: Group) -> None:
    assert run_checks.names == names_of(RUN_CHECKS)


@pytest.mark.parametrize("name", BACKGROUND_CHECKS)
def test_a_page_with_runs_in_the_background_shows_that(background_checks: Group, name: str) -> None:
    background_checks.assert_passed(name)


def test_every_check_of_runs_in_the_background_is_listed(background_checks: Group) -> None:
    assert background_checks.names == names_of(BACKGROUND_CHECKS)
