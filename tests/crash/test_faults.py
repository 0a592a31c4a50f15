"""The check itself is checked: a server that is not durable must not pass it."""

import signal
from collections.abc import Mapping

import pytest

from tests.crash.aftermath import findings_after
from tests.crash.checker import registration_findings
from tests.crash.disk import AgentKey
from tests.crash.page import Page
from tests.crash.victim import Victim
from tests.crash.watching import Ending, Question, watch_turn

HELD = {"RAMET_FAULT_HOLD_CHUNKS": "10"}
TWICE = {"RAMET_FAULT_SEAL_TWICE": "1"}
SHOWN = 6
"""Chunks that the page has when the server is killed; fewer than are held back."""

pytestmark = pytest.mark.kill


@pytest.mark.parametrize("root", ["ChatAgent", "ThinkAgent"])
async def test_chunks_of_an_answer_that_were_shown_and_not_stored_are_missed(
    fresh: Victim, root: str
) -> None:
    async def kill(page: Page) -> None:
        await page.until(lambda: len(page.seen.chunks.get("request", [])) >= SHOWN)
        fresh.kill()

    findings = await _killed(fresh, ((root, "a"),), "say 60 5", kill)
    assert [each for each in findings if "request request: chunk" in each and "was lost" in each]


async def test_chunks_of_a_run_that_were_shown_and_not_stored_are_missed(fresh: Victim) -> None:
    def shown(page: Page) -> int:
        frames = [frame for run in page.seen.runs.values() for frame in run]
        return sum(frame.body is not None and not frame.transient for frame in frames)

    async def kill(page: Page) -> None:
        await page.until(lambda: shown(page) >= SHOWN)
        fresh.kill()

    findings = await _killed(fresh, (("ChatAgent", "a"),), "research bees 20", kill)
    assert [each for each in findings if "run agent-tool:" in each and "was lost" in each]


@pytest.mark.behaviour("D19")
@pytest.mark.parametrize("root", ["ChatAgent", "ThinkAgent"])
async def test_a_run_that_was_committed_without_its_child_is_missed(
    fresh: Victim, root: str
) -> None:
    fresh.start({"RAMET_FAULT_SPLIT_COMMITS": "1", "RAMET_FAILPOINT": "run.registering"})
    question = Question(request_id="request", text="research bees 2")
    await watch_turn(fresh, ((root, "a"),), question)
    assert fresh.await_death() == -signal.SIGKILL
    assert [each for each in registration_findings(fresh.disk()) if "is not registered" in each]


@pytest.mark.behaviour("AT-058")
@pytest.mark.parametrize("root", ["ChatAgent", "ThinkAgent"])
async def test_a_run_that_was_ended_twice_is_missed(fresh: Victim, root: str) -> None:
    async def kill(page: Page) -> None:
        await page.until(lambda: page.has_end("request"))
        fresh.kill()

    findings = await _killed(fresh, ((root, "a"),), "research bees 2", kill, fault=TWICE)
    assert [each for each in findings if "had ended 2 times before the crash" in each]


async def _killed(
    victim: Victim,
    key: AgentKey,
    text: str,
    kill: Ending,
    *,
    fault: Mapping[str, str] = HELD,
) -> list[str]:
    victim.start(fault)
    watch = await watch_turn(victim, key, Question(request_id="request", text=text), kill)
    disk = victim.disk()
    victim.start()
    return await findings_after(victim.address, watch.views, disk)
