"""Orders to do something later, and what is wrong when a ledger says what became of them."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import httpx

from ramet.core.json import JsonObject, loads_object
from ramet.protocol.messages import parts_of
from tests.crash.disk import AgentKey
from tests.crash.page import PATIENCE, get_messages, path_of

KINDS = ("queue", "schedule", "fiber", "submission")
MOST_ROUNDS = 6
_PAUSE = 0.05
_BETWEEN_ORDERS = 0.005


@dataclass(slots=True)
class Orders:
    """What one agent was asked to do later."""

    key: AgentKey
    stored: dict[str, str] = field(default_factory=dict)
    """The kind of each order that was acknowledged."""
    sent: dict[str, str] = field(default_factory=dict)
    """The kind of each order, whether its answer came or not."""
    kills: int = 0
    """How often the server was killed since the first of them."""


async def keep_ordering(address: str, orders: Orders, prefix: str) -> None:
    """Give one order after the other, of each kind in turn, until the server is gone."""
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        for number, kind in enumerate(KINDS * MOST_ROUNDS):
            item = f"{prefix}-{kind}-{number}"
            orders.sent[item] = kind
            try:
                answer = await http.get(f"http://{address}{path_of(orders.key)}/{kind}/{item}")
            except httpx.TransportError:
                return
            assert answer.text == "stored", answer.text
            orders.stored[item] = kind
            await _a_moment(_BETWEEN_ORDERS)


async def ledger_after(address: str, orders: Orders) -> list[str]:
    """Wait until everything that was ordered is done; what is wrong then."""
    findings: list[str] = []
    for _ in range(int(PATIENCE / _PAUSE)):
        findings = await _look(address, orders)
        if not findings:
            break
        await _a_moment()
    return findings


async def _look(address: str, orders: Orders) -> list[str]:
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        answer = await http.get(f"http://{address}{path_of(orders.key)}/ledger")
    report = loads_object(answer.content) or {}
    lines = report.get("lines")
    assert isinstance(lines, list), f"The ledger is {report!r}"
    messages = await get_messages(address, orders.key)
    still_open = [f"{report['open']} orders are not done"] if report["open"] else []
    return [
        *still_open,
        *ledger_findings(orders, [str(line) for line in lines]),
        *submission_findings(orders.stored, messages),
    ]


def ledger_findings(orders: Orders, lines: Sequence[str]) -> Iterator[str]:
    """What is wrong with a ledger: schedules, queue items and fibers, at least once each."""
    times = Counter(lines)
    for item, kind in orders.sent.items():
        ended, recovered = times[item], times[f"{item} recovered"]
        if kind != "submission" and item in orders.stored and not ended + recovered:
            yield f"the {kind} {item} was forgotten"
        if ended > (1 if kind == "fiber" else 1 + orders.kills):
            yield f"the {kind} {item} was done {ended} times over {orders.kills} kills"
        if recovered > orders.kills:
            yield f"the fiber {item} was recovered {recovered} times over {orders.kills} kills"
    for line in times:
        if line.removesuffix(" recovered") not in orders.sent:
            yield f"the ledger has {line!r}, which nobody has ordered"


def submission_findings(stored: Mapping[str, str], messages: Sequence[JsonObject]) -> Iterator[str]:
    """What is wrong with submissions: each that was acknowledged is asked and answered once."""
    asked = Counter(_text(each) for each in messages if each.get("role") == "user")
    for item, kind in stored.items():
        if kind == "submission" and asked[item] != 1:
            yield f"the submission {item} was asked {asked[item]} times"
    for item, times in asked.items():
        if times > 1:
            yield f"{item} was asked {times} times"
    nobody: JsonObject = {"role": "nobody"}
    for question, answer in itertools.pairwise([*messages, nobody]):
        if question.get("role") == "user" and answer.get("role") != "assistant":
            yield f"{_text(question)} was not answered"


def _text(message: Mapping[str, object]) -> str:
    return "".join(str(part.get("text", "")) for part in parts_of(message))


async def _a_moment(seconds: float = _PAUSE) -> None:
    """Let the server go on."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, passed.set)
    await passed.wait()
