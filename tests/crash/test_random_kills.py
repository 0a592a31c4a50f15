"""`kill -9` at random moments: whatever a client saw is there again, once, and its end is true.

Meanwhile another agent is given schedules, queue items, fibers and submissions; its ledger says
what became of them. In the end nothing is left open on disk.

`RAMET_KILLS=200` kills more often, `RAMET_KILL_SEED=…` at other moments.
"""

import asyncio
import os
import random
from collections.abc import Iterator, Mapping

import pytest

from tests.crash.aftermath import findings_after
from tests.crash.checker import rest_findings
from tests.crash.disk import AgentKey
from tests.crash.forked import ForkServer
from tests.crash.ledger import Orders, keep_ordering, ledger_after
from tests.crash.page import Page, get_messages
from tests.crash.victim import Victim
from tests.crash.watching import Moment, Question, Watch, killed_at, watch_turn

KILLS = int(os.environ.get("RAMET_KILLS", "24"))
SEED = os.environ.get("RAMET_KILL_SEED", "ramet")
KILLS_OF_A_LEDGER = 4
AGAIN = 0.25
"""How often the server is killed once more while it sends everything again."""

SCENES: Mapping[str, int] = {
    "say 60 5": 66,
    "research bees 5": 30,
    "compare bees wasps": 46,
    "research bees 15": 24,
    "think-research bees 15": 24,
}
"""What is asked, and about how many frames it takes until little is left to be killed."""

pytestmark = pytest.mark.kill


@pytest.fixture(scope="module")
def victim(forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    victim = Victim(forks, tmp_path_factory.mktemp("kills"), app="tests.crash.ledger_app:app")
    yield victim
    victim.kill()


@pytest.fixture(scope="module")
def ledgers() -> list[Orders]:
    """What was ordered so far; the last of them is still added to."""
    return []


@pytest.mark.behaviour("D1", "D2", "D4", "D6", "D10")
@pytest.mark.parametrize("number", range(KILLS))
async def test_nothing_that_was_seen_is_lost_when_the_server_is_killed(
    victim: Victim, ledgers: list[Orders], number: int
) -> None:
    chance = random.Random(f"{SEED}:{number}")
    text = list(SCENES)[number // 2 % len(SCENES)]
    root = ("ChatAgent", "ThinkAgent")[number % 2]
    name = "shared" if chance.random() < 0.3 else f"agent-{number}"
    key: AgentKey = ((root, name),)
    moment = Moment.draw(chance, SCENES[text])
    again = Moment.draw(chance, SCENES[text]) if chance.random() < AGAIN else None
    if not victim.alive:
        victim.start()
    question = Question(
        request_id=f"request-{number}",
        text=text,
        history=await get_messages(victim.address, key),
    )

    async def kill(page: Page) -> None:
        await killed_at(victim, page, question.request_id, moment)

    orders = _next_orders(ledgers, number)
    ordering = asyncio.create_task(keep_ordering(victim.address, orders, f"k{number}"))
    views = (await watch_turn(victim, key, question, kill)).views
    await ordering
    disk = victim.disk()
    if again is not None:
        orders.kills += 1
        victim.start()
        watch = await _killed_while_coming_back(victim, key, question, again)
        for each, seen in watch.views.items():
            views.setdefault(each, []).extend(seen)
    victim.start()
    findings = await findings_after(victim.address, views, disk)
    findings += await ledger_after(victim.address, orders)
    victim.kill()
    orders.kills += 1
    rest = victim.disk()
    findings += [*rest.damage, *rest_findings(rest)]
    assert not findings, f"{root} {name!r}, {text!r}, {moment}, then {again}"


def _next_orders(ledgers: list[Orders], number: int) -> Orders:
    """The orders of this kill, given to the same agent for some kills in a row."""
    if not ledgers or number % KILLS_OF_A_LEDGER == 0:
        ledgers.append(Orders((("LedgerAgent", f"ledger-{number}"),)))
    ledgers[-1].kills += 1
    return ledgers[-1]


async def _killed_while_coming_back(
    victim: Victim, key: AgentKey, question: Question, moment: Moment
) -> Watch:
    watch = Watch()
    page = await watch.open(victim.address, key)
    assert page is not None
    await page.acknowledge(question.request_id)
    await killed_at(victim, page, question.request_id, moment)
    await watch.close()
    return watch
