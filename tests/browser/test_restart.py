"""Pages that stay open while the server is killed, for both families of chat agents."""

from pathlib import Path

import pytest

from tests.browser.rig import Group, check, names_of, run_group
from tests.support.server import HOST, command_line, free_port

pytestmark = [pytest.mark.browser, pytest.mark.kill, pytest.mark.timeout(600)]

RESTART_CHECKS = [
    check(
        "an answer cut short by a kill goes on and shows every word once",
        pytest.mark.behaviour("D1", "D4"),
    ),
    check(
        "a run cut short by a kill goes on under its card and ends whole",
        pytest.mark.behaviour("D1", "D4"),
    ),
    check(
        "a run in the background goes on after a kill and is reported once",
        pytest.mark.behaviour("AT-272", "AT-274", "AT-281", "D36"),
    ),
    check("what had ended is all there after a kill", pytest.mark.behaviour("D2", "AT-135")),
]


@pytest.fixture(scope="module", params=["ChatAgent", "ThinkAgent"])
def restart_checks(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Group:
    folder: Path = tmp_path_factory.mktemp("killed")
    port = free_port()
    start = command_line("serve", "tests.wire_app:app", folder=folder, port=port)
    return run_group("restart", f"{HOST}:{port}", agent=request.param, start=start)


@pytest.mark.parametrize("name", RESTART_CHECKS)
def test_a_page_that_stayed_open_shows_that(restart_checks: Group, name: str) -> None:
    restart_checks.assert_passed(name)


def test_every_check_after_a_kill_is_listed(restart_checks: Group) -> None:
    assert restart_checks.names == names_of(RESTART_CHECKS)
