"""The control socket of a host: a line of JSON in, a line of JSON out, one for each connection."""

import asyncio
import hmac
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from ramet.control.answers import own_version
from ramet.control.host_answers import HostAnswers
from ramet.control.host_file import (
    HostFile,
    lock_of,
    read_host_file,
    remove_host_file,
    write_host_file,
)
from ramet.control.listening import Listening, listen, remove_left_over
from ramet.control.reports import Report
from ramet.control.requests import CancelRun, ClearRuns, Request, request_of
from ramet.core.json import JsonObject, JsonValue, dump_bytes, loads_object, text_at, to_json
from ramet.core.public_errors import own_words, public_text
from ramet.errors import HostUnreachable, InvalidArguments, RametError
from ramet.host import Host
from ramet.host.tasks import ended, new_task

MOST_BYTES: Final = 64 * 1024
"""Of a request."""
MOST_AT_ONCE: Final = 8
"""Requests that are answered at the same time: so many that read, and so many that act."""
MOST_LEFT: Final = 32
"""What peers have begun who are gone; of more the oldest is ended."""
PATIENCE_SECONDS: Final = 10.0
"""A peer gets so long to ask, and to take its answer."""
TOKEN_LENGTH: Final = 43

_log = logging.getLogger("ramet.control")


class _PeerGone(Exception):
    """Nobody is there any more who could be answered."""


class ControlSocket:
    """Lets operators ask a running host; trouble with it is logged and never the host's."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._data = host.files.path
        self._token = host.ids.url_safe(TOKEN_LENGTH)
        self._answers = HostAnswers(host)
        self._listening: Listening | None = None
        self._server: asyncio.Server | None = None
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._work: set[asyncio.Task[Report]] = set()
        self._left: list[asyncio.Task[Report]] = []
        self._acting = 0

    async def start(self) -> None:
        """Listen, and say so in `host.json`; the lock of the data directory is held."""
        before = read_host_file(self._data)
        remove_host_file(self._data)
        if before is not None and before.socket is not None:
            remove_left_over(Path(before.socket))
        try:
            self._listening = listen(self._data)
            self._server = await self._served(self._listening)
            self._announce(self._listening)
        except OSError as error:
            _log.warning("There is no control socket: %s", error)
            await self.stop()

    async def stop(self) -> None:
        """Listen no more, and end what is being answered; before the lock is released."""
        remove_host_file(self._data)
        if self._server is not None:
            self._server.close()
        if self._listening is not None:
            self._listening.close()
        self._server = self._listening = None
        serving, work = dict(self._serving), list(self._work)
        for task, writer in serving.items():
            task.cancel()
            writer.transport.abort()
        for begun in work:
            begun.cancel()
        await ended([*serving, *work])

    async def _served(self, listening: Listening) -> asyncio.Server:
        start = asyncio.start_server if listening.path is None else asyncio.start_unix_server
        return await start(self._connected, sock=listening.listener, limit=MOST_BYTES)

    def _announce(self, listening: Listening) -> None:
        path = listening.path
        host = HostFile(
            pid=os.getpid(),
            version=own_version(),
            started_at=self._host.clock.now_ms(),
            lock=lock_of(self._data),
            token=self._token,
            socket=None if path is None else _named(path, self._data),
            port=listening.port,
        )
        write_host_file(self._data, host)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._listening is None or len(self._serving) - self._acting >= MOST_AT_ONCE:
            writer.transport.abort()
            return
        task = new_task(self._serve(reader, writer), name="a request on the control socket")
        self._serving[task] = writer
        task.add_done_callback(self._serving.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clock = self._host.clock
        try:
            async with clock.timeout(PATIENCE_SECONDS):
                line = await _line(reader)
            writer.write(dump_bytes(await self._answer_to(line, reader)) + b"\n")
            async with clock.timeout(PATIENCE_SECONDS):
                await writer.drain()
            writer.close()
        except (OSError, TimeoutError, _PeerGone):  # or it says nothing, or does not read
            writer.transport.abort()

    async def _answer_to(self, line: bytes | None, reader: asyncio.StreamReader) -> JsonObject:
        try:
            request = request_of(self._checked(line))
            return {"ok": True, "result": to_json(await self._in_its_place(request, reader))}
        except RametError as error:
            return {"ok": False, "error": own_words(error)}
        except _PeerGone:
            raise
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with a request, the host stays
            return {"ok": False, "error": public_text(error, self._host.ids)}

    async def _in_its_place(self, request: Request, reader: asyncio.StreamReader) -> Report:
        """Requests that act have places of their own: one may take long, and no look waits."""
        if not isinstance(request, CancelRun | ClearRuns):
            return await self._answered(request, reader)
        if self._acting >= MOST_AT_ONCE:
            raise HostUnreachable(
                f"The server has {MOST_AT_ONCE} requests under way that change something; "
                "try again when one of them has been answered"
            )
        self._acting += 1
        try:
            return await self._answered(request, reader)
        finally:
            self._acting -= 1

    async def _answered(self, request: Request, reader: asyncio.StreamReader) -> Report:
        """The answer to a request; what acts goes on when nobody is left to hear of it."""
        work = new_task(self._answers.answer(request), name=request.command)
        self._work.add(work)
        work.add_done_callback(self._over)
        gone = new_task(_gone(reader), name="the peer of a request")
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            self._leave(work, acts=isinstance(request, CancelRun | ClearRuns))
            raise _PeerGone
        finally:
            gone.cancel()

    def _leave(self, work: asyncio.Task[Report], *, acts: bool) -> None:
        if not acts:
            work.cancel()
            return
        self._left.append(work)
        if len(self._left) > MOST_LEFT:
            self._left.pop(0).cancel()

    def _over(self, work: asyncio.Task[Report]) -> None:
        self._work.discard(work)
        error = None if work.cancelled() else work.exception()
        if work in self._left:
            self._left.remove(work)
            _log.debug("%s ended when its peer was gone: %s", work.get_name(), error)

    def _checked(self, line: bytes | None) -> JsonValue:
        """The request of a peer that knows the token."""
        if line is None:
            raise InvalidArguments(f"A request has at most {MOST_BYTES} bytes")
        asked = loads_object(line)
        if asked is None:
            raise InvalidArguments("A request is one JSON object on one line")
        token = text_at(asked, "token") or ""
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            raise InvalidArguments("The token is not the one in host.json")
        return asked.get("request")


def _named(path: Path, data: Path) -> str:
    return path.name if path.parent == data.absolute() else str(path)


async def _line(reader: asyncio.StreamReader) -> bytes | None:
    """What a peer sends up to the end of its line; None when that is too much."""
    try:
        return await reader.readline()
    except ValueError:
        return None


async def _gone(reader: asyncio.StreamReader) -> None:
    """Wait until a peer has closed its end; what else it sends is nobody's."""
    with suppress(OSError):
        while await reader.read(MOST_BYTES):
            continue
