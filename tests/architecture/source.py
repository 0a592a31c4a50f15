"""The modules of ramet, read and parsed once for the tests of the architecture."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "ramet"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One source file: its path below `src/ramet`, its text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def is_init(self) -> bool:
        """Whether this is the `__init__` of a package."""
        return self.path.rpartition("/")[2] == "__init__.py"

    def functions(self) -> Iterator[Function]:
        """Every function and method, nested ones too."""
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node

    def imported(self) -> Iterator[tuple[str, int]]:
        """The dotted name and line of everything imported, wherever the import stands."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)

    def docstrings(self) -> frozenset[int]:
        """The identities of the nodes that are docstrings or bare strings after a definition."""
        return frozenset(
            id(node.value)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        )

    def strings(self) -> Iterator[tuple[str, int]]:
        """Every string that is a value, with its line; pieces of f-strings too."""
        docstrings = self.docstrings()
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in docstrings
            ):
                yield node.value, node.lineno


def _read(file: Path) -> Module:
    text = file.read_text(encoding="utf-8")
    return Module(path=file.relative_to(PACKAGE).as_posix(), text=text, tree=ast.parse(text))


MODULES = tuple(_read(file) for file in sorted(PACKAGE.rglob("*.py")))
