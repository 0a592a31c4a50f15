"""Agents in a host: addresses, state, calls, sub-agents, life and death."""

import asyncio
from pathlib import Path

import pytest

import ramet
from ramet.core.signals import AbortController
from ramet.errors import (
    AgentNotRegistered,
    ConnectionReadonly,
    DuplicateAgentName,
    InstanceGone,
    InvalidAgentName,
    MethodNotCallable,
    MethodNotFound,
    NotASubAgent,
)
from ramet.testing import Harness


class Note(ramet.Agent[dict[str, int]]):
    initial_state = {"count": 0}

    def __init__(self) -> None:
        self.named_at_birth = self.name
        self.log: list[str] = []
        self.released = asyncio.Event()

    async def on_start(self) -> None:
        self.log.append("start")

    def validate_state_change(self, state: dict[str, int], source: ramet.Connection | None) -> None:
        if state["count"] < 0:
            raise ValueError("below zero")

    @ramet.rpc
    async def increment(self, by: int = 1) -> int:
        self.set_state({"count": self.state["count"] + by})
        return self.state["count"]

    @ramet.rpc
    async def hold(self) -> str:
        await self.released.wait()
        return "released"

    @ramet.rpc
    def fail(self, text: str) -> None:
        raise ValueError(text)

    @ramet.rpc
    def not_json(self) -> object:
        return object()

    @ramet.rpc(streaming=True)
    async def count_to(self, stream: ramet.RpcStream, n: int) -> str:
        for i in range(1, n + 1):
            stream.send(i)
        return "done"

    async def secret(self) -> str:
        return "secret"

    async def remember(self, text: str) -> None:
        self.sql("CREATE TABLE IF NOT EXISTS notes (text)")
        self.sql("INSERT INTO notes VALUES (?)", text)

    async def recall(self) -> list[str]:
        self.sql("CREATE TABLE IF NOT EXISTS notes (text)")
        return [row["text"] for row in self.sql("SELECT text FROM notes")]

    def should_connection_be_readonly(
        self, connection: ramet.Connection, request: ramet.Request
    ) -> bool:
        return request.query.get("mode") == "readonly"

    def should_send_protocol_messages(
        self, connection: ramet.Connection, request: ramet.Request
    ) -> bool:
        return request.query.get("mode") != "silent"

    async def child(self, name: str) -> list[str]:
        child = await self.sub_agent(Leaf, name)
        await child.remember(f"from {self.name}")
        return await child.recall()

    async def wait_for_child(self, name: str) -> str:
        child = await self.sub_agent(Leaf, name)
        return await child.wait()


class Leaf(Note):
    async def wait(self) -> str:
        await self.released.wait()
        return "done"

    async def whose(self) -> list[str]:
        parent = await self.parent_agent(Note)
        return await parent.recall()


class Sub(ramet.Agent[None]):
    pass


def harness(tmp_path: Path) -> Harness:
    return Harness(agents=[Note], sub_agents=[Leaf, Sub], data_dir=tmp_path)


@pytest.mark.behaviour("SC-033", "SA-004")
async def test_an_instance_knows_its_name_from_birth_and_starts_before_anything_else(
    tmp_path: Path,
) -> None:
    async with harness(tmp_path) as h:
        note = await h.agent(Note, "a/b %")
        assert note.named_at_birth == "a/b %"
        assert note.log == ["start"]
        assert await h.agent(Note, "a/b %") is note


