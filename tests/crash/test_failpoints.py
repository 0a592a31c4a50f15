"""`kill -9` exactly at each named place of the source, which is checked like any other kill."""

import ast
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.crash.aftermath import findings_after
from tests.crash.disk import AgentKey
from tests.crash.test_detached import CASES as DETACHED_CASES
from tests.crash.test_detached import CHAT_CASES
from tests.crash.test_durable import CASES as DURABLE_CASES
from tests.crash.test_recovery import CASES as RECOVERY_CASES
from tests.crash.victim import Victim
from tests.crash.watching import Question, watch_turn
from tests.integration.chat import test_turn_kills as turn_kills
from tests.integration.host import test_deletion_kills as deletion_kills
from tests.integration.think import test_answer_kills as answer_kills
from tests.integration.think import test_submission_kills as submission_kills
from tests.support.server import ROOT

SAY, RESEARCH, THINK_RESEARCH = "say 8 1", "research bees 2", "think-research bees 2"


@dataclass(frozen=True, slots=True)
class Case:
    """A place, the pass of it that kills, and what leads there."""

    name: str
    root: str
    text: str
    passes: int = 1

    @property
    def armed(self) -> str:
        """The value of RAMET_FAILPOINT."""
        return f"{self.name}:{self.passes}"


CASES = [
    Case("turn.recorded", "ChatAgent", SAY),
    Case("turn.recorded", "ThinkAgent", RESEARCH, 2),
    Case("turn.started", "ThinkAgent", SAY),
    Case("turn.started", "ChatAgent", RESEARCH, 2),
    Case("chat.chunk.committed", "ChatAgent", SAY, 5),
    Case("chat.chunk.committed", "ThinkAgent", RESEARCH, 10),
    Case("turn.message_stored", "ThinkAgent", SAY),
    Case("turn.message_stored", "ChatAgent", THINK_RESEARCH),
    Case("turn.ended", "ChatAgent", SAY),
    Case("turn.ended", "ThinkAgent", RESEARCH),
    Case("chat.milestone.committed", "ChatAgent", RESEARCH),
    Case("chat.run_sealed", "ChatAgent", RESEARCH),
    Case("chat.run_sealed", "ThinkAgent", THINK_RESEARCH),
    Case("step.committed", "ThinkAgent", RESEARCH),
    Case("step.committed", "ThinkAgent", THINK_RESEARCH, 2),
    Case("step.result_committed", "ThinkAgent", RESEARCH),
    Case("run.registering", "ThinkAgent", RESEARCH),
    Case("run.registered", "ChatAgent", RESEARCH),
    Case("run.announced", "ThinkAgent", RESEARCH),
    Case("run.started", "ChatAgent", THINK_RESEARCH),
    Case("run.signal_stored", "ThinkAgent", RESEARCH),
    Case("run.finalizing", "ChatAgent", RESEARCH),
    Case("run.finalized", "ThinkAgent", THINK_RESEARCH),
]


def _named() -> Iterator[str]:
    """Every place that the source names."""
    for file in sorted((ROOT / "src" / "ramet").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="failpoint"), args=[ast.Constant(value=name)]):
                    yield str(name)


def test_every_named_place_is_killed_at() -> None:
    durable = {case.name for case in DURABLE_CASES}
    detached = {*CHAT_CASES, *(case.name for case in DETACHED_CASES)}
    recovery = {case.name for case in RECOVERY_CASES}
    steps = {
        *turn_kills.GIVE_UPS,
        *submission_kills.STEPS,
        *deletion_kills.STEPS,
        *answer_kills.OF_APPROVALS,
    }
    places = {step.partition(":")[0] for step in {*steps, *detached}}
    assert {case.name for case in CASES} | durable | recovery | places == set(_named())


@pytest.mark.kill
@pytest.mark.behaviour("D1", "D2", "D4", "D5", "D10")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.armed}-{case.root}")
async def test_a_kill_at_a_named_place_loses_nothing(fresh: Victim, case: Case) -> None:
    key: AgentKey = ((case.root, "a"),)
    fresh.start({"RAMET_FAILPOINT": case.armed})
    watch = await watch_turn(fresh, key, Question(request_id="request", text=case.text))
    assert fresh.await_death() == -signal.SIGKILL
    disk = fresh.disk()
    fresh.start()
    assert not await findings_after(fresh.address, watch.views, disk)
