"""Where the npm packages of the browser tests are: in their folder, or in a copy with others."""

import os
from pathlib import Path

CHECKED_IN = Path(__file__).resolve().parents[1] / "browser"
VARIABLE = "RAMET_BROWSER_FOLDER"
"""Names a copy with other versions of the packages: see `tests/browser/version_sets.py`."""

NPM_FOLDER = Path(os.environ.get(VARIABLE) or CHECKED_IN)
