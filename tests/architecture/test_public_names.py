"""The public names: the same for the interpreter and for type checkers, each with a docstring."""

import ast
import inspect

import pytest

import ramet
from tests.architecture.source import PACKAGE

STUB = PACKAGE / "__init__.pyi"
NAMES: tuple[str, ...] = tuple(sorted(getattr(ramet, "__all__", ())))


def stub_names() -> set[str]:
    """What the stub re-exports: `from x import name as name`, and what it declares itself."""
    names = set[str]()
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


def test_there_are_public_names() -> None:
    assert NAMES


def test_the_stub_tells_type_checkers_what_the_package_exports() -> None:
    assert stub_names() == {name for name in NAMES if not name.startswith("_")}


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        ramet.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def test_dir_lists_the_lazy_names() -> None:
    assert set(NAMES) <= set(dir(ramet))


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_says_what_it_is(name: str) -> None:
    value = getattr(ramet, name)
    if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
        assert value.__doc__, f"ramet.{name} has no docstring"
