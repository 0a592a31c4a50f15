"""What scripts/version-sets does: the browser tests of the hooks with other npm versions."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.support.npm import CHECKED_IN, VARIABLE

ROOT = CHECKED_IN.parents[1]
SETS = CHECKED_IN / "version_sets.toml"
COPIES = ROOT / ".venv" / ".ramet" / "version-sets"
COPIED = ("checks", "page", "rig", "run.mjs", "tsconfig.json", "vite.config.ts")
TESTS = (
    "test_browser.py",
    "test_browser_runs.py",
    "test_node_client.py",
    "test_restart.py",
    "test_run_states.py",
)
USAGE = "usage: scripts/version-sets [SET ...] [-- PYTEST-ARGUMENT ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSet:
    """The npm packages of one run."""

    name: str
    about: str
    versions: Mapping[str, str] = field(default_factory=dict)
    """Those that differ from `package.json`."""
    differences: Mapping[str, str] = field(default_factory=dict)
    """The checks that are known to fail, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one test went."""

    test: str
    check: str
    """What stands in the brackets of the test's name, without the agent; else the test's name."""
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the outcomes of a set amount to."""

    passed: int
    failed: Sequence[Outcome]
    """Failures that are not known."""
    known: Sequence[Outcome]
    over: Sequence[str]
    """Known differences that were not seen: every test of that check passed."""

    @property
    def ok(self) -> bool:
        """Whether something was run and nothing failed that is not known to."""
        return self.passed > 0 and not self.failed


def read_sets(text: str) -> dict[str, VersionSet]:
    """The sets of the data file, by name."""
    return {name: VersionSet(name=name, **table) for name, table in tomllib.loads(text).items()}


def package_json(checked_in: str, versions: Mapping[str, str]) -> str:
    """The `package.json` of a set: the one that is checked in, with other versions."""
    package = json.loads(checked_in)
    unknown = versions.keys() - package["dependencies"].keys()
    if unknown:
        raise ValueError(f"package.json does not depend on {', '.join(sorted(unknown))}")
    package["dependencies"] |= versions
    return json.dumps(package, indent=2)


def read_outcomes(report: str) -> Iterator[Outcome]:
    """The tests of a JUnit report that were run."""
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = case.get("name", "")
        bad = any(part.tag in {"failure", "error"} for part in case)
        if case.find("skipped") is None:
            yield Outcome(test=name, check=_check(name), ok=not bad)


def _check(test: str) -> str:
    inside = test.partition("[")[2].removesuffix("]")
    for agent in ("ChatAgent-", "ThinkAgent-"):
        inside = inside.removeprefix(agent)
    return inside or test


def judge(outcomes: Sequence[Outcome], differences: Mapping[str, str]) -> Verdict:
    """Tell new failures from those that are known."""
    bad = [outcome for outcome in outcomes if not outcome.ok]
    seen = {outcome.check for outcome in bad}
    run = {outcome.check for outcome in outcomes}
    return Verdict(
        passed=len(outcomes) - len(bad),
        failed=[outcome for outcome in bad if outcome.check not in differences],
        known=[outcome for outcome in bad if outcome.check in differences],
        over=[check for check in differences if check in run - seen],
    )


def line_of(name: str, verdict: Verdict) -> str:
    """One line that says how a set went."""
    word = "passed" if verdict.ok else "FAILED"
    line = f"{name}: {word}, {verdict.passed} tests passed"
    for what, names in (
        ("failed", [outcome.test for outcome in verdict.failed]),
        ("known to differ", [outcome.test for outcome in verdict.known]),
        ("listed as different, but passed", verdict.over),
    ):
        if names:
            line += f"; {len(names)} {what}: {', '.join(names)}"
    return line


def prepare(each: VersionSet) -> Path:
    """Make the set's copy of the folder, with its packages installed."""
    folder = COPIES / each.name
    folder.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source, target = CHECKED_IN / name, folder / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    package = package_json((CHECKED_IN / "package.json").read_text(), each.versions)
    stamp = folder / "node_modules" / "versions.sha256"
    lock = (CHECKED_IN / "package-lock.json").read_text()
    digest = hashlib.sha256((package + lock).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        (folder / "package.json").write_text(package)
        # What the set says nothing of keeps its version.
        (folder / "package-lock.json").write_text(lock)
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
        install = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(install, cwd=folder, check=True)
        stamp.write_text(digest)
    return folder


def run(each: VersionSet, arguments: Sequence[str]) -> Verdict:
    """Run the tests with a set."""
    folder = prepare(each)
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    tests = [str(CHECKED_IN / name) for name in TESTS]
    workers = ["-n", str(os.cpu_count() or 1), "--dist", "loadfile"]
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", *workers, *tests, *arguments]
    command += [f"--junitxml={report}"]
    subprocess.run(command, cwd=ROOT, env=dict(os.environ, **{VARIABLE: str(folder)}), check=False)
    outcomes = list(read_outcomes(report.read_text())) if report.exists() else []
    return judge(outcomes, each.differences)


def main(arguments: Sequence[str]) -> int:
    """Run the named sets, or all; 1 when one has a new failure, 2 for a name that is none."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    names, rest = arguments[:cut], arguments[cut + 1 :]
    sets = read_sets(SETS.read_text())
    if not set(names) <= sets.keys():
        _write([USAGE, *(f"  {each.name}: {each.about}" for each in sets.values())])
        return 2
    chosen = [sets[name] for name in names] or list(sets.values())
    verdicts = dict[str, Verdict]()
    for each in chosen:
        _write([f"\n== {each.name}: {each.about}"])
        verdicts[each.name] = run(each, rest)
    _write(["", *(line_of(name, verdict) for name, verdict in verdicts.items())])
    return 0 if all(verdict.ok for verdict in verdicts.values()) else 1


def _write(lines: Sequence[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
