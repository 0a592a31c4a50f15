"""Comes back to a server that was killed and started again, and finds what is wrong."""

from collections.abc import Mapping, Sequence

from ramet.core.json import JsonObject
from tests.crash.checker import chat_findings, registration_findings, run_findings, truth_findings
from tests.crash.disk import AgentKey, Disk
from tests.crash.page import Page, get_messages
from tests.crash.seen import Seen
from tests.crash.transcript import transcript_findings


async def findings_after(
    address: str, views: Mapping[AgentKey, Sequence[Seen]], disk: Disk
) -> list[str]:
    """Visit every agent that a page had open, and every child that its runs have.

    Args:
        address: Where the server that was started again listens.
        views: What each page was shown before the kill, by its agent.
        disk: What the killed server had left.
    """
    found = [*disk.damage, *registration_findings(disk)]
    for key in _agents(views, disk):
        found += [f"{_name(key)}: {each}" for each in await _visit(address, key, views, disk)]
    return found


def _agents(views: Mapping[AgentKey, Sequence[Seen]], disk: Disk) -> list[AgentKey]:
    parents = list(views)
    children = [
        (*key, (agent_type, run_id))
        for key in parents
        for run_id, (agent_type, _) in disk.agent(key).runs.items()
    ]
    return list(dict.fromkeys([*parents, *(key for key in children if key in disk.agents)]))


async def _visit(
    address: str, key: AgentKey, views: Mapping[AgentKey, Sequence[Seen]], disk: Disk
) -> list[str]:
    before, stored = views.get(key, ()), disk.agent(key)
    page = await Page.open(address, key)
    found: list[str] = []
    try:
        if await page.probe() is None:
            found.append("the probe is not answered")
        requests = {request_id: None for seen in before for request_id in seen.requests}
        found += [
            f"request {request_id} never ends: a spinner"
            for request_id in {**requests, **dict.fromkeys(stored.outcomes)}
            if not await page.resume(request_id)
        ]
        runs = {run_id for seen in before for run_id in seen.runs} | set(stored.runs)
        if not await page.until(lambda: all(page.seen.terminals(run_id) for run_id in runs)):
            found += [f"run {run_id} never ends" for run_id in runs - _ended(page.seen)]
        if await page.probe() is None:
            found.append("the second probe is not answered")
        seen = page.seen
        found += [*chat_findings(before, seen), *run_findings(before, seen)]
        found += truth_findings(key, disk, seen)
        messages = await get_messages(address, key)
        found += transcript_findings(messages, seen)
        if len(key) == 1:
            found += await _still_works(page, messages)
    finally:
        await page.close()
    return list(dict.fromkeys(found))


async def _still_works(page: Page, history: Sequence[JsonObject]) -> list[str]:
    """A new question is answered as if nothing had happened."""
    request_id = f"after-{len(page.frames)}"
    await page.ask(request_id, "say 2 0", history=history)
    ended = await page.until(lambda: page.has_end(request_id))
    outcome = page.seen.outcome(request_id)
    return [] if ended and outcome == "completed" else [f"a new question ends {outcome}"]


def _ended(seen: Seen) -> set[str]:
    return {run_id for run_id in seen.runs if seen.terminals(run_id)}


def _name(key: AgentKey) -> str:
    return "/".join(f"{cls}:{name}" for cls, name in key)
