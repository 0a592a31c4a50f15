"""What is shipped: the package whole, with its types and the page that Vite made."""

import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.architecture.source import PACKAGE, ROOT

SHIPPED = {"ramet/py.typed", "ramet/demo/page/index.html", "ramet/demo/page/assets/app.js"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the project with a built page in it."""
    root = tmp_path / "checkout"
    (root / ".git").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, root / name)
    ignored = shutil.ignore_patterns("__pycache__", "page")
    shutil.copytree(PACKAGE, root / "src" / "ramet", ignore=ignored)
    page = root / "src" / "ramet" / "demo" / "page"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html>", encoding="utf-8")
    (page / "assets" / "app.js").write_text("export {}", encoding="utf-8")
    return root


def modules() -> set[str]:
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]
    return {f"ramet/{file.relative_to(PACKAGE).as_posix()}" for file in files}


def test_the_wheel_has_every_module_the_types_and_the_page(checkout: Path, tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(checkout)).build(directory=str(tmp_path / "dist"))
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert SHIPPED | modules() <= names
    assert not [name for name in names if "node_modules" in name or name.startswith("tests")]


def test_the_source_distribution_builds_the_same_page(checkout: Path, tmp_path: Path) -> None:
    (sdist,) = SdistBuilder(str(checkout)).build(directory=str(tmp_path / "dist"))
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in SHIPPED | modules()} <= names
    assert {"pyproject.toml", "LICENSE", "README.md"} <= names
