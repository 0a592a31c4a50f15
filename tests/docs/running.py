"""Runs the Python blocks of one page in order, as a reader would who types them in."""

import ast
import importlib
import inspect
import sys
import types
from collections.abc import Awaitable
from pathlib import Path

from tests.docs.pages import Block


class Reader:
    """Follows one page: files are written and imported, other blocks share one namespace."""

    def __init__(self, folder: Path, *, name: str) -> None:
        self._folder = folder
        self._module = types.ModuleType(name)
        self._module.__file__ = str(folder / "page.py")
        sys.modules[name] = self._module
        self._tests = 0

    async def follow(self, block: Block) -> None:
        """Do what a block asks for; blocks of other languages are only written down."""
        if block.title is not None:
            file = self._folder / block.title
            if file.exists():
                self.forget()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.code, encoding="utf-8")
        if block.language != "python":
            return
        if block.title is None:
            await self._run(block)
        else:
            await self._import(block.title)

    def forget(self) -> None:
        """Take the modules of the page's files out of the interpreter: they are read anew."""
        for name, module in list(sys.modules.items()):
            file = str(getattr(module, "__file__", None) or "")
            if module is not self._module and file.startswith(str(self._folder)):
                del sys.modules[name]

    def close(self) -> None:
        """Leave nothing of the page in the interpreter."""
        self.forget()
        del sys.modules[self._module.__name__]

    async def _run(self, block: Block) -> None:
        """Run a block in the page's namespace; it may await at its top level."""
        code = compile(
            "\n" * (block.line - 1) + block.code,
            block.page.name,
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
        outcome: object = eval(code, self._module.__dict__)
        if code.co_flags & inspect.CO_COROUTINE:
            assert isinstance(outcome, Awaitable)
            await outcome

    async def _import(self, title: str) -> None:
        """Import a file; if it is one of tests, run them."""
        name = title.removesuffix(".py").replace("/", ".")
        importlib.invalidate_caches()
        module = importlib.import_module(name)
        if not name.rpartition(".")[2].startswith("test_"):
            return
        for test in [value for key, value in vars(module).items() if key.startswith("test_")]:
            self._tests += 1
            place = self._folder / f"data-{self._tests}"
            place.mkdir()
            result = test(place)
            if isinstance(result, Awaitable):
                await result
