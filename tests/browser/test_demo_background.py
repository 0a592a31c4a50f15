"""The demo's tray in Chromium: runs in the background, a real build among them, and a kill."""

from pathlib import Path

import pytest

from tests.browser.rig import Group, check, names_of, run_group
from tests.support.server import HOST, command_line, free_port

pytestmark = [pytest.mark.browser, pytest.mark.kill, pytest.mark.timeout(600)]

TRAY_CHECKS = [
    check("that nothing is in the background yet"),
    check(
        "that a research goes on beside the conversation and reports by a message",
        pytest.mark.behaviour("AT-229", "AT-272", "AT-275"),
    ),
    check(
        "how far a build is, after a reload and a cut too, and how it ended",
        pytest.mark.behaviour("AT-161", "D22"),
    ),
    check("that a build can be cancelled with the keyboard"),
    check("that a build opens as a chat", pytest.mark.behaviour("AT-333")),
    check(
        "that all of it goes on after the server was killed, and each result comes once",
        pytest.mark.behaviour("AT-281", "D36"),
    ),
]

STEPS = """
import time

import pytest


@pytest.mark.parametrize("number", range(24))
def test_step(number):
    time.sleep(0.25)
    assert number != 18
"""


@pytest.fixture(scope="module")
def tray_checks(tmp_path_factory: pytest.TempPathFactory) -> Group:
    folder: Path = tmp_path_factory.mktemp("tray")
    project = folder / "project"
    (project / "tests").mkdir(parents=True)
    (project / "tests" / "test_steps.py").write_text(STEPS)
    port = free_port()
    start = command_line("demo", "--folder", str(project), folder=folder, port=port)
    return run_group("demo_background", f"{HOST}:{port}", start=start)


@pytest.mark.parametrize("name", TRAY_CHECKS)
def test_the_tray_shows(tray_checks: Group, name: str) -> None:
    tray_checks.assert_passed(name)


def test_every_check_of_the_tray_is_listed(tray_checks: Group) -> None:
    assert tray_checks.names == names_of(TRAY_CHECKS)