@pytest.mark.behaviour("SA-001", "SA-002")
async def test_state_and_tables_survive_a_crash_and_belong_to_one_agent(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        await h.stub(Note, "a").remember("kept")
        assert await h.stub(Note, "a").increment(4) == 4
        await h.crash()
        await h.restart()
        assert await h.stub(Note, "a").recall() == ["kept"]
        assert (await h.agent(Note, "a")).state == {"count": 4}
        assert await h.stub(Note, "b").recall() == []


async def test_a_connection_is_greeted_with_identity_state_and_mcp(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        client = await h.connect(Note, "a")
        assert client.frames == [
            {"type": "cf_agent_identity", "name": "a", "agent": "note", "stateFollows": True},
            {"type": "cf_agent_state", "state": {"count": 0}},
            {
                "type": "cf_agent_mcp_servers",
                "mcp": {"servers": {}, "tools": [], "prompts": [], "resources": []},
            },
        ]


async def test_a_change_by_a_method_reaches_everybody_before_the_reply(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        one, other = await h.connect(Note, "a"), await h.connect(Note, "a")
        await one.send({"type": "rpc", "id": "1", "method": "increment", "args": [2]})
        assert one.frames[3:] == [
            {"type": "cf_agent_state", "state": {"count": 2}},
            {"type": "rpc", "id": "1", "success": True, "done": True, "result": 2},
        ]
        assert other.frames[3:] == [{"type": "cf_agent_state", "state": {"count": 2}}]


async def test_a_clients_state_is_stored_and_told_to_the_others_only(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        one, other = await h.connect(Note, "a"), await h.connect(Note, "a")
        await one.send({"type": "cf_agent_state", "state": {"count": 7}})
        assert one.frames[3:] == []
        assert other.frames[3:] == [{"type": "cf_agent_state", "state": {"count": 7}}]
        await one.send({"type": "cf_agent_state", "state": {"count": -1}})
        assert one.frames[3:] == [
            {"type": "cf_agent_state_error", "error": "State update rejected"},
            {"type": "cf_agent_state", "state": {"count": 7}},
        ]


async def test_a_read_only_client_changes_nothing_even_by_a_method(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        client = await h.connect(Note, "a", query={"mode": "readonly"})
        await client.send({"type": "cf_agent_state", "state": {"count": 7}})
        await client.send({"type": "rpc", "id": "1", "method": "increment", "args": []})
        texts = [f.get("error") for f in client.frames if "error" in f]
        assert texts == [str(ConnectionReadonly()), str(ConnectionReadonly())]
        assert (await h.agent(Note, "a")).state == {"count": 0}


async def test_a_silent_client_gets_replies_but_no_protocol_frames(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        client = await h.connect(Note, "a", query={"mode": "silent"})
        await client.send({"type": "rpc", "id": "1", "method": "increment", "args": []})
        assert [f["type"] for f in client.frames] == ["rpc"]


@pytest.mark.parametrize(
    ("method", "args", "error"),
    [
        ("nothing", [], "Method nothing does not exist"),
        ("secret", [], "Method secret is not callable"),
        ("fail", ["kaput"], "kaput"),
        ("increment", [1, 2], "Wrong arguments for increment: too many positional arguments"),
        ("increment", ["x"], "Wrong arguments for increment: by: Input should be a valid integer"),
        ("fail", [], "Wrong arguments for fail: missing a required argument: 'text'"),
        ("notJson", [], "The result is not JSON: Type is not JSON serializable: object"),
    ],
)
async def test_a_call_that_cannot_be_answered_gets_one_clear_error(
    tmp_path: Path, method: str, args: list[object], error: str
) -> None:
    async with harness(tmp_path) as h:
        client = await h.connect(Note, "a")
        await client.send({"type": "rpc", "id": "1", "method": method, "args": args})
        (reply,) = client.of_type("rpc")
        assert reply["success"] is False
        assert str(reply["error"]).startswith(error)


async def test_a_streaming_method_sends_values_and_one_end(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        client = await h.connect(Note, "a")
        await client.send({"type": "rpc", "id": "1", "method": "countTo", "args": [2]})
        assert [(f["done"], f["result"]) for f in client.of_type("rpc")] == [
            (False, 1),
            (False, 2),
            (True, "done"),
        ]


@pytest.mark.behaviour("D13")
async def test_calls_interleave_where_they_wait(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        client = await h.connect(Note, "a")
        await client.send({"type": "rpc", "id": "slow", "method": "hold", "args": []})
        await client.send({"type": "rpc", "id": "quick", "method": "increment", "args": []})
        assert [f["id"] for f in client.of_type("rpc")] == ["quick"]
        (await h.agent(Note, "a")).released.set()
        await h.settle()
        assert [f["id"] for f in client.of_type("rpc")] == ["quick", "slow"]


@pytest.mark.behaviour("D25")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("not json", "This agent takes no messages of its own"),
        ('{"type":"mine"}', "This agent takes no messages of its own"),
        ('{"type":"cf_agent_state"}', 'Malformed cf_agent_state frame: "state" must be there.'),
        ("x" * (12 * 2**20 + 1), "The frame has 12582913 bytes; at most 12582912 are allowed."),
    ],
)
async def test_a_frame_that_makes_no_sense_gets_one_answer_and_the_connection_stays(
    tmp_path: Path, text: str, wanted: str
) -> None:
    async with harness(tmp_path) as h:
        client = await h.connect(Note, "a")
        await client.send(text)
        assert str(client.frames[3]["error"]).startswith(wanted)
        assert len(client.frames) == 4
        await client.send({"type": "rpc", "id": "1", "method": "increment", "args": []})
        assert client.of_type("rpc")


@pytest.mark.behaviour("SA-001", "SA-009", "SA-010", "SA-012", "SA-013")
async def test_a_sub_agent_keeps_its_own_storage_until_it_is_deleted(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        note = await h.agent(Note, "a")
        assert note.has_sub_agent(Leaf, "x") is False
        assert await note.child("x") == ["from a"]
        assert await note.child("x") == ["from a", "from a"]
        assert await note.recall() == []
        assert note.has_sub_agent("Leaf", "x") is True
        assert [(s.class_name, s.name) for s in note.list_sub_agents()] == [("Leaf", "x")]
        await note.delete_sub_agent(Leaf, "x")
        await note.delete_sub_agent(Leaf, "x")
        assert note.has_sub_agent(Leaf, "x") is False
        assert await note.child("x") == ["from a"]


@pytest.mark.behaviour("SA-015", "SA-016", "SA-017")
async def test_a_sub_agent_reaches_its_parent_and_a_root_has_none(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        note = await h.agent(Note, "a")
        await note.remember("of the parent")
        leaf = await note.sub_agent(Leaf, "x")
        assert await leaf.whose() == ["of the parent"]
        with pytest.raises(NotASubAgent, match="Note:a is not a sub-agent: it has no parent"):
            await note.parent_agent(Note)


@pytest.mark.behaviour("SA-011", "D11")
async def test_aborting_a_sub_agent_ends_waiting_calls_with_the_reason_and_keeps_its_storage(
    tmp_path: Path,
) -> None:
    async with harness(tmp_path) as h:
        note = await h.agent(Note, "a")
        await note.child("x")
        waiting = asyncio.create_task(note.wait_for_child("x"))
        await h.settle()
        note.abort_sub_agent(Leaf, "x", "for a test")
        with pytest.raises(InstanceGone, match="for a test"):
            await waiting
        assert await note.child("x") == ["from a", "from a"]


@pytest.mark.behaviour("D11")
async def test_code_of_a_dead_instance_can_write_nothing(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        note = await h.agent(Note, "a")
        h.host.instances.end(h.path(Note, "a"), "for a test", close_sockets="bye")
        with pytest.raises(InstanceGone):
            note.set_state({"count": 3})
        with pytest.raises(InstanceGone):
            await note.child("x")
        assert (await h.agent(Note, "a")).state == {"count": 0}


@pytest.mark.behaviour("SA-005", "SA-006", "SA-007", "D28")
async def test_wrong_addresses_are_refused_with_the_name(tmp_path: Path) -> None:
    class Other(ramet.Agent[None]):
        pass

    async with harness(tmp_path) as h:
        note = await h.agent(Note, "a")
        with pytest.raises(AgentNotRegistered, match="The agent class 'Other' is not registered"):
            await note.sub_agent(Other, "x")
        with pytest.raises(AgentNotRegistered, match="its URL form is 'sub'"):
            await note.sub_agent(Sub, "x")
        with pytest.raises(AgentNotRegistered, match="registered for sub-agents only"):
            await h.agent(Leaf, "x")
        for name in ("", ".", "..", "a\0b", "x" * 1025):
            with pytest.raises(InvalidAgentName):
                await note.sub_agent(Leaf, name)
        assert note.list_sub_agents() == []


async def test_only_async_methods_that_exist_can_be_called_through_a_stub(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        stub = h.stub(Note, "a")
        with pytest.raises(MethodNotFound, match="Method nothing of Note does not exist"):
            stub.nothing()  # type: ignore[attr-defined] # on purpose
        with pytest.raises(MethodNotCallable, match="only async methods"):
            await stub.fail("x")  # type: ignore[misc] # on purpose


@pytest.mark.behaviour("D17")
async def test_a_call_to_another_root_passes_values_and_to_a_sub_agent_references(
    tmp_path: Path,
) -> None:
    class Keeper(ramet.Agent[None]):
        async def keep(self, items: list[int]) -> list[int]:
            items.append(1)
            return items

    async with Harness(agents=[Keeper], data_dir=tmp_path) as h:
        mine = [0]
        assert await h.stub(Keeper, "a").keep(mine) == [0, 1]
        assert mine == [0]
        keeper = await h.agent(Keeper, "a")
        below = await keeper.sub_agent(Keeper, "x")
        assert await below.keep(mine) is mine


@pytest.mark.behaviour("D16")
async def test_two_classes_with_one_url_form_are_refused(tmp_path: Path) -> None:
    class note(ramet.Agent[None]):  # noqa: N801 - the clash is the point
        pass

    with pytest.raises(DuplicateAgentName, match="share the URL form 'note'"):
        Harness(agents=[Note, note], data_dir=tmp_path)


@pytest.mark.behaviour("D16")
async def test_a_renamed_class_finds_what_it_stored_before(tmp_path: Path) -> None:
    async with Harness(agents=[Note], data_dir=tmp_path) as h:
        await h.stub(Note, "a").remember("before")

    class Memo(Note):
        options = ramet.AgentOptions(former_names=("Note",))

    async with Harness(agents=[Memo], data_dir=tmp_path) as h:
        assert await h.stub(Memo, "a").recall() == ["before"]


async def test_an_agent_whose_start_fails_says_why_and_can_be_tried_again(tmp_path: Path) -> None:
    class Flaky(ramet.Agent[None]):
        failures = 1

        def on_start(self) -> None:
            if type(self).failures:
                type(self).failures -= 1
                raise RuntimeError("not today")

        async def hello(self) -> str:
            return "hello"

    async with Harness(agents=[Flaky], data_dir=tmp_path) as h:
        with pytest.raises(RuntimeError, match="not today"):
            await h.stub(Flaky, "a").hello()
        assert await h.stub(Flaky, "a").hello() == "hello"


async def test_an_agent_may_open_its_sub_agents_while_it_starts(tmp_path: Path) -> None:
    class Below(ramet.Agent[None]):
        async def on_start(self) -> None:
            parent = await self.parent_agent(Above)
            self.heard = await parent.greet()

        async def what(self) -> str:
            return self.heard

    class Above(ramet.Agent[None]):
        async def on_start(self) -> None:
            below = await self.sub_agent(Below, "x")
            self.heard = await below.what()

        async def greet(self) -> str:
            return "hi"

    async with Harness(agents=[Above], sub_agents=[Below], data_dir=tmp_path) as h:
        assert (await h.agent(Above, "a")).heard == "hi"


async def test_an_evicted_agent_comes_back_on_the_next_frame_of_its_client(tmp_path: Path) -> None:
    async with harness(tmp_path) as h:
        client = await h.connect(Note, "a")
        before = await h.agent(Note, "a")
        await h.evict(Note, "a")
        await client.send({"type": "rpc", "id": "1", "method": "increment", "args": [5]})
        assert client.of_type("rpc")[0]["result"] == 5
        assert await h.agent(Note, "a") is not before


def test_an_abort_signal_tells_each_listener_once() -> None:
    controller = AbortController()
    heard: list[object] = []
    remove = controller.signal.add_listener(heard.append)
    controller.signal.add_listener(heard.append)
    remove()
    controller.abort("why")
    controller.abort("again")
    controller.signal.add_listener(heard.append)
    assert heard == ["why", "why"]
    assert controller.signal.listener_count == 0
