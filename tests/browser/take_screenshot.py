"""Takes the picture in the README: `python -m tests.browser.take_screenshot`."""

import subprocess
import tempfile
from pathlib import Path

from tests.support.npm import CHECKED_IN
from tests.support.server import ROOT, running

PICTURE = ROOT / "docs" / "images" / "demo.png"


def main() -> None:
    """Start the demo with nothing in it, take the picture, stop the demo."""
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, running("demo", folder=Path(folder)) as server:
        command = ["node", "screenshot.mjs", "--server", server.address, "--out", str(PICTURE)]
        subprocess.run(command, cwd=CHECKED_IN, check=True, timeout=120)


if __name__ == "__main__":
    main()
