"""Checks that a class of agents can be run as an agent tool: a report, an assertion, a test class.

Each rule is checked by itself, under a real host on a data directory of its own.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final, Literal
from unittest import SkipTest

from ramet.agent_tools.children import TAIL, has_adapter
from ramet.core.clock import SystemClock
from ramet.testing import conformance_checks as told
from ramet.testing import conformance_endings as endings
from ramet.testing.conformance_checks import Check, Need
from ramet.testing.conformance_probe import CheckFailed, ConformanceParent, Probe, stepped
from ramet.testing.conformance_scenario import NOT_GIVEN, ChildScenario
from ramet.testing.harness import Harness

_SLOW: Final = frozenset[Need]({"slow"})
_RELEASED: Final = frozenset[Need]({"slow", "release"})
_TAIL: Final = frozenset[Need]({"tail"})

CHECKS: Final = tuple(
    Check(name=run.__name__, rule=str(run.__doc__).strip(), run=run, needs=needs)
    for run, needs in (
        (told.has_the_methods, frozenset[Need]()),
        (told.knows_no_unknown_run, frozenset[Need]()),
        (told.starts_with_an_inspection, frozenset[Need]()),
        (told.starts_once, frozenset[Need]()),
        (told.tells_all_fields, frozenset[Need]()),
        (told.numbers_chunks_from_0, frozenset[Need]()),
        (told.reads_after_a_sequence, frozenset[Need]()),
        (told.reports_a_failure, frozenset[Need]({"failing"})),
        (told.serves_its_parent, frozenset[Need]()),
        (told.keeps_runs_apart, frozenset[Need]()),
        (told.survives_a_crash, frozenset[Need]()),
        (told.survives_a_crash_under_way, _SLOW),
        (endings.tails_to_the_end, _TAIL),
        (endings.tails_stored_then_live, _TAIL | _RELEASED),
        (endings.tails_after_the_end, _TAIL),
        (endings.goes_on_unobserved, _TAIL | _RELEASED),
        (endings.can_be_cancelled, _SLOW),
        (endings.ends_tails_when_cancelled, _TAIL | _SLOW),
        (endings.can_be_cancelled_at_once, _SLOW),
        (endings.can_be_cancelled_twice, _SLOW),
        (endings.can_be_cancelled_before_the_start, frozenset[Need]()),
        (endings.stays_ended, frozenset[Need]()),
        (endings.ends_when_its_parent_aborts, _SLOW),
    )
)
"""Every check, in the order in which they are made."""

_WANTED: Final[dict[Need, str]] = {
    "slow": "the scenario has no slow_input",
    "release": "the scenario has no release",
    "failing": "the scenario has no failing_input",
    "tail": f"the child has no {TAIL}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """How one check came out."""

    name: str
    rule: str
    """What a child has to do, in one sentence."""
    status: Literal["passed", "failed", "skipped"]
    detail: str = ""
    """What went wrong, or why the check was skipped."""

    def __str__(self) -> str:
        """One line."""
        behind = f": {self.detail}" if self.detail else ""
        return f"{self.status} {self.name} ({self.rule}){behind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    """How a class of children came out of all checks."""

    child: str
    results: Sequence[CheckResult]

    @property
    def failed(self) -> Sequence[CheckResult]:
        """The checks that failed."""
        return [result for result in self.results if result.status == "failed"]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    def __str__(self) -> str:
        """One line for each check."""
        return "\n".join([self.child, *(f"  {result}" for result in self.results)])


async def check_agent_tool_child(
    child: type, scenario: ChildScenario | None = None
) -> ConformanceReport:
    """Check a class of agents against every rule of the agent-tool adapter.

    Args:
        child: The class; it is run as it is.
        scenario: What its runs are asked. What it leaves out is not checked.
    """
    scenario = scenario or ChildScenario()
    results = [await _result_of(check, child, scenario) for check in CHECKS]
    return ConformanceReport(child=child.__name__, results=results)


async def assert_agent_tool_child(child: type, scenario: ChildScenario | None = None) -> None:
    """Raise `AssertionError` that names every rule which a class of agents does not keep."""
    report = await check_agent_tool_child(child, scenario)
    if not report.passed:
        lines = "\n".join(f"  {result}" for result in report.failed)
        raise CheckFailed(f"{report.child} is no agent-tool child as it should be:\n{lines}")


class AgentToolConformance:
    """The checks as tests: derive a test class from it and name the child.

    ```python
    class TestImporter(AgentToolConformance):
        child = Importer
        scenario = ChildScenario(input="small.csv", slow_input="endless.csv")
    ```
    """

    child: ClassVar[Any]
    """The class that is checked."""
    scenario: ClassVar[ChildScenario] = ChildScenario()
    """What its runs are asked."""


def _test_of(check: Check) -> Callable[[AgentToolConformance], None]:
    def test(self: AgentToolConformance) -> None:
        result = asyncio.run(_result_of(check, self.child, self.scenario))
        if result.status == "skipped":
            raise SkipTest(result.detail)
        if result.status == "failed":
            raise CheckFailed(f"{check.rule} {result.detail}")

    test.__name__ = f"test_{check.name}"
    test.__doc__ = check.rule
    return test


for _check in CHECKS:
    setattr(AgentToolConformance, f"test_{_check.name}", _test_of(_check))


async def _result_of(check: Check, child: type, scenario: ChildScenario) -> CheckResult:
    if check.run is not told.has_the_methods and not has_adapter(child):
        why = f"the child lacks methods: see {told.has_the_methods.__name__}"
        return CheckResult(name=check.name, rule=check.rule, status="skipped", detail=why)
    missing = check.needs - _given(child, scenario)
    if missing:
        why = ", ".join(sorted(_WANTED[need] for need in missing))
        return CheckResult(name=check.name, rule=check.rule, status="skipped", detail=why)
    try:
        await _run(check, child, scenario)
    except CheckFailed as failure:
        detail = str(failure)
    except TimeoutError:
        detail = f"A call of the child has not returned within {scenario.timeout:g} seconds"
    except Exception as error:  # noqa: BLE001 - whatever a child raises fails the check
        detail = f"{type(error).__name__}: {error}"
    else:
        return CheckResult(name=check.name, rule=check.rule, status="passed")
    return CheckResult(name=check.name, rule=check.rule, status="failed", detail=detail)


async def _run(check: Check, child: type, scenario: ChildScenario) -> None:
    with TemporaryDirectory(prefix="ramet-conformance-") as folder:
        await stepped(scenario.prepare)
        classes = [child, *(each for each in scenario.sub_agents if each is not child)]
        harness = Harness(agents=[ConformanceParent], sub_agents=classes, data_dir=Path(folder))
        async with harness, SystemClock().timeout(scenario.timeout * 2):
            await check.run(Probe(harness, child, scenario))


def _given(child: type, scenario: ChildScenario) -> set[Need]:
    given: set[Need] = set()
    if scenario.slow_input is not NOT_GIVEN:
        given.add("slow")
    if scenario.release is not None:
        given.add("release")
    if scenario.failing_input is not NOT_GIVEN:
        given.add("failing")
    if callable(getattr(child, TAIL, None)):
        given.add("tail")
    return given
