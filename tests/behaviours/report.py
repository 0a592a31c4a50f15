"""What scripts/behaviours prints: how much of the catalogue the tests pin, and what is open."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.behaviours.catalogue import Coverage, read_catalogue, read_marks

ROOT = Path(__file__).parents[2]
USAGE = "usage: scripts/behaviours [--open]"


def coverage_of(root: Path) -> Coverage:
    """Hold the catalogue of a checkout against its tests."""
    return Coverage(
        catalogue=read_catalogue(root / "docs" / "internals" / "behaviours.toml"),
        marks=read_marks(root / "tests"),
    )


def summary(coverage: Coverage) -> list[str]:
    """The counts: in all, and of each section."""
    decided = len(coverage.pinned & frozenset(coverage.catalogue.decisions))
    lines = ["covered  open  n/a  section"]
    for section, titles in coverage.catalogue.sections.items():
        ids = frozenset(titles)
        covered, open_, other = (
            len(ids & found) for found in (coverage.covered, coverage.open, coverage.not_applicable)
        )
        lines.append(f"{covered:7}  {open_:4}  {other:3}  {section}")
    lines += [
        f"{len(coverage.covered):7}  {len(coverage.open):4}  {len(coverage.not_applicable):3}  "
        f"of {len(coverage.catalogue.ids)} behaviours",
        f"{decided:7}  of {len(coverage.catalogue.decisions)} decisions named by a test",
    ]
    return lines


def open_behaviours(coverage: Coverage) -> list[str]:
    """The open ids with their titles, by section."""
    lines = list[str]()
    for section, titles in coverage.catalogue.sections.items():
        missing = [f"  {id}  {title}" for id, title in titles.items() if id in coverage.open]
        if missing:
            lines += [section, *missing]
    return lines


def main(arguments: Sequence[str]) -> int:
    """Print the report; 1 when a marker names an unknown id, 2 for a wrong argument."""
    if not set(arguments) <= {"--open"}:
        _write([USAGE])
        return 2
    coverage = coverage_of(ROOT)
    _write([*(open_behaviours(coverage) if arguments else []), *summary(coverage)])
    _write(coverage.faults)
    return 1 if coverage.faults else 0


def _write(lines: Sequence[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
