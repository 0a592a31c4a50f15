"""Sorts the frames of a connection: who was reached, the state, calls, the chat, runs."""

import logging
from dataclasses import dataclass

from ramet.client.calls import Calls
from ramet.client.chat import Chat
from ramet.client.link import Frame, Link
from ramet.client.listeners import Listeners
from ramet.client.options import ClientOptions
from ramet.client.run_events import RunEvents
from ramet.client.settled import Settled
from ramet.core.json import JsonObject, JsonValue, loads_object, text_at
from ramet.errors import ClientError
from ramet.protocol import types

_SHOWN = 80
_KNOWN = frozenset({types.MCP_SERVERS, types.CHAT_RECOVERING})

_log = logging.getLogger("ramet.client")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a client has reached."""

    name: str
    """The agent's name."""
    agent: str
    """Its class, as it stands in URLs."""


class Receiver:
    """What one connection has brought so far, and who is told of more."""

    def __init__(self, link: Link, calls: Calls, chat: Chat, *, options: ClientOptions) -> None:
        self._link = link
        self._calls = calls
        self._chat = chat
        self._options = options
        self._waits_for_state = False
        self.identity: Identity | None = None
        self.state: JsonValue = None
        self.ready: Settled[None] = Settled()
        """Comes when the server has said who was reached, with the state if it promised one."""
        self.frames: Listeners[JsonObject] = Listeners("frames")
        self.states: Listeners[JsonValue] = Listeners("the state")
        self.state_errors: Listeners[str] = Listeners("errors of the state")
        self.run_events = RunEvents(options.max_buffered_bytes)

    def begin(self) -> None:
        """Wait anew for who is reached."""
        self.ready = Settled()

    def opened(self) -> None:
        """A socket is open."""
        self._waits_for_state = False
        if not self._options.wait_for_identity:
            self._introduced()
        self._chat.opened()

    def frame(self, frame: Frame) -> None:
        """Sort one frame."""
        found = loads_object(frame) if isinstance(frame, str) else None
        if found is None:
            _log.warning("Ignored a frame that is not a JSON object: %r", frame[:_SHOWN])
            return
        self._take(text_at(found, "type") or "", found, len(frame))
        self.frames.tell(found)

    def lost(self, error: ClientError) -> None:
        """The socket has gone; another may come."""
        _log.info("%s", error)
        self._calls.lost(error)
        self._chat.lost(error)

    def over(self, error: ClientError) -> None:
        """No socket will come any more."""
        self.ready.fail(error)
        self._calls.over(error)
        self._chat.over(error)

    def set_state(self, state: JsonValue) -> None:
        """Know a new state, and tell who listens."""
        self.state = state
        self.states.tell(state)

    def _take(self, frame_type: str, frame: JsonObject, size: int) -> None:
        match frame_type:
            case types.RPC:
                self._calls.take(frame, size)
            case types.AGENT_TOOL_EVENT:
                self.run_events.take(frame, size)
            case types.IDENTITY:
                self._identified(frame)
            case types.STATE:
                self._stated(frame)
            case types.STATE_ERROR:
                self.state_errors.tell(text_at(frame, "error") or "State update rejected")
            case types.RAMET_ERROR:
                text = text_at(frame, "error") or "it did not say why"
                _log.warning("The server could not use a frame: %s", text)
                self._chat.refused(text)
            case _ if not self._chat.take(frame_type, frame) and frame_type not in _KNOWN:
                self._passed_on(frame_type)

    def _passed_on(self, frame_type: str) -> None:
        if not self.frames:
            _log.debug("Nobody takes frames of the type %r: see on_frame", frame_type)

    def _identified(self, frame: JsonObject) -> None:
        name, agent = text_at(frame, "name"), text_at(frame, "agent")
        if name is None or agent is None:
            return
        self.identity = Identity(name=name, agent=agent)
        self._waits_for_state = frame.get("stateFollows") is True
        if not self._waits_for_state:
            self._introduced()

    def _stated(self, frame: JsonObject) -> None:
        self.set_state(frame.get("state"))
        if self._waits_for_state:
            self._waits_for_state = False
            self._introduced()

    def _introduced(self) -> None:
        self._link.introduced()
        self.ready.succeed(None)
