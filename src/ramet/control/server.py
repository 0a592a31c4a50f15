"""The control socket of a host: a line of JSON in, a line of JSON out, one for each connection."""

import asyncio
import hmac
import logging
import os
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
from ramet.control.requests import request_of
from ramet.core.json import JsonObject, JsonValue, dump_bytes, loads_object, text_at, to_json
from ramet.core.public_errors import own_words, public_text
from ramet.errors import InvalidArguments, RametError
from ramet.host import Host
from ramet.host.tasks import ended, new_task

MOST_BYTES: Final = 64 * 1024
"""Of a request."""
MOST_AT_ONCE: Final = 8
"""Requests that are answered at the same time."""
PATIENCE_SECONDS: Final = 10.0
"""A peer gets so long to ask, and to take its answer."""
TOKEN_LENGTH: Final = 43

_log = logging.getLogger("ramet.control")


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
        serving = dict(self._serving)
        for task, writer in serving.items():
            task.cancel()
            writer.transport.abort()
        await ended(list(serving))

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
            socket=None if path is None else str(path),
            port=listening.port,
        )
        write_host_file(self._data, host)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._listening is None or len(self._serving) >= MOST_AT_ONCE:
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
            writer.write(dump_bytes(await self._answer_to(line)) + b"\n")
            async with clock.timeout(PATIENCE_SECONDS):
                await writer.drain()
            writer.close()
        except (OSError, TimeoutError):  # the peer is gone, says nothing, or does not read
            writer.transport.abort()

    async def _answer_to(self, line: bytes | None) -> JsonObject:
        try:
            request = request_of(self._checked(line))
            return {"ok": True, "result": to_json(await self._answers.answer(request))}
        except RametError as error:
            return {"ok": False, "error": own_words(error)}
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with a request, the host stays
            return {"ok": False, "error": public_text(error, self._host.ids)}

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


async def _line(reader: asyncio.StreamReader) -> bytes | None:
    """What a peer sends up to the end of its line; None when that is too much."""
    try:
        return await reader.readline()
    except ValueError:
        return None
