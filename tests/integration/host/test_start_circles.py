"""Agents whose `on_start` asks for one another: told at once, instead of waiting for ever."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ramet
from ramet.errors import CallError

apps: dict[str, ramet.App] = {}


class Crossing(ramet.Agent[None]):
    """On start asks for the agents in its name: `a>b` opens `b>a`."""

    async def on_start(self) -> None:
        own, _, others = self.name.partition(">")
        for other in filter(None, others.split("+")):
            await apps["now"].get_agent(Crossing, f"{other}>{own}").hello()

    async def hello(self) -> str:
        return self.name


class Ring(ramet.Agent[None]):
    """Number n asks for number n + 1, the last for the first."""

    async def on_start(self) -> None:
        following = (int(self.name) + 1) % 3
        await apps["now"].get_agent(Ring, str(following)).hello()

    async def hello(self) -> str:
        return self.name


class Quiet(ramet.Agent[None]):
    async def hello(self) -> str:
        return self.name


class Fan(ramet.Agent[None]):
    """Asks two that ask for nobody, one of them twice."""

    heard: list[str]

    async def on_start(self) -> None:
        names = ["b", "b", "c"]
        asked = [apps["now"].get_agent(Quiet, name).hello() for name in names]
        self.heard = await asyncio.gather(*asked)

    async def said(self) -> list[str]:
        return self.heard


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[ramet.App]:
    apps["now"] = ramet.App(agents=[Crossing, Fan, Quiet, Ring], data_dir=tmp_path)
    async with apps["now"]:
        yield apps["now"]
    del apps["now"]


async def test_two_agents_that_ask_for_each_other_are_told_so(app: ramet.App) -> None:
    with pytest.raises(CallError, match=r"wait for each other to start: .*b>a.*a>b.*b>a"):
        await app.get_agent(Crossing, "a>b").hello()


async def test_a_longer_circle_is_noticed_too(app: ramet.App) -> None:
    with pytest.raises(CallError, match="wait for each other to start"):
        await app.get_agent(Ring, "0").hello()


async def test_asking_for_agents_that_ask_for_nobody_is_no_circle(app: ramet.App) -> None:
    assert await app.get_agent(Fan, "a").said() == ["b", "b", "c"]
