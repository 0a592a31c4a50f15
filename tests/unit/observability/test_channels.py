"""Events of agents, and who is told of them (section 35)."""

from collections.abc import Iterator

import pytest

from ramet.core.json import JsonObject
from ramet.observability.channels import (
    CHANNELS,
    AgentEvents,
    Event,
    channel_of,
    publish,
    subscribe,
)
from ramet.testing import ManualClock

ROUTES = {
    "agent_tool:recovery:begin": "agent_tool",
    "fiber:run:started": "fiber",
    "schedule:create": "schedule",
    "queue:error": "schedule",
    "chat:transcript:repaired": "transcript",
    "transcript:repaired": "transcript",
    "chat:turn:start": "chat",
    "message:request": "message",
    "tool:result": "message",
    "submission:create": "message",
    "action:taken": "message",
    "rpc": "rpc",
    "rpc:error": "rpc",
    "state:update": "state",
    "channel:opened": "channel",
    "notice:sent": "channel",
    "email:receive": "email",
    "workflow:start": "workflow",
    "mcp:client": "mcp",
    "connect": "lifecycle",
    "disconnect": "lifecycle",
    "destroy": "lifecycle",
    "alarm:fired": "lifecycle",
}


@pytest.fixture
def events() -> AgentEvents:
    return AgentEvents(agent="Note", name="a", clock=ManualClock())


@pytest.fixture
def heard() -> Iterator[list[Event]]:
    """What the channel `schedule` brings."""
    found: list[Event] = []
    unsubscribe = subscribe("schedule", found.append)
    yield found
    unsubscribe()


@pytest.mark.behaviour("OB-001")
def test_an_event_says_what_where_and_when(events: AgentEvents, heard: list[Event]) -> None:
    payload: JsonObject = {"callback": "ring", "id": "s1"}
    events.emit("schedule:create", payload)
    now = ManualClock().now_ms()
    assert heard == [
        Event(type="schedule:create", agent="Note", name="a", payload=payload, timestamp=now)
    ]


@pytest.mark.behaviour("OB-001")
def test_without_subscribers_an_event_goes_nowhere(events: AgentEvents) -> None:
    events.emit("schedule:create", {"id": "s1"})
    publish(Event(type="connect", agent="Note", name="a", timestamp=0))


@pytest.mark.behaviour("OB-002", "D35")
def test_the_channels_are_those_of_the_catalogue_in_snake_case() -> None:
    assert set(CHANNELS) == set(ROUTES.values())
    with pytest.raises(ValueError, match="'agentTool' is not one of the channels state, rpc"):
        subscribe("agentTool", print)


@pytest.mark.behaviour("OB-003")
@pytest.mark.parametrize(("type", "channel"), ROUTES.items())
def test_an_event_goes_by_the_beginning_of_its_type(type: str, channel: str) -> None:
    assert channel_of(type) == channel


@pytest.mark.behaviour("OB-008")
def test_a_subscriber_hears_its_own_channel_until_it_unsubscribes(events: AgentEvents) -> None:
    found: list[str] = []
    unsubscribe = subscribe("schedule", lambda event: found.append(event.type))
    events.emit("schedule:create")
    events.emit("connect")
    unsubscribe()
    unsubscribe()
    events.emit("schedule:cancel")
    assert found == ["schedule:create"]


@pytest.mark.behaviour("OB-008")
def test_one_subscriber_that_raises_keeps_no_other_from_hearing(
    events: AgentEvents, heard: list[Event]
) -> None:
    def raising(event: Event) -> None:
        raise ValueError("no")

    found: list[str] = []
    ends = [subscribe("schedule", raising), subscribe("schedule", lambda e: found.append(e.type))]
    events.emit("schedule:create")
    for end in ends:
        end()
    assert (found, len(heard)) == (["schedule:create"], 1)
