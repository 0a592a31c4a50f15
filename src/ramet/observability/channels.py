"""Publish and subscribe for events of agents, one channel a topic (OB-001 … OB-008)."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ramet.core.clock import Clock
from ramet.core.json import JsonObject

CHANNELS = (
    "state",
    "rpc",
    "message",
    "chat",
    "transcript",
    "fiber",
    "agent_tool",
    "schedule",
    "lifecycle",
    "workflow",
    "mcp",
    "email",
    "channel",
)

_PREFIXES = (
    ("agent_tool:", "agent_tool"),
    ("fiber:", "fiber"),
    ("schedule:", "schedule"),
    ("queue:", "schedule"),
    ("chat:transcript:", "transcript"),
    ("transcript:", "transcript"),
    ("chat:", "chat"),
    ("message:", "message"),
    ("tool:", "message"),
    ("submission:", "message"),
    ("action:", "message"),
    ("rpc", "rpc"),
    ("state:", "state"),
    ("channel:", "channel"),
    ("notice:", "channel"),
    ("email:", "email"),
    ("workflow:", "workflow"),
    ("mcp", "mcp"),
)

_log = logging.getLogger("ramet.observability")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in an agent."""

    type: str
    agent: str
    """The agent's class name."""
    name: str
    """The agent's own name."""
    payload: JsonObject = field(default_factory=dict)
    timestamp: int
    """Milliseconds since the epoch."""


Listener: TypeAlias = Callable[[Event], object]

_listeners: dict[str, list[Listener]] = {}


def channel_of(type: str) -> str:
    """The channel an event type belongs to, by its prefix (OB-003)."""
    return next((channel for prefix, channel in _PREFIXES if type.startswith(prefix)), "lifecycle")


def subscribe(channel: str, listener: Listener) -> Callable[[], None]:
    """Call `listener(event)` for each event of a channel; returns the unsubscription.

    A listener runs inside the agent that caused the event: keep it short. What it raises is logged.

    Raises:
        ValueError: There is no such channel.
    """
    if channel not in CHANNELS:
        raise ValueError(f"{channel!r} is not one of the channels {', '.join(CHANNELS)}")
    _listeners.setdefault(channel, []).append(listener)

    def unsubscribe() -> None:
        if listener in _listeners.get(channel, []):
            _listeners[channel].remove(listener)

    return unsubscribe


def publish(event: Event) -> None:
    """Hand an event to the subscribers of its channel."""
    for listener in tuple(_listeners.get(channel_of(event.type), ())):
        try:
            listener(event)
        except Exception:  # noqa: BLE001 - a subscriber's fault must not reach the agent
            _log.exception("A subscriber of %s failed", event.type)


class AgentEvents:
    """The events of one agent: fills in who and when."""

    def __init__(self, *, agent: str, name: str, clock: Clock) -> None:
        self._agent = agent
        self._name = name
        self._clock = clock

    def emit(self, type: str, payload: JsonObject | None = None) -> None:
        """Publish an event of this agent; costs a look-up where nobody listens."""
        if not _listeners:
            return
        publish(
            Event(
                type=type,
                agent=self._agent,
                name=self._name,
                payload=payload or {},
                timestamp=self._clock.now_ms(),
            )
        )
