"""Compiles every Python file below the working folder in memory, one line each; writes nothing.

A file to be run, not imported: it needs nothing but the standard library.
"""

import os
import sys
import warnings
from pathlib import Path

SKIPPED = {"node_modules", "venv", "env", "__pycache__", "site-packages", "dist", "build"}


def main(root: Path) -> int:
    """Check all files and say how each is; returns 1 when one is no Python."""
    warnings.simplefilter("ignore")
    files = [*_files(root)]
    _say(f"collected {len(files)} files")
    failed = 0
    for number, file in enumerate(files, start=1):
        trouble = _trouble(file)
        failed += trouble is not None
        percent = 100 * number // len(files)
        _say(f"{file.relative_to(root)} {'ok' if trouble is None else 'FAILED'} [{percent:3}%]")
        if trouble is not None:
            _say(f"    {trouble}")
    _say(f"{len(files) - failed} ok, {failed} failed")
    return 1 if failed else 0


def _files(root: Path) -> list[Path]:
    found: list[Path] = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED and not n.startswith("."))
        found += [Path(folder, name) for name in sorted(files) if name.endswith(".py")]
    return found


def _trouble(file: Path) -> str | None:
    try:
        compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OSError) as error:
        return str(error)
    return None


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
