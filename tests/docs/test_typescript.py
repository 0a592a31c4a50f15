"""The TypeScript of the README and the docs fits the published packages."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, Block
from tests.support.npm import CHECKED_IN

LANGUAGES = ("ts", "tsx", "js")


@pytest.mark.browser
@pytest.mark.timeout(180)
def test_the_typescript_of_the_docs_type_checks() -> None:
    assert shutil.which("node"), "Node 20 is needed"
    blocks = [block for page in PAGES for block in page.blocks() if block.language in LANGUAGES]
    assert blocks
    with tempfile.TemporaryDirectory(dir=CHECKED_IN, prefix=".docs-") as folder:
        for number, block in enumerate(blocks):
            write(Path(folder), block, number)
        # A file each: what one of them imports must not depend on the others.
        config = {
            "extends": "../tsconfig.json",
            "compilerOptions": {"noUnusedLocals": False, "noUnusedParameters": False},
            "include": ["*/*"],
        }
        (Path(folder) / "tsconfig.json").write_text(json.dumps(config))
        checked = subprocess.run(
            ["node", "node_modules/typescript/bin/tsc", "--noEmit", "-p", folder],
            cwd=CHECKED_IN,
            capture_output=True,
            text=True,
            check=False,
        )
    assert checked.returncode == 0, checked.stdout


def write(folder: Path, block: Block, number: int) -> None:
    """Write a block as a module of its own, named after where it stands."""
    name = block.place.replace("/", "-").replace(":", "-").replace(".md", "")
    file = folder / str(number) / f"{name}.{block.language}"
    file.parent.mkdir()
    file.write_text(f"{block.code}\nexport {{}};\n", encoding="utf-8")
