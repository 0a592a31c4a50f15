"""Runs the Node side of the browser tests and turns its checks into results."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from tests.support.npm import NPM_FOLDER
from tests.support.server import ROOT, environment

GROUP_TIMEOUT = 900
FAMILIES = ["ChatAgent", "ThinkAgent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one check went."""

    ok: bool
    detail: str
    """The failure, and what the page showed then."""


class Group:
    """The checks of one file in `checks/`, all run."""

    def __init__(self, outcomes: dict[str, Outcome], log: str) -> None:
        self._outcomes = outcomes
        self._log = log

    @property
    def names(self) -> set[str]:
        """The checks that were run."""
        return set(self._outcomes)

    def assert_passed(self, name: str) -> None:
        """Fail with the check's own words when it failed or was not run."""
        outcome = self._outcomes.get(name)
        if outcome is None:
            pytest.fail(f"The check was not run: {name}\n{self._log}", pytrace=False)
        if not outcome.ok:
            pytest.fail(outcome.detail, pytrace=False)


def run_group(
    name: str, server: str, *, agent: str = "ChatAgent", start: Sequence[str] = ()
) -> Group:
    """Run every check of a group against the server at `host:port`.

    Checks that kill the server start it themselves, with the command line `start`.
    """
    _require_packages()
    build_page()
    command = ["node", "run.mjs", name, "--server", server, "--agent", agent]
    if start:
        command += ["--start", json.dumps(list(start)), "--root", str(ROOT)]
    run = subprocess.run(
        command,
        cwd=NPM_FOLDER,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=GROUP_TIMEOUT,
        check=False,
    )
    outcomes = dict(_outcomes(run.stdout))
    log = f"{' '.join(command)}: exit {run.returncode}\n{run.stderr[-4000:]}"
    return Group(outcomes, log)


def _outcomes(output: str) -> Iterator[tuple[str, Outcome]]:
    for line in output.splitlines():
        if line.startswith("{"):
            result = json.loads(line)
            yield result["check"], Outcome(ok=result["ok"], detail=result["detail"])


def check(name: str, *marks: pytest.MarkDecorator) -> ParameterSet:
    """A check as a parameter of a test, marked with the catalogue items that it pins."""
    return pytest.param(name, id=name, marks=marks)


def names_of(checks: Sequence[ParameterSet]) -> set[str]:
    """The names of the checks in a list of parameters."""
    return {str(parameters.values[0]) for parameters in checks}


def build_page() -> None:
    """Build the test page unless it is there for the present sources."""
    stamp = NPM_FOLDER / "dist" / "sources.sha256"
    digest = _digest([*sorted((NPM_FOLDER / "page").iterdir()), NPM_FOLDER / "package-lock.json"])
    if stamp.exists() and stamp.read_text() == digest:
        return
    built = subprocess.run(
        ["npm", "run", "--silent", "build"],
        cwd=NPM_FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, f"The test page does not build:\n{built.stdout}{built.stderr}"
    stamp.write_text(digest)


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def _require_packages() -> None:
    assert shutil.which("node"), "Node 20 is needed for the browser tests"
    assert (NPM_FOLDER / "node_modules").is_dir(), f"Run `npm ci` in {NPM_FOLDER}, or scripts/test"
