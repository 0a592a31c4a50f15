"""What the path of a URL means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.paths import AgentPath
from ramet.protocol.url import check_agent_name, encode_segment
from ramet.web.addressing import (
    Address,
    Addressing,
    BadName,
    NotOurs,
    Resolved,
    UnknownAgent,
    UnknownSub,
    prefix_segments,
    raw_path_of,
)

ROOTS = {"chat-agent": "ChatAgent"}
SUBS = {"researcher": "Researcher", "planner": "Planner"}


def resolve(raw_path: str, *, prefix: str = "agents", root_path: str = "") -> Resolved:
    addressing = Addressing(
        prefix=prefix_segments(prefix), root_class=ROOTS.get, sub_class=SUBS.get
    )
    return addressing.resolve(raw_path.encode(), root_path=root_path)


def root(name: str, *subs: tuple[str, str], rest: str = "/") -> Address:
    return Address(path=AgentPath.of(("ChatAgent", name), *subs), rest=rest)


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/agents/chat-agent/room", root("room")),
        ("//agents//chat-agent/room/", root("room")),
        ("/agents/chat-agent/room/get-messages", root("room", rest="/get-messages")),
        ("/agents/chat-agent/room/a%2Fb/c%20d", root("room", rest="/a/b/c d")),
        ("/agents/chat-agent/sub", root("sub")),
    ],
)
def test_the_class_and_the_name_address_a_root_and_the_rest_is_for_it(
    path: str, address: Address
) -> None:
    assert resolve(path) == address


@pytest.mark.behaviour("SA-021", "SA-022")
@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/sub/researcher/r1", root("room", ("Researcher", "r1"))),
        (
            "/sub/researcher/r1/sub/planner/p/get-messages",
            root("room", ("Researcher", "r1"), ("Planner", "p"), rest="/get-messages"),
        ),
        (
            "/sub/researcher/agent-tool%3Acall%2F1",
            root("room", ("Researcher", "agent-tool:call/1")),
        ),
        ("/sub/sub/researcher/r1", root("room", ("Researcher", "r1"))),
        (
            "/sub/researcher/sub/sub/planner/p",
            root("room", ("Researcher", "sub"), ("Planner", "p")),
        ),
        ("/files/sub/other", root("room", rest="/files/sub/other")),
    ],
)
def test_sub_agents_are_found_at_any_depth(path: str, address: Address) -> None:
    assert resolve("/agents/chat-agent/room" + path) == address


@pytest.mark.behaviour("SA-025", "D19")
@pytest.mark.parametrize(
    "path", ["/sub", "/sub/researcher", "/sub/unknown/x", "/sub/researcher/r/sub/unknown/x"]
)
def test_only_a_path_that_begins_with_sub_asks_for_a_sub_agent_that_is_not_there(path: str) -> None:
    assert resolve("/agents/chat-agent/room" + path) == UnknownSub()


@pytest.mark.parametrize("path", ["/", "/agents", "/agents/chat-agent", "/other/chat-agent/room"])
def test_a_path_without_prefix_class_and_name_is_not_the_url_of_an_agent(path: str) -> None:
    assert resolve(path) == NotOurs()


@pytest.mark.parametrize("segment", ["nobody", "researcher", "ChatAgent"])
def test_only_the_url_form_of_a_root_class_leads_to_a_root(segment: str) -> None:
    assert resolve(f"/agents/{segment}/room") == UnknownAgent(segment=segment)


@pytest.mark.behaviour("D28", "SA-025")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/agents/chat-agent/a%00b", "An agent name must not contain NUL."),
        (
            "/agents/chat-agent/%2E%2E",
            "An agent cannot be named '..': a URL cannot carry it.",
        ),
        (
            "/agents/chat-agent/room/sub/researcher/a%00",
            "An agent name must not contain NUL.",
        ),
        (
            "/agents/chat-agent/" + "n" * 1025,
            "An agent name has at most 1024 bytes in UTF-8; this one has 1025.",
        ),
        ("/agents/chat-agent/%FF", "An agent name must be valid UTF-8."),
    ],
)
def test_an_illegal_name_anywhere_on_the_way_is_refused(path: str, reason: str) -> None:
    assert resolve(path) == BadName(reason=reason)


@pytest.mark.behaviour("D28")
@pytest.mark.parametrize(
    ("path", "root_path"),
    [
        ("/mounted/here/agents/chat-agent/room", "/mounted/here"),
        ("/agents/chat-agent/room", "/mounted/here"),
        ("/two%20words/agents/chat-agent/room", "/two words"),
        ("/agents/agents/chat-agent/room", "/agents"),
        ("/agents/chat-agent/room", "/agents"),
    ],
)
def test_where_the_application_is_mounted_is_taken_off_if_it_is_there(
    path: str, root_path: str
) -> None:
    assert resolve(path, root_path=root_path) == root("room")


@pytest.mark.parametrize("prefix", ["api/v1/agents", "/api/v1/agents/"])
def test_the_prefix_may_have_several_segments(prefix: str) -> None:
    assert resolve("/api/v1/agents/chat-agent/room", prefix=prefix) == root("room")


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_every_legal_name_comes_out_as_it_went_in(name: str) -> None:
    found = resolve(f"/agents/chat-agent/x/sub/researcher/{encode_segment(name)}")

    if check_agent_name(name) is None:
        assert found == root("x", ("Researcher", name))
    else:
        assert isinstance(found, BadName)


def test_a_server_that_gives_no_raw_path_is_tolerated() -> None:
    assert raw_path_of({"path": "/agents/chat-agent/two words"}) == "/agents/chat-agent/two%20words"
    assert raw_path_of({"path": "/a b", "raw_path": b"/a%20b"}) == b"/a%20b"
