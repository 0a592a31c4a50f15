"""Pages that watch a turn until the server is killed: who asked, who looks on, who drilled in."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from websockets.exceptions import WebSocketException

from ramet.core.json import JsonObject
from tests.crash.disk import AgentKey
from tests.crash.page import Page
from tests.crash.seen import Seen
from tests.crash.victim import Victim

Ending: TypeAlias = Callable[[Page], Coroutine[object, object, None]]

LATEST = 0.008
"""Seconds that a kill may come after the frame it is timed by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When the server is killed: once a page has so many frames more, and a moment later."""

    frames: int
    delay: float

    @classmethod
    def draw(cls, chance: random.Random, most: int) -> "Moment":
        """Any moment of a turn that sends about `most` frames."""
        return cls(frames=chance.randint(0, most), delay=chance.uniform(0, LATEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked."""

    request_id: str
    text: str
    history: Sequence[JsonObject] = ()


@dataclass(slots=True)
class Watch:
    """The pages of one agent and its children, and what they were shown."""

    pages: list[tuple[AgentKey, Page]] = field(default_factory=list)

    @property
    def views(self) -> dict[AgentKey, list[Seen]]:
        """What each page was shown, by its agent."""
        views: dict[AgentKey, list[Seen]] = {}
        for key, page in self.pages:
            views.setdefault(key, []).append(page.seen)
        return views

    async def open(self, address: str, key: AgentKey) -> Page | None:
        """Open a page; None when the server is gone already."""
        try:
            page = await Page.open(address, key)
        except (OSError, WebSocketException):
            return None
        self.pages.append((key, page))
        return page

    async def close(self) -> None:
        """Close all pages."""
        for _, page in self.pages:
            await page.close()


async def watch_turn(
    victim: Victim,
    key: AgentKey,
    question: Question,
    end: Ending | None = None,
) -> Watch:
    """Ask a question and look on from several pages until the connections break.

    `end` sees to the server's death, by the page that asks; without it the server sees to it.
    """
    watch = Watch()
    asking = await watch.open(victim.address, key)
    await watch.open(victim.address, key)
    assert asking is not None, "No server to kill"
    drilling = asyncio.create_task(_drill_in(watch, victim.address, key, asking))
    await asking.ask(question.request_id, question.text, history=question.history)
    try:
        if end is not None:
            await end(asking)
        await asking.until(lambda: asking.gone)
        assert asking.gone, "The server was not killed"
    finally:
        drilling.cancel()
        with suppress(asyncio.CancelledError):
            await drilling
        await watch.close()
    return watch


async def killed_at(victim: Victim, page: Page, request_id: str, moment: Moment) -> None:
    """Kill the server at a moment of a turn, or soon after it when it has fewer frames."""
    due_at = len(page.frames) + moment.frames
    await page.until(lambda: len(page.frames) >= due_at or page.has_end(request_id))
    due = asyncio.Event()
    asyncio.get_running_loop().call_later(moment.delay, due.set)
    await due.wait()
    victim.kill()


async def _drill_in(watch: Watch, address: str, key: AgentKey, asking: Page) -> None:
    """Open the first child that a run starts, as a person who clicks on it."""
    await asking.until(lambda: bool(asking.seen.runs) or asking.gone)
    for frames in asking.seen.runs.values():
        started = frames[0].event
        child = (*key, (str(started.get("agentType")), str(started.get("runId"))))
        page = await watch.open(address, child)
        if page is not None:
            await page.probe()
        return
