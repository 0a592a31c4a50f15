"""The catalogue of behaviours and what the tests pin of it, found without running a test."""

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MARKER = "behaviour"
NOT_A_SECTION = frozenset({"not-applicable", "decisions"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All behaviours by section, the decisions beside them, and which behaviours do not apply."""

    sections: Mapping[str, Mapping[str, str]]
    decisions: Mapping[str, str]
    not_applicable: Mapping[str, str]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the behaviours, without those of the decisions."""
        return frozenset(id for titles in self.sections.values() for id in titles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One id in one marker of a test; None for an argument that is not a plain string."""

    id: str | None
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The catalogue held against the marks of the tests."""

    catalogue: Catalogue
    marks: tuple[Mark, ...]

    @property
    def pinned(self) -> frozenset[str]:
        """Every id that a marker names, of behaviours and decisions."""
        return frozenset(mark.id for mark in self.marks if mark.id is not None)

    @property
    def covered(self) -> frozenset[str]:
        """The behaviours that a test pins."""
        return self.catalogue.ids & self.pinned

    @property
    def not_applicable(self) -> frozenset[str]:
        """The behaviours that do not apply and that no test pins."""
        return frozenset(self.catalogue.not_applicable) - self.covered

    @property
    def open(self) -> frozenset[str]:
        """The behaviours that apply and that no test pins."""
        return self.catalogue.ids - self.covered - self.not_applicable

    @property
    def faults(self) -> list[str]:
        """Marks that name nothing the catalogue has."""
        known = self.catalogue.ids | frozenset(self.catalogue.decisions)
        return [
            f"{mark.file}:{mark.line}: "
            + ("write the id as a plain string" if mark.id is None else f"no behaviour {mark.id!r}")
            for mark in self.marks
            if mark.id not in known
        ]


def read_catalogue(file: Path) -> Catalogue:
    """Read the catalogue; a table is a section, except the two that are named for what they are."""
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return Catalogue(
        sections={name: table for name, table in tables.items() if name not in NOT_A_SECTION},
        decisions=tables["decisions"],
        not_applicable=tables["not-applicable"],
    )


def marks_in(source: str, file: str) -> Iterator[Mark]:
    """The ids in every `….mark.behaviour(…)` of a module, wherever it stands."""
    for node in ast.walk(ast.parse(source, file)):
        if not isinstance(node, ast.Call) or not _is_marker(node.func):
            continue
        for argument in node.args:
            text = argument.value if isinstance(argument, ast.Constant) else None
            id = text if isinstance(text, str) else None
            yield Mark(id=id, file=file, line=argument.lineno)


def read_marks(folder: Path) -> tuple[Mark, ...]:
    """The marks of all Python files below a folder."""
    files = sorted(file for file in folder.rglob("*.py") if "node_modules" not in file.parts)
    return tuple(
        mark
        for file in files
        for mark in marks_in(
            file.read_text(encoding="utf-8"), file.relative_to(folder.parent).as_posix()
        )
    )


def _is_marker(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr == MARKER
        and isinstance(function.value, ast.Attribute)
        and function.value.attr == "mark"
    )
