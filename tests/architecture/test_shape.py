"""The shape of our own modules, as far as no linter looks at it."""

import ast
import re

import pytest

from tests.architecture.source import MODULES, PACKAGE, Function, Module

MOST_MODULE_LINES = 400
MOST_FUNCTION_LINES = 59
MOST_FACADE_STATEMENTS = 5
MOST_FACADE_METHODS = 40
LONGEST_PURPOSE = 240

# What users subclass: a method there names and hands on, the work is done in a feature.
FACADES = {
    "agent/agent.py": "Agent",
    "chat/chat_agent.py": "AIChatAgent",
    "think/think.py": "Think",
}

# The root's exports are lazy, which takes a function.
LAZY_INIT = "__init__.py"

IGNORE = re.compile(r"#\s*(noqa\b|type:\s*ignore\b)(?P<rest>.*)$")
IGNORE_WITH_REASON = re.compile(r"(:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*|\[[a-z, -]+\])\s+(-|#)\s*\S.*")

each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)


def length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def statements(function: Function) -> int:
    found = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    docstring = ast.get_docstring(function, clean=False) is not None
    return len(found) - 1 - docstring


def test_the_source_was_found() -> None:
    assert len(MODULES) > 10


@each_module
def test_a_module_is_short_enough_to_be_kept_in_mind(module: Module) -> None:
    assert len(module.text.splitlines()) <= MOST_MODULE_LINES, "split it by responsibility"


@each_module
def test_a_function_fits_on_a_screen(module: Module) -> None:
    assert not [
        f"{module.path}:{function.lineno} {function.name}: {length(function)} lines"
        for function in module.functions()
        if length(function) > MOST_FUNCTION_LINES
    ]


@each_module
def test_a_module_begins_with_what_it_is_for(module: Module) -> None:
    if module.is_init and not module.tree.body:
        return
    purpose = (ast.get_docstring(module.tree) or "").partition("\n\n")[0]
    assert purpose, "say in one or two sentences what the module is for"
    assert len(purpose) <= LONGEST_PURPOSE, "one or two sentences first, the rest below"


@each_module
def test_an_init_only_re_exports(module: Module) -> None:
    if not module.is_init or module.path == LAZY_INIT:
        return
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Expr)
    assert not [node.lineno for node in module.tree.body if not isinstance(node, allowed)]


@each_module
def test_an_ignored_rule_is_named_and_the_reason_given(module: Module) -> None:
    ignores = [
        (number, found["rest"])
        for number, line in enumerate(module.text.splitlines(), 1)
        if (found := IGNORE.search(line))
    ]
    assert not [
        f"{module.path}:{number}: write `# noqa: RULE - why` or `# type: ignore[rule] # why`"
        for number, rest in ignores
        if not IGNORE_WITH_REASON.match(rest)
    ]


@pytest.mark.parametrize(("path", "name"), FACADES.items())
def test_a_facade_names_and_delegates(path: str, name: str) -> None:
    if not (PACKAGE / path).parent.exists():
        return
    methods = [
        method
        for module in MODULES
        if module.path == path
        for found in module.tree.body
        if isinstance(found, ast.ClassDef) and found.name == name
        for method in found.body
        if isinstance(method, Function)
    ]
    assert methods, f"{name} belongs in {path}"
    assert not [m.name for m in methods if statements(m) > MOST_FACADE_STATEMENTS]
    assert len(methods) <= MOST_FACADE_METHODS, (
        "let a feature bring its verbs in a class of its own"
    )
