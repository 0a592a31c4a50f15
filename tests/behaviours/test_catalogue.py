"""The count of pinned behaviours can be believed."""

import subprocess
import sys

import pytest

from tests.behaviours.catalogue import Catalogue, Coverage, marks_in, read_catalogue
from tests.behaviours.report import ROOT, coverage_of, main

EXAMPLE = '''
import pytest
pytestmark = pytest.mark.behaviour("AT-001")

@pytest.mark.behaviour("AT-002", "D21")
def test_one() -> None:
    """Not counted: @pytest.mark.behaviour("AT-099")."""

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.behaviour("AT-003"))])
def test_two(x: int) -> None: ...
'''


def catalogue() -> Catalogue:
    return Catalogue(
        sections={"1 Runs": {"AT-001": "one", "AT-002": "two", "AT-003": "three"}},
        decisions={"D21": "slow clients"},
        not_applicable={"AT-003": "not here"},
    )


def test_marks_are_found_on_modules_functions_and_parameters() -> None:
    assert [mark.id for mark in marks_in(EXAMPLE, "test_x.py")] == [
        "AT-001",
        "AT-002",
        "D21",
        "AT-003",
    ]


def test_a_behaviour_is_covered_open_or_not_applicable() -> None:
    marks = tuple(marks_in('import pytest\npytest.mark.behaviour("AT-001", "D21")', "test_x.py"))
    coverage = Coverage(catalogue=catalogue(), marks=marks)
    assert coverage.covered == {"AT-001"}
    assert coverage.open == {"AT-002"}
    assert coverage.not_applicable == {"AT-003"}
    assert coverage.faults == []


@pytest.mark.parametrize(
    ("argument", "fault"),
    [
        ('"AT-004"', "test_x.py:2: no behaviour 'AT-004'"),
        ("NAME", "test_x.py:2: write the id as a plain string"),
        ("1", "test_x.py:2: write the id as a plain string"),
    ],
)
def test_a_mark_that_names_nothing_is_a_fault(argument: str, fault: str) -> None:
    marks = tuple(marks_in(f"import pytest\npytest.mark.behaviour({argument})", "test_x.py"))
    assert Coverage(catalogue=catalogue(), marks=marks).faults == [fault]


def test_the_catalogue_is_whole() -> None:
    found = read_catalogue(ROOT / "docs" / "internals" / "behaviours.toml")
    assert sum(len(titles) for titles in found.sections.values()) == len(found.ids) == 653
    assert set(found.decisions) == {f"D{number}" for number in range(1, 39)}
    assert set(found.not_applicable) <= found.ids


def test_every_mark_of_the_tests_names_a_behaviour() -> None:
    assert coverage_of(ROOT).faults == []


def test_the_report_counts_every_behaviour_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    total = next(line for line in capsys.readouterr().out.splitlines() if "of 653" in line)
    assert sum(int(word) for word in total.split()[:3]) == 653


def test_the_report_lists_what_is_open(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--open"]) == 0
    listed = capsys.readouterr().out
    coverage = coverage_of(ROOT)
    assert [id for id in sorted(coverage.open) if f"  {id}  " not in listed] == []
    assert [id for id in sorted(coverage.covered) if f"  {id}  " in listed] == []


def test_a_wrong_argument_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--all"]) == 2
    assert "usage" in capsys.readouterr().out


def test_the_script_runs_without_any_package() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(ROOT / "scripts" / "behaviours")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "of 653 behaviours" in done.stdout
