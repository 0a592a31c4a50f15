"""Asks about a data directory: its host, or, when nobody serves it, the files themselves (D15)."""

import asyncio
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Final

from ramet.control.host_file import HostFile, read_host_file
from ramet.control.listening import LONGEST_PATH, LOOPBACK
from ramet.control.requests import CancelRun, ClearRuns, Request
from ramet.control.without_host import answers_of
from ramet.core.clock import Clock
from ramet.core.json import JsonObject, JsonValue, dump_bytes, loads_object, text_at, to_json
from ramet.errors import DataDirectoryInUse, HostUnreachable, InvalidArguments, RametError
from ramet.storage import DataDirectory

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 120.0
_PIECE: Final = 65_536
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""As what Python reads a byte that is not of UTF-8."""


def ask(data: Path, request: Request, *, clock: Clock) -> JsonObject:
    """The answer to a request about a data directory; blocks.

    Whoever holds the lock of the directory is asked. When nobody does, it is held while files are
    read; a host that starts meanwhile is asked instead.

    Raises:
        DataDirectoryNotFound: There is no data directory.
        HostUnreachable: Only a host can do it and none runs, or the one that runs cannot be asked.
        RametError: The request asks for what is not there.
    """
    _check_text(request)
    try:
        return _read(DataDirectory(data), request, clock)
    except DataDirectoryInUse:
        return _asked_of_host(data, request)


def _read(files: DataDirectory, request: Request, clock: Clock) -> JsonObject:
    """The answer out of the files; raises `DataDirectoryInUse` when they are a host's."""
    files.acquire_to_read()
    try:
        if isinstance(request, CancelRun | ClearRuns):
            raise HostUnreachable(
                f"No server runs on {files.path.absolute()}, and only a running one can do that; "
                "a run whose process is gone is taken up at the next start"
            )
        with answers_of(files, clock) as answers:
            return _object(to_json(asyncio.run(answers.answer(request))))
    finally:
        files.release()


def _check_text(request: Request) -> None:
    """Refuse words of a command line that are no text; raises `InvalidArguments`."""
    values = (getattr(request, field.name) for field in fields(request))
    for value in values:
        if isinstance(value, str) and _SURROGATE.search(value):
            raise InvalidArguments(f"{value!a} is not UTF-8")


def _asked_of_host(data: Path, request: Request) -> JsonObject:
    host = read_host_file(data)
    if host is None:
        raise HostUnreachable(
            f"The data directory {data.absolute()} is in use by a process that cannot be asked: "
            "it is starting or stopping, has no control socket, or is another user's"
        )
    try:
        answer = loads_object(_exchanged(host, request))
    except OSError as error:
        raise HostUnreachable(
            f"The server of {data.absolute()} (process {host.pid}) cannot be asked: {error}"
        ) from error
    if answer is None:
        raise HostUnreachable(
            f"The server of {data.absolute()} (process {host.pid}) gave no answer: "
            "it is stopping, or has too many requests"
        )
    if answer.get("ok") is not True:
        raise RametError(text_at(answer, "error") or "The server refused without a reason")
    return _object(answer.get("result"))


def _exchanged(host: HostFile, request: Request) -> bytes:
    with _connected(host) as link:
        # To clear may take as long as there are runs.
        link.settimeout(None if isinstance(request, ClearRuns) else ANSWER_SECONDS)
        link.sendall(dump_bytes({"token": host.token, "request": request}) + b"\n")
        pieces = bytearray()
        while piece := link.recv(_PIECE):
            pieces += piece
        return bytes(pieces)


@contextmanager
def _connected(host: HostFile) -> Iterator[socket.socket]:
    family = socket.AF_INET if host.socket is None else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_STREAM) as link:
        link.settimeout(CONNECT_SECONDS)
        link.connect((LOOPBACK, host.port) if host.socket is None else _short(Path(host.socket)))
        yield link


def _short(path: Path) -> str:
    """A path that may be connected to, where the one by which the socket was found is too long."""
    long = len(os.fsencode(path)) > LONGEST_PATH
    return str(path.resolve() if long else path)


def _object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise HostUnreachable(f"The server gave an answer that is none: {value!r}")
    return value
