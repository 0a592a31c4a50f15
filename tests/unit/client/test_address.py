"""The URLs that a client connects to."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ramet.client import AgentClient, ClientOptions
from ramet.client.address import AgentAddress, address_of
from ramet.errors import InvalidAgentName, InvalidArguments, InvalidOptions

ROOT = [("MyAgent", "alice")]


def address(
    url: str = "http://h:8000",
    steps: list[tuple[str, str]] | None = None,
    *,
    prefix: str = "agents",
    query: dict[str, str | None] | None = None,
) -> AgentAddress:
    return address_of(url, steps or ROOT, prefix=prefix, query=query or {}, connection_id="me")


@pytest.mark.parametrize(
    ("url", "socket", "http"),
    [
        ("http://h:8000", "ws://h:8000/agents/my-agent/alice", "http://h:8000/agents"),
        ("https://h", "wss://h/agents/my-agent/alice", "https://h/agents"),
        ("ws://h/", "ws://h/agents/my-agent/alice", "http://h/agents"),
        ("wss://h/ai/", "wss://h/ai/agents/my-agent/alice", "https://h/ai/agents"),
        ("HTTP://h?x#y", "ws://h/agents/my-agent/alice", "http://h/agents"),
    ],
)
def test_the_url_of_a_server_gives_the_socket_and_the_transcript(
    url: str, socket: str, http: str
) -> None:
    made = address(url)

    assert made.socket_url == f"{socket}?_pk=me"
    assert made.transcript_url == f"{http}/my-agent/alice/get-messages"


@pytest.mark.behaviour("D28")
@pytest.mark.parametrize("name", ["a/b", "50%", "two words", "🐝", "sub", "?#"])
def test_a_name_stays_one_segment(name: str) -> None:
    path = urlsplit(address(steps=[("A", name)]).socket_url).path

    assert path.count("/") == 3


def test_sub_agents_follow_their_parent() -> None:
    made = address(steps=[*ROOT, ("Researcher", "agent-tool:call/1"), ("HTTPReader", "r")])

    assert urlsplit(made.socket_url).path == (
        "/agents/my-agent/alice/sub/researcher/agent-tool%3Acall%2F1/sub/h-t-t-p-reader/r"
    )
    assert "Researcher:agent-tool:call/1" in made.readable


def test_the_query_goes_to_both_and_nothing_is_left_out_but_none() -> None:
    made = address(query={"token": "a b", "gone": None, "empty": ""})

    asked = parse_qs(urlsplit(made.socket_url).query, keep_blank_values=True)
    assert asked == {"token": ["a b"], "empty": [""], "_pk": ["me"]}
    assert urlsplit(made.transcript_url).query == "token=a+b&empty="


def test_another_prefix_may_have_several_segments() -> None:
    assert "/api/v1/my-agent/" in address(prefix="/api/v1/").socket_url


@pytest.mark.parametrize(
    "url", ["", "h:8000", "127.0.0.1:8000", "ftp://h", "http://", "http://h:x"]
)
def test_what_is_no_url_of_a_server_is_one_sentence(url: str) -> None:
    with pytest.raises(InvalidOptions, match="is not the URL of a server"):
        AgentClient(url, agent="A")


@pytest.mark.parametrize("name", ["", ".", "..", "a\0b", "x" * 1025])
def test_a_name_that_no_agent_can_have_is_refused_before_anything_is_sent(name: str) -> None:
    with pytest.raises(InvalidAgentName):
        AgentClient("http://h", agent="A", name=name)
    with pytest.raises(InvalidAgentName):
        AgentClient("http://h", agent="A", name="ok", sub=[("B", name)])


@pytest.mark.parametrize(
    "given",
    [
        {"agent": int},
        {"agent": "A", "name": 5},
        {"agent": "A", "sub": ("Refunder", "x")},
        {"agent": "A", "sub": [("Refunder", "x", "y")]},
        {"agent": "A", "sub": [(int, "x")]},
    ],
)
def test_what_is_no_class_and_name_is_refused_in_one_sentence(given: Any) -> None:
    with pytest.raises(InvalidArguments, match=r"by sub=\[\(class, name\), …\], not by "):
        AgentClient("http://h", **given)


def test_a_class_must_have_a_name() -> None:
    with pytest.raises(InvalidAgentName, match="class name"):
        AgentClient("http://h", agent="")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("connect_timeout", 0),
        ("call_timeout", -1),
        ("max_frame_bytes", 0),
        ("max_buffered_bytes", 0),
        ("first_delay", -0.1),
        ("max_delay", float("nan")),
        ("max_retries", -1),
        ("min_uptime", -1),
    ],
)
def test_an_option_that_cannot_be_is_refused(option: str, value: float) -> None:
    with pytest.raises(InvalidOptions, match=option):
        ClientOptions(**{option: value})  # type: ignore[arg-type] # a test names options by key
