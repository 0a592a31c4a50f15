"""What an operator can ask for, as records that travel as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import ConfigDict, Field, StrictStr, ValidationError, with_config

from ramet.agent_tools.records import TerminalStatus
from ramet.core.adapters import adapter_of
from ramet.core.json import JsonValue
from ramet.errors import InvalidArguments
from ramet.protocol.run_events import RunStatus

MOST_LISTED: Final = 1_000
"""Runs or agents in one answer."""
MOST_SKIPPED: Final = 10_000
"""They are read all the same, while the agents wait."""
STATUSES: Final[tuple[RunStatus, ...]] = get_args(RunStatus)
FINISHED: Final[tuple[TerminalStatus, ...]] = get_args(TerminalStatus)
"""The statuses of runs that may be cleared from outside: nobody works for them any more."""
UNDER_WAY: Final[frozenset[RunStatus]] = frozenset(STATUSES) - frozenset(FINISHED)

_LAST_MS: Final = 253_402_300_799_999
"""The last moment that a `datetime` can be."""
_STRICT: Final = ConfigDict(extra="forbid")


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class ListRuns:
    """The runs of one agent, or of all; the newest first."""

    command: Literal["runs.list"] = "runs.list"
    agent: StrictStr | None = None
    statuses: Sequence[RunStatus] | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 50
    skip: Annotated[int, Field(ge=0, le=MOST_SKIPPED)] = 0


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRun:
    """Where one run is."""

    command: Literal["runs.show"] = "runs.show"
    run_id: StrictStr
    agent: StrictStr | None = None


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun:
    """End one run early."""

    command: Literal["runs.cancel"] = "runs.cancel"
    run_id: StrictStr
    agent: StrictStr | None = None
    reason: StrictStr | None = None


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class ClearRuns:
    """Remove finished runs of one agent with their children."""

    command: Literal["runs.clear"] = "runs.clear"
    agent: StrictStr
    statuses: Sequence[TerminalStatus] | None = None
    started_before: Annotated[int, Field(ge=0, le=_LAST_MS)] | None = None
    """Milliseconds since the epoch; None for all."""


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class CountClearable:
    """How many runs `ClearRuns` would remove."""

    command: Literal["runs.clearable"] = "runs.clearable"
    agent: StrictStr
    statuses: Sequence[TerminalStatus] | None = None
    started_before: Annotated[int, Field(ge=0, le=_LAST_MS)] | None = None
    """Milliseconds since the epoch; None for all."""


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class ListAgents:
    """All agents by their addresses, each before those below it."""

    command: Literal["inspect.all"] = "inspect.all"
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 50
    skip: Annotated[int, Field(ge=0, le=MOST_SKIPPED)] = 0


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class InspectAgent:
    """What one agent is, has and waits for."""

    command: Literal["inspect.agent"] = "inspect.agent"
    agent: StrictStr


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class InspectHost:
    """The process that serves the data directory, and how much is in it."""

    command: Literal["inspect.host"] = "inspect.host"


Reading: TypeAlias = ListRuns | ShowRun | CountClearable | ListAgents | InspectAgent | InspectHost
Acting: TypeAlias = CancelRun | ClearRuns
Request: TypeAlias = Reading | Acting

_FORM: Final = Annotated[Request, Field(discriminator="command")]


def request_of(value: JsonValue) -> Request:
    """Read a request.

    Raises:
        InvalidArguments: It is none; the message says what is wrong with it.
    """
    try:
        request: Request = adapter_of(_FORM).validate_python(value)
    except ValidationError as error:
        raise InvalidArguments(f"That is no request: {_first(error)}") from error
    return request


def _first(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in fault["loc"] if not isinstance(part, int))
    return f"{where}: {fault['msg']}" if where else fault["msg"]
