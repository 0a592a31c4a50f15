"""The state of an agent: what `Agent` gains from this feature."""

from typing import Any, Generic

from typing_extensions import TypeVar

from ramet.state.feature import State

S = TypeVar("S", default=Any)


class StateVerbs(Generic[S]):
    """The state methods of an agent."""

    _ramet_state: State[S]

    initial_state: S
    """The state before one was set; leave it out for none."""

    @property
    def state(self) -> S:
        """The current state, in the type that `Agent[…]` names. Change it with `set_state`."""
        return self._ramet_state.get()  # type: ignore[return-value] # None without initial_state

    def set_state(self, value: S) -> None:
        """Check, store and broadcast a new state, whole; it outlives restarts when this returns.

        Raises:
            ConnectionReadonly: The running code was started by a read-only connection.
            StateRejected: The value does not fit the type that `Agent[…]` names.
            NotJson: JSON cannot carry the value.
        """
        self._ramet_state.set(value)
