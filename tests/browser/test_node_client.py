"""The published `AgentClient` in Node, and plain sockets, against the wire app."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.rig import Group, check, names_of, run_group
from tests.support.server import Server, running

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

CLIENT_CHECKS = [
    check("identity, then the promised state, then mcp servers greet a client"),
    check("increment changes the state before it answers"),
    check("echo gives any JSON value back"),
    check("a method that raises rejects with its text", pytest.mark.behaviour("D26")),
    check("a slow call does not hold up another", pytest.mark.behaviour("D13")),
    check("countTo streams its numbers and ends with done"),
    check("a method that is not marked is not callable"),
    check("a method that is not there does not exist"),
    check("wrong arguments are answered with an error"),
    check("calls made before the socket is open are sent when it is"),
    check("state set by one client reaches the others and not itself"),
    check("a state that is rejected changes nothing"),
    check("a read-only connection may call but not change the state"),
    check("a silent connection gets replies and no protocol frames"),
    check("a forbidden child closes with 4403 for good", pytest.mark.behaviour("D20", "SA-023")),
    check(
        "a forbidden child is refused over HTTP with CORS headers",
        pytest.mark.behaviour("D20", "SA-023"),
    ),
    check("an agent that is not registered is an invalid request"),
    check("a path that is no agent's is not found"),
    check(
        "a child of a class that is not registered is not found",
        pytest.mark.behaviour("D19", "SA-025"),
    ),
    check("a plain agent has nothing to say over HTTP"),
    check("get-messages is a list, open to other origins"),
    check("a preflight is answered for every method and header"),
    check("a root's name may hold spaces, emoji and percent signs", pytest.mark.behaviour("D28")),
    check(
        "a child's name may hold slashes, spaces, emoji and percent signs",
        pytest.mark.behaviour("D28", "SA-021"),
    ),
    check("names that cannot be routed are refused", pytest.mark.behaviour("D28", "SA-025")),
    check(
        "a frame over the limit gets an error and the connection stays",
        pytest.mark.behaviour("D25"),
    ),
    check(
        "a frame that means nothing gets one error and the connection stays",
        pytest.mark.behaviour("D25"),
    ),
    check("the Cap'n Web transport is refused"),
    check("startReport runs a child without a tool call", pytest.mark.behaviour("AT-131", "D2")),
    check(
        "a new connection is given the run again, frame for frame",
        pytest.mark.behaviour("AT-134", "AT-135", "D2"),
    ),
]

TURN_CHECKS = [
    check("a turn starts with start and start-step, numbered from 0"),
    check("the transcript comes before done, and done names the question"),
    check("get-messages gives the question and the answer"),
    check("a cancelled turn ends as aborted and keeps what was said"),
    check("a turn that fails says so in an error frame"),
    check(
        "a chat request that is malformed ends at once with an error", pytest.mark.behaviour("D25")
    ),
    check("two questions at once are answered one after the other"),
    check(
        "an idle agent says that there is nothing to resume",
        pytest.mark.behaviour("CW-014", "CW-015"),
    ),
    check(
        "chat frames come before the identity on a connection in mid-stream",
        pytest.mark.behaviour("CW-003", "CW-004", "CW-005"),
    ),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("wire")
    with running("serve", "tests.wire_app:app", folder=folder) as server:
        yield server


@pytest.fixture(scope="module")
def client_checks(server: Server) -> Group:
    return run_group("client", server.address)


@pytest.fixture(scope="module", params=["ChatAgent", "ThinkAgent"])
def turn_checks(server: Server, request: pytest.FixtureRequest) -> Group:
    return run_group("turns", server.address, agent=request.param)


@pytest.mark.parametrize("name", CLIENT_CHECKS)
def test_the_published_client_finds_that(client_checks: Group, name: str) -> None:
    client_checks.assert_passed(name)


def test_every_check_of_the_published_client_is_listed(client_checks: Group) -> None:
    assert client_checks.names == names_of(CLIENT_CHECKS)


@pytest.mark.parametrize("name", TURN_CHECKS)
def test_a_plain_socket_finds_that(turn_checks: Group, name: str) -> None:
    turn_checks.assert_passed(name)


def test_every_check_on_a_plain_socket_is_listed(turn_checks: Group) -> None:
    assert turn_checks.names == names_of(TURN_CHECKS)
