"""What a build may run, by the folder that the demo was started with."""

import subprocess
import sys
from pathlib import Path

from ramet.demo.tasks import tasks_for
from tests.unit.demo.rig import write_project


def test_a_folder_with_tests_has_them_run_by_pytest(tmp_path: Path) -> None:
    tasks = tasks_for(write_project(tmp_path))
    assert set(tasks) == {"tests", "syntax"}
    assert tasks["tests"].command[:3] == (sys.executable, "-m", "pytest")
    assert tasks["tests"].command[-1] == "tests"


def test_unit_tests_come_before_all_tests(tmp_path: Path) -> None:
    unit = tmp_path / "tests" / "unit"
    unit.mkdir(parents=True)
    (unit / "test_one.py").write_text("")
    assert tasks_for(tmp_path)["tests"].title == "The unit tests"
    assert tasks_for(tmp_path)["tests"].command[-1] == "tests/unit"


def test_a_folder_without_tests_has_only_its_syntax_checked(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    assert set(tasks_for(tmp_path)) == {"syntax"}


def checked(folder: Path) -> tuple[int, list[str]]:
    """The exit code and the lines of the syntax check."""
    command = tasks_for(folder)["syntax"].command
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    return run.returncode, run.stdout.splitlines()


def test_the_syntax_check_names_each_file_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("x = 1\n")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "left_out.py").write_text("not python")
    before = sorted(tmp_path.rglob("*"))
    assert checked(tmp_path) == (
        0,
        ["collected 1 files", "good.py ok [100%]", "1 ok, 0 failed"],
    )
    assert sorted(tmp_path.rglob("*")) == before


def test_the_syntax_check_fails_with_the_file_that_is_no_python(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def f(:\n")
    (tmp_path / "good.py").write_text("")
    code, lines = checked(tmp_path)
    assert code == 1
    assert lines[1] == "bad.py FAILED [ 50%]"
    assert "invalid syntax" in lines[2]
    assert lines[-1] == "1 ok, 1 failed"
