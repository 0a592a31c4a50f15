"""The fixed commands that builds of the demo may run: chosen here, never by who asks."""

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ramet.core.json import JsonObject
from ramet.demo import syntax_check

_TEST_FOLDERS = ("tests/unit", "tests", "test")
_SHOWN = ("-v", "--no-header", "--tb=short", "--color=no")
_PYTEST = ("-m", "pytest", *_SHOWN, "-p", "no:cacheprovider")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A command under a name."""

    name: str
    """What it is asked for by: `tests`, `syntax`."""
    title: str
    """What people read: `The unit tests`."""
    command: tuple[str, ...]
    """The program with its arguments; no shell reads them."""

    def shown(self) -> str:
        """The command as people read it, without the places of programs on this machine."""
        return " ".join(Path(each).name if each.startswith("/") else each for each in self.command)

    def to_json(self) -> JsonObject:
        """The task as the page is told of it."""
        return {"name": self.name, "title": self.title}


def tasks_for(folder: Path) -> dict[str, Task]:
    """What can be run in a folder: its tests where pytest is installed, and a check of syntax."""
    tasks = [*_tests(folder), _syntax()]
    return {task.name: task for task in tasks}


def _tests(folder: Path) -> list[Task]:
    holding = (name for name in _TEST_FOLDERS if any((folder / name).rglob("test_*.py")))
    tests = next(holding, None)
    if tests is None or find_spec("pytest") is None:
        return []
    title = "The unit tests" if tests == "tests/unit" else "The tests"
    return [Task(name="tests", title=title, command=(sys.executable, *_PYTEST, tests))]


def _syntax() -> Task:
    command = (sys.executable, "-I", str(syntax_check.__file__))
    return Task(name="syntax", title="The syntax check", command=command)
