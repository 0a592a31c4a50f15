"""What scripts/version-sets reads, and what it makes of the outcomes."""

import json

import pytest

from tests.browser.rig import names_of
from tests.browser.test_browser import CHAT_CHECKS, TOOL_CHECKS
from tests.browser.test_browser_runs import BACKGROUND_CHECKS, RUN_CHECKS
from tests.browser.test_node_client import CLIENT_CHECKS, TURN_CHECKS
from tests.browser.test_restart import RESTART_CHECKS
from tests.browser.version_sets import (
    SETS,
    Outcome,
    judge,
    line_of,
    package_json,
    read_outcomes,
    read_sets,
)
from tests.support.npm import CHECKED_IN
from tests.support.recorded_runs import SCENES

REPORT = """<testsuites><testsuite>
<testcase name="test_shows_that[ChatAgent-stop keeps what was said]"/>
<testcase name="test_shows_that[ThinkAgent-stop keeps what was said]">
  <failure message="short">it did not</failure>
</testcase>
<testcase name="test_every_check_is_listed"><error message="no server"/></testcase>
<testcase name="test_later"><skipped/></testcase>
</testsuite></testsuites>"""

CHECKS = names_of(
    [
        *CHAT_CHECKS,
        *TOOL_CHECKS,
        *RUN_CHECKS,
        *BACKGROUND_CHECKS,
        *CLIENT_CHECKS,
        *TURN_CHECKS,
        *RESTART_CHECKS,
    ]
) | {*SCENES}


@pytest.mark.parametrize("name", read_sets(SETS.read_text()))
def test_a_set_names_packages_and_checks_that_there_are(name: str) -> None:
    each = read_sets(SETS.read_text())[name]

    package = json.loads(package_json((CHECKED_IN / "package.json").read_text(), each.versions))

    assert package["dependencies"].items() >= each.versions.items()
    assert package["overrides"] == {"ai": "$ai"}
    assert each.differences.keys() <= CHECKS
    assert all(each.differences.values())


def test_the_docs_name_the_versions_of_each_set() -> None:
    told = (CHECKED_IN.parents[1] / "docs" / "clients.md").read_text()
    for each in read_sets(SETS.read_text()).values():
        if each.versions:
            versions = ", ".join(f"`{name}` {version}" for name, version in each.versions.items())
            assert f"| `{each.name}` | {versions} |" in told


def test_a_package_that_the_page_does_not_use_is_refused() -> None:
    with pytest.raises(ValueError, match="vue"):
        package_json('{"dependencies": {"react": "19"}}', {"vue": "3"})


def test_a_report_gives_what_was_run_by_check() -> None:
    assert [*read_outcomes(REPORT)] == [
        Outcome(
            test="test_shows_that[ChatAgent-stop keeps what was said]",
            check="stop keeps what was said",
            ok=True,
        ),
        Outcome(
            test="test_shows_that[ThinkAgent-stop keeps what was said]",
            check="stop keeps what was said",
            ok=False,
        ),
        Outcome(test="test_every_check_is_listed", check="test_every_check_is_listed", ok=False),
    ]


def outcome(check: str, *, ok: bool) -> Outcome:
    return Outcome(test=f"test[{check}]", check=check, ok=ok)


def test_a_failure_that_is_known_does_not_count() -> None:
    verdict = judge([outcome("a", ok=True), outcome("b", ok=False)], {"b": "no such callback"})

    assert verdict.ok
    assert line_of("old", verdict) == "old: passed, 1 tests passed; 1 known to differ: test[b]"


def test_a_failure_that_is_not_known_is_named() -> None:
    verdict = judge([outcome("a", ok=True), outcome("b", ok=False)], {"c": "another"})

    assert not verdict.ok
    assert line_of("old", verdict) == "old: FAILED, 1 tests passed; 1 failed: test[b]"


def test_a_known_difference_that_is_none_any_more_is_told() -> None:
    verdict = judge([outcome("a", ok=True)], {"a": "no such callback", "not run": "another"})

    assert verdict.ok
    assert verdict.over == ["a"]


def test_a_set_of_which_nothing_was_run_did_not_pass() -> None:
    assert not judge([], {}).ok
