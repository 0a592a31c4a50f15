"""What may be imported where, as far as it is not about our own layers."""

import os
import subprocess
import sys

import pytest

from tests.architecture.source import MODULES, PACKAGE, Module

# A library stands behind a seam of ours: these are the places that know it.
SEAMS: dict[str, tuple[str, ...]] = {
    "sqlite3": ("storage/",),
    "pydantic_ai": ("think/", "chat/model_chunks.py", "agent_tools/tool.py", "testing/", "demo/"),
    "starlette": ("web/", "app/", "demo/"),
    "uvicorn": ("web/", "cli/", "demo/"),
    "websockets": ("web/", "cli/", "client/"),
    "click": ("cli/", "demo/"),
    "cronsim": ("schedules/cron.py",),
    "orjson": ("core/json.py",),
    "openai": (),
    "anthropic": (),
}

# Code that computes and touches nothing: it can be run by the server, a client or a test.
PURE = ("protocol/", "core/paths.py", "core/retry.py", "/policy.py", "/policies/")
EFFECTS = frozenset(
    {
        "asyncio",
        "logging",
        "os",
        "random",
        "secrets",
        "socket",
        "sqlite3",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "uuid",
    }
)

HEAVY = ("pydantic_ai", "starlette", "uvicorn", "websockets", "fastapi", "httpx", "sqlite3")
PROVIDERS = ("openai", "anthropic", "groq", "mistralai", "google.genai", "boto3", "cohere")

LOAD_ROOT = "import ramet"
LOAD_EVERYTHING = """
import importlib, pkgutil, ramet
for module in pkgutil.walk_packages(ramet.__path__, "ramet."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""

each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)


def loaded_by(code: str, libraries: tuple[str, ...]) -> list[str]:
    """Which of the libraries a fresh interpreter has loaded after running the code."""
    report = f"import sys\n{code}\nprint(*[name for name in {libraries!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", report],
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@each_module
def test_a_library_is_known_only_at_its_seam(module: Module) -> None:
    assert not [
        f"{module.path}:{line} imports {name}"
        for name, line in module.imported()
        if (places := SEAMS.get(name.partition(".")[0])) is not None
        and not module.path.startswith(places)
    ]


@each_module
def test_what_computes_touches_nothing(module: Module) -> None:
    if not any(place in f"/{module.path}" for place in PURE):
        return
    assert not [
        f"{module.path}:{line} imports {name}"
        for name, line in module.imported()
        if name.partition(".")[0] in EFFECTS
    ]


def test_importing_ramet_loads_no_model_library_no_web_server_and_no_database() -> None:
    assert loaded_by(LOAD_ROOT, HEAVY) == []


def test_the_client_loads_no_model_library_no_web_server_and_no_database() -> None:
    assert loaded_by("import ramet.client", HEAVY) == ["websockets"]


def test_no_provider_is_loaded_unless_it_is_named() -> None:
    assert loaded_by(LOAD_EVERYTHING, PROVIDERS) == []
