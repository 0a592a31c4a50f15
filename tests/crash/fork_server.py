"""A program that imports what takes long, then forks commands: `-m tests.crash.fork_server`.

Nine tenths of a server's start are the imports of pydantic-ai. Here they are paid once; what is
forked is a process in a session of its own that imports ramet anew and runs its command line. Each
line of standard input is an order: `{"run": [...], "variables": {...}, "log": "..."}` is answered
with the process id, `{"reap": pid}` with the exit code once that process has ended.
"""

import importlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

HEAVY = (
    "click pydantic_ai pydantic_ai.models.function starlette.applications uvicorn "
    "uvicorn.lifespan.on uvicorn.protocols.websockets.websockets_sansio_impl websockets"
)


def main() -> None:
    """Take orders until standard input ends."""
    for name in HEAVY.split():
        importlib.import_module(name)
    _answer("ready")
    for line in sys.stdin:
        order = json.loads(line)
        if "reap" in order:
            _, status = os.waitpid(order["reap"], 0)
            _answer(os.waitstatus_to_exitcode(status))
        else:
            _answer(_forked(order["run"], order["variables"], Path(order["log"])))


def _answer(value: object) -> None:
    sys.stdout.write(f"{value}\n")
    sys.stdout.flush()


def _forked(command: list[str], variables: Mapping[str, str], log: Path) -> int:
    pid = os.fork()
    if pid == 0:
        _become(command, variables, log)
    return pid


def _become(command: list[str], variables: Mapping[str, str], log: Path) -> NoReturn:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(variables)
    sys.argv = ["ramet", *command]
    importlib.import_module("ramet.cli.main").main()
    sys.exit(1)


if __name__ == "__main__":
    main()
