"""The steps of turns as the model saw them: what it said and what its tools returned, on disk (D5).

A response is one row; each of its tool calls is a row of its own, empty until the call has ended.
The kind of that row tells whose the call is: `own_tool_result`, it runs here and no page may give
its output; `tool_result`, it is answered from outside, or an earlier version did not say.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
)
from pydantic_core import PydanticSerializationError, ValidationError

from ramet.core.clock import Clock
from ramet.core.failpoints import failpoint
from ramet.core.json import dumps
from ramet.errors import DatabaseUnusable
from ramet.storage import Database, Migration, Row

_log = logging.getLogger("ramet.think")

CREATE = """
CREATE TABLE IF NOT EXISTS cf_think_steps (
    step_id TEXT PRIMARY KEY NOT NULL,
    turn_id TEXT NOT NULL,
    step_index INTEGER NOT NULL,
    kind TEXT NOT NULL,
    tool_call_id TEXT,
    message TEXT,
    message_id TEXT,
    created_at INTEGER NOT NULL
)
"""
CREATE_CALL_INDEX = """
CREATE INDEX IF NOT EXISTS cf_think_steps_call ON cf_think_steps (tool_call_id)
"""
CREATE_MESSAGE_INDEX = """
CREATE INDEX IF NOT EXISTS cf_think_steps_message ON cf_think_steps (message_id)
"""
INSERT = """
INSERT INTO cf_think_steps (step_id, turn_id, step_index, kind, tool_call_id, message, message_id,
    created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
SET_RESULT_OF_MESSAGE = """
UPDATE cf_think_steps SET message = ? WHERE message_id = ? AND tool_call_id = ?
"""
SET_RESULT = "UPDATE cf_think_steps SET message = ? WHERE turn_id = ? AND tool_call_id = ?"
IS_USED = "SELECT 1 FROM cf_think_steps WHERE tool_call_id = ?"
IS_OWN = "SELECT 1 FROM cf_think_steps WHERE tool_call_id = ? AND kind = 'own_tool_result'"
SET_ASKED = """
UPDATE cf_think_steps SET kind = 'tool_result' WHERE turn_id = ? AND tool_call_id = ?
"""
OF_MESSAGES = """
SELECT turn_id, step_index, kind, tool_call_id, message, message_id FROM cf_think_steps
WHERE message_id IN (SELECT value FROM json_each(?)) AND turn_id != ? ORDER BY rowid
"""
OF_TURN = """
SELECT turn_id, step_index, kind, tool_call_id, message, message_id FROM cf_think_steps
WHERE turn_id = ? ORDER BY rowid
"""
FORGET_STEP = "DELETE FROM cf_think_steps WHERE turn_id = ? AND step_index >= ?"
ANSWERS = "SELECT DISTINCT message_id FROM cf_think_steps WHERE message_id IS NOT NULL"
FORGET_RESPONSES = "DELETE FROM cf_think_steps WHERE message_id = ? AND kind = 'response'"
FORGET_RESULTS = """
UPDATE cf_think_steps SET message = NULL, message_id = NULL WHERE message_id = ?
"""


def create_step_table(database: Database) -> None:
    """Make the table of steps."""
    database.run(CREATE)
    database.run(CREATE_CALL_INDEX)
    database.run(CREATE_MESSAGE_INDEX)


THINK_MIGRATIONS = (Migration(component="think", number=1, apply=create_step_table),)
"""What `Think` stores on top of a chat agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnKey:
    """Whose steps are written."""

    turn_id: str
    message_id: str
    """The answer that clients see the steps as."""


@dataclass(slots=True, kw_only=True)
class StoredStep:
    """One step: a response, and the results of its tool calls by wire id, in call order."""

    response: ModelResponse
    results: dict[str, ModelRequest | None] = field(default_factory=dict)
    """None for a call that never ended."""

    @property
    def calls(self) -> list[ToolCallPart]:
        """The tool calls as the model made them, in the order of the results."""
        return [part for part in self.response.parts if isinstance(part, ToolCallPart)]


class StepStore:
    """All steps of one agent."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._decoded: dict[str, Sequence[StoredStep]] = {}
        """The steps behind answers, as far as they were read and nothing was added since."""

    def journal(self, key: TurnKey) -> "TurnJournal":
        """What the steps of a turn are written with."""
        return TurnJournal(self, key)

    def add_response(
        self,
        key: TurnKey,
        *,
        step: int,
        response: ModelResponse,
        wire_ids: Sequence[str],
        own: Collection[str],
    ) -> None:
        """Commit what the model said, that its tool calls are under way, and which run here."""
        now, step_id = self._clock.now_ms(), f"{key.turn_id}/{step}"
        self._decoded.pop(key.message_id, None)
        with self._database.transaction():
            self._database.run(
                INSERT,
                step_id,
                key.turn_id,
                step,
                "response",
                None,
                encoded(response),
                key.message_id,
                now,
            )
            for position, wire_id in enumerate(wire_ids):
                self._database.run(
                    INSERT,
                    f"{step_id}/{position}",
                    key.turn_id,
                    step,
                    "own_tool_result" if wire_id in own else "tool_result",
                    wire_id,
                    None,
                    key.message_id,
                    now,
                )
        failpoint("step.committed")

    def add_result(self, key: TurnKey, wire_id: str, result: ModelRequest) -> None:
        """Commit what a tool call came to."""
        self._decoded.pop(key.message_id, None)
        self._database.run(SET_RESULT, encoded(result), key.turn_id, wire_id)
        failpoint("step.result_committed")

    def ask(self, key: TurnKey, wire_id: str) -> None:
        """Commit that a call is answered from outside after all."""
        self._database.run(SET_ASKED, key.turn_id, wire_id)

    def is_own(self, tool_call_id: str) -> bool:
        """Whether a tool call runs here, so that its output comes from nowhere else."""
        return self._database.one(IS_OWN, tool_call_id) is not None

    def add_late_result(self, message_id: str, wire_id: str, result: ModelRequest) -> None:
        """Commit what a call came to that an earlier turn of the same answer has left open."""
        self._decoded.pop(message_id, None)
        self._database.run(SET_RESULT_OF_MESSAGE, encoded(result), message_id, wire_id)
        failpoint("step.late_result_committed")

    def is_used(self, tool_call_id: str) -> bool:
        """Whether a tool call of this agent ever had the id on the wire."""
        return self._database.one(IS_USED, tool_call_id) is not None

    def steps_of(
        self, message_ids: Iterable[str], *, besides: TurnKey | None = None
    ) -> Mapping[str, Sequence[StoredStep]]:
        """The steps behind answers, in order, by the answer's id; only what is new is read.

        The steps of one turn can be left out: those of an answer that it goes on with itself.
        """
        wanted = [*message_ids]
        unknown = [each for each in wanted if each not in self._decoded]
        if unknown:
            read = self._read(unknown)
            self._decoded.update((each, read.get(each, ())) for each in unknown)
        found = {each: self._decoded[each] for each in wanted}
        if besides is not None and besides.message_id in found:
            others = self._read([besides.message_id], besides.turn_id)
            found[besides.message_id] = others.get(besides.message_id, ())
        return {each: steps for each, steps in found.items() if steps}

    def steps_of_turn(self, turn_id: str) -> Sequence[StoredStep]:
        """The steps that a turn has committed, in order."""
        try:
            found = _steps(self._database.query(OF_TURN, turn_id))
        except ValidationError as error:
            raise DatabaseUnusable(
                f"The steps of {turn_id} in {self._database.path} cannot be read"
            ) from error
        return [step for steps in found.values() for step in steps]

    def forget_from(self, turn_id: str, step: int) -> None:
        """Forget the steps of a turn from one on: they are taken again."""
        self._decoded.clear()
        self._database.run(FORGET_STEP, turn_id, step)

    def keep_only(self, is_there: Callable[[str], bool]) -> None:
        """Forget the steps of answers that are gone; the ids of their tool calls stay taken."""
        stored = [str(row["message_id"]) for row in self._database.query(ANSWERS)]
        gone = [message_id for message_id in stored if not is_there(message_id)]
        if not gone:
            return
        self._decoded.clear()
        with self._database.transaction():
            for message_id in gone:
                self._database.run(FORGET_RESPONSES, message_id)
                self._database.run(FORGET_RESULTS, message_id)

    def _read(
        self, message_ids: Sequence[str], besides: str = ""
    ) -> Mapping[str, Sequence[StoredStep]]:
        rows = self._database.query(OF_MESSAGES, dumps(message_ids), besides)
        try:
            return _steps(rows)
        except ValidationError:
            return self._readable(rows)

    def _readable(self, rows: Sequence[Row]) -> Mapping[str, Sequence[StoredStep]]:
        """The steps of the answers whose rows are whole; the parts stand in for the others."""
        by_answer: dict[str, list[Row]] = {}
        for row in rows:
            by_answer.setdefault(str(row["message_id"]), []).append(row)
        found: dict[str, Sequence[StoredStep]] = {}
        for message_id, own in by_answer.items():
            try:
                found.update(_steps(own))
            except ValidationError:
                _log.error(
                    "The steps of %s in %s cannot be read; the model is told what was shown",
                    message_id,
                    self._database.path,
                )
        return found


class TurnJournal:
    """Writes the steps of one turn."""

    def __init__(self, store: StepStore, key: TurnKey) -> None:
        self._store = store
        self._key = key

    def add_response(
        self,
        step: int,
        response: ModelResponse,
        wire_ids: Sequence[str],
        *,
        own: Collection[str] = (),
    ) -> None:
        """Commit what the model said, with the wire ids of its tool calls in call order."""
        self._store.add_response(
            self._key, step=step, response=response, wire_ids=wire_ids, own=own
        )

    def ask(self, wire_id: str) -> None:
        """Commit that a call is answered from outside after all."""
        self._store.ask(self._key, wire_id)

    def add_result(self, wire_id: str, result: ModelRequest) -> None:
        """Commit what a tool call came to."""
        self._store.add_result(self._key, wire_id, result)


def encoded(message: ModelMessage) -> str:
    """A native message as JSON text."""
    try:
        return ModelMessagesTypeAdapter.dump_json([message]).decode()[1:-1]
    except PydanticSerializationError:  # a lone surrogate, which only `dumps` replaces
        return dumps(ModelMessagesTypeAdapter.dump_python([message], mode="json"))[1:-1]


def _decoded(texts: Iterable[str]) -> list[ModelMessage]:
    return ModelMessagesTypeAdapter.validate_json(f"[{','.join(texts)}]")


def _steps(rows: Sequence[Row]) -> Mapping[str, Sequence[StoredStep]]:
    messages = iter(_decoded(str(row["message"]) for row in rows if row["message"] is not None))
    found: dict[str, list[StoredStep]] = {}
    for row in rows:
        message = next(messages) if row["message"] is not None else None
        steps = found.setdefault(str(row["message_id"]), [])
        if isinstance(message, ModelResponse):
            steps.append(StoredStep(response=message))
        elif steps:
            steps[-1].results[str(row["tool_call_id"])] = message
    return found
