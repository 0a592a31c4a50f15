"""The agent's state: validated, stored, then told to every client (PROTOCOL 3.1)."""

from dataclasses import fields, is_dataclass
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from ramet.connections.clients import ClientSet
from ramet.connections.connection import Connection
from ramet.core.adapters import adapter_of
from ramet.core.current import CurrentConnection, current
from ramet.core.ids import Ids
from ramet.core.json import JsonValue, NotJson, dump_strict, fits_json, loads
from ramet.core.ports import Events
from ramet.core.public_errors import public_text
from ramet.errors import ConnectionReadonly, DatabaseUnusable, StateRejected
from ramet.protocol import frames
from ramet.protocol.incoming import StateUpdate
from ramet.state.store import StateStore
from ramet.storage import Database

S = TypeVar("S")

REJECTED = "State update rejected"


class StateHooks(Protocol):
    """What the agent has to say of a new state."""

    def validate_state(self, state: object, source: Connection | None) -> None:
        """Raise to refuse the state."""
        ...

    def state_changed(self, state: object, source: Connection | None) -> None:
        """Take note of a state that was stored and broadcast."""
        ...


class State(Generic[S]):
    """One value, whole: set by the agent or by a client, kept over restarts.

    The type comes from `Agent[T]`: a pydantic model, a dataclass, a TypedDict or any JSON value.
    """

    def __init__(
        self,
        database: Database,
        clients: ClientSet,
        hooks: StateHooks,
        *,
        events: Events,
        ids: Ids,
        cls: type,
    ) -> None:
        self._store = StateStore(database)
        self._clients = clients
        self._hooks = hooks
        self._events = events
        self._ids = ids
        self._initial: S | None = getattr(cls, "initial_state", None)
        form = state_type(cls)
        self._class_name = cls.__name__
        self._typed = form is not Any
        self._adapter: TypeAdapter[S] = adapter_of(form)
        self._value: S | None = None
        self._frame: str | None = None
        self._loaded = False

    def get(self) -> S | None:
        """The state; the class's `initial_state` until one is set, None without either."""
        self._load()
        return self._value

    def set(self, value: S) -> None:
        """Check, store and broadcast a new state; what `validate_state_change` raises passes.

        Raises:
            ConnectionReadonly: The running code was started by a read-only connection.
            StateRejected: The value does not fit the type.
            NotJson: JSON cannot carry the value.
        """
        found = current()
        if found is not None and found.connection is not None and found.connection.readonly:
            raise ConnectionReadonly
        source = self._connection(found.connection if found else None)
        value = self._fitting(value)
        self._hooks.validate_state(value, source)
        self._replace(value, source=source, tell_source=True)

    def receive(self, connection: Connection, update: StateUpdate) -> None:
        """Take a client's state: tell the others, or tell the client why not and the truth."""
        try:
            value = self._accepted(connection, update)
            if not fits_json(value):
                raise StateRejected("The state is nested too deeply")  # noqa: TRY301 - told as all are
            self._hooks.validate_state(value, connection)
        except ConnectionReadonly as error:
            self._refuse(connection, str(error))
        except Exception as error:  # noqa: BLE001 - whatever the validator raised, the client is told
            public_text(error, self._ids)
            self._refuse(connection, REJECTED)
        else:
            self._replace(value, source=connection, tell_source=False)

    def greeting(self) -> str | None:
        """The state frame for a new connection; None when there is none, or none to be read."""
        try:
            self._load()
        except DatabaseUnusable as error:
            public_text(error, self._ids)  # in the log; the client can do all but see the state
        return self._frame

    def _replace(self, value: S, *, source: Connection | None, tell_source: bool) -> None:
        encoded, frame = dump_strict(value), frames.state(value)
        self._store.write(encoded)
        self._value, self._frame, self._loaded = value, frame, True
        skipped = source.link if source is not None and not tell_source else None
        self._clients.broadcast_frame(
            frame, only=lambda link: not link.silent and link is not skipped
        )
        self._events.emit("state:update")
        self._hooks.state_changed(value, source)

    def _refuse(self, connection: Connection, text: str) -> None:
        connection.send_frame(frames.state_error(text))
        truth = self.greeting()
        if truth is not None and not connection.silent:
            connection.send_frame(truth)

    def _accepted(self, connection: Connection, update: StateUpdate) -> S:
        if connection.readonly:
            raise ConnectionReadonly
        return self._fitting(update.state)

    def _fitting(self, value: object) -> S:
        """The value in the type of the state."""
        if not self._typed:
            return value  # type: ignore[return-value] # any value fits
        try:
            return self._adapter.validate_python(value)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = "".join(f"{step}: " for step in fault["loc"])
            raise StateRejected(
                f"The value does not fit the type of {self._class_name}'s state: "
                f"{where}{fault['msg']}"
            ) from error

    def _load(self) -> None:
        if self._loaded:
            return
        stored = self._store.read()
        if stored is None and self._initial is not None:
            stored = dump_strict(self._initial)
        if stored is not None:
            self._value = self._adapter.validate_python(self._decoded(stored))
            self._frame = frames.state(self._value)
        self._loaded = True

    def _decoded(self, stored: str) -> JsonValue:
        try:
            return loads(stored)
        except NotJson as error:
            raise DatabaseUnusable(
                f"The state of {self._class_name} in {self._store.where} is no JSON: {error}"
            ) from error

    def _connection(self, found: CurrentConnection | None) -> Connection | None:
        return found if isinstance(found, Connection) else None


def state_type(cls: type) -> Any:
    """The type of an agent class's state: the `T` of `Agent[T]`, else that of `initial_state`."""
    for base in cls.__mro__:
        for generic in getattr(base, "__orig_bases__", ()):
            arguments = get_args(generic)
            named = arguments and not isinstance(arguments[0], TypeVar)
            if named and hasattr(get_origin(generic), "set_state"):
                return arguments[0]
    initial = getattr(cls, "initial_state", None)
    if is_dataclass(initial) and not isinstance(initial, type) and fields(initial):
        return type(initial)
    return Any
