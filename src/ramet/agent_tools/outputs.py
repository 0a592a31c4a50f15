"""Typed outputs of runs: what the caller asked for against what the child gave (D29)."""

from functools import lru_cache
from typing import Any

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from ramet.agent_tools.policy import Ending
from ramet.agent_tools.records import RunResult, TerminalStatus
from ramet.agent_tools.run_store import StoredRun
from ramet.core.json import JsonValue, dump_bytes
from ramet.errors import InvalidArguments
from ramet.protocol.run_events import ABSENT, Absent, RunStatus

MISSING = "The agent tool run completed without the structured output that was asked for."


class OutputType:
    """A type that a run's output must have."""

    def __init__(self, wanted: object) -> None:
        """Prepare the checks; raises `InvalidArguments` when pydantic cannot check the type."""
        self._adapter = _adapter(wanted)

    def read(self, output: JsonValue | Absent) -> object:
        """Turn a child's output into a value of the type.

        Raises:
            OutputMisfit: It is missing or does not fit.
        """
        if output is ABSENT:
            raise OutputMisfit(MISSING)
        try:
            return self._adapter.validate_json(dump_bytes(output))
        except ValidationError as error:
            raise OutputMisfit(_told(error)) from error


class OutputMisfit(ValueError):
    """An output is missing or does not fit its type; becomes the error of the run's result."""


def checked_ending(ending: Ending, wanted: OutputType | None) -> Ending:
    """The ending as a typed caller must see it: an output that does not fit is a failure."""
    if wanted is None or ending.status != "completed":
        return ending
    try:
        wanted.read(ending.output)
    except OutputMisfit as misfit:
        return Ending(status="error", error=str(misfit), completed_at=ending.completed_at)
    return ending


def result_of(run: StoredRun, wanted: OutputType | None = None) -> RunResult[object]:
    """How a stored run ended, as the caller asked for it; the row is not touched.

    A run that is under way counts as interrupted: it has no other result yet.
    """
    status = _ended(run.status)
    output: object = None if run.output is ABSENT else run.output
    if status == "completed" and wanted is not None:
        try:
            output = wanted.read(run.output)
        except OutputMisfit as misfit:
            return RunResult(
                run_id=run.run_id, agent_type=run.agent_type, status="error", error=str(misfit)
            )
    return RunResult(
        run_id=run.run_id,
        agent_type=run.agent_type,
        status=status,
        output=output if status == "completed" else None,
        summary=run.summary,
        error=run.error,
        reason=run.reason,
        child_still_running=run.child_still_running,
    )


def _ended(status: RunStatus) -> TerminalStatus:
    match status:
        case "starting" | "running":
            return "interrupted"
        case _:
            return status


def _told(error: ValidationError) -> str:
    """What is wrong, one line a fault, without the library's links."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{_where(fault['loc'])}: {fault['msg']}" for fault in faults]
    return "The output of the agent tool run does not fit its type: " + "; ".join(lines)


def _where(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "output"


@lru_cache(maxsize=256)
def _adapter(wanted: Any) -> TypeAdapter[object]:
    try:
        return TypeAdapter(wanted)
    except PydanticUserError as error:
        raise InvalidArguments(f"{wanted!r} is no type that an output can be checked by") from error
