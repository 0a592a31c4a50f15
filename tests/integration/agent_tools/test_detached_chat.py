"""What chats are told of detached runs: notices of the end, milestones, and all between turns."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic_ai.models import Model

import ramet
from ramet.core.json import JsonObject, loads
from ramet.protocol.messages import text_of, user_message
from ramet.testing import Gate, Harness
from ramet.testing.scripted_model import ScriptedModel
from tests.integration.agent_tools.children import HandChild
from tests.integration.agent_tools.detached_stage import Reporter


class Told:
    """What both kinds of bosses share: a callback, texts, and what they noted."""

    log: ClassVar[list[str]] = []
    gate: ClassVar[Gate | None] = None
    """Where answers wait."""
    mutes: ClassVar[set[str]] = set()
    """The statuses and milestones that nobody is told of."""
    failing: ClassVar[list[Exception]] = []
    """What the texts raise, one after another."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    async def done(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        self.log.append(f"done {result.status}")

    def on_error(self, error: BaseException, connection: ramet.Connection | None = None) -> None:
        self.errors.append(str(error))


class Asker(ramet.AIChatAgent):
    """A child that has its parent take a turn."""

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        parent = await self.parent_agent(ChatBoss)
        await parent.save_messages([user_message("from below", id="q")])
        yield "asked"


class ChatBoss(Told, ramet.AIChatAgent):
    """Repeats what it is asked."""

    async def waits(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        """A callback that takes long."""
        self.log.append("waiting")
        if self.gate is not None:
            await self.gate.wait()
        self.log.append("waited")

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        question = text_of(turn.messages[-1])
        self.log.append(f"asked {question.splitlines()[0]}")
        if self.gate is not None:
            await self.gate.wait()
        if question == "cancel it":
            await self.cancel_agent_tool("r")
            self.log.append("cancelled")
        self.log.append("answered")
        yield f"Heard: {question}"

    async def settles(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        """A callback that waits until the chat is quiet."""
        self.log.append(f"stable {await self.wait_until_stable(1000)}")

    async def gives_up(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        """A callback with a limit of its own."""
        raise TimeoutError

    async def starts_another(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        """A callback that waits for a child, which asks this chat something."""
        answer = await self.run_agent_tool(Asker, run_id="asker", input="ask")
        self.log.append(f"asker {answer.status}")

    async def answers_itself(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        """A callback that runs a turn and waits for it."""
        await self.save_messages([user_message(f"It is {result.status}", id="own")])
        self.log.append("called back")

    def format_detached_completion(
        self, run: ramet.RunInfo, result: ramet.RunResult[object]
    ) -> object:
        if self.failing:
            raise self.failing.pop(0)
        return (
            "" if result.status in self.mutes else super().format_detached_completion(run, result)
        )

    def format_detached_milestone(self, run: ramet.RunInfo, milestone: ramet.Milestone) -> object:
        return (
            None
            if milestone.name in self.mutes
            else super().format_detached_milestone(run, milestone)
        )


class ThinkBoss(Told, ramet.Think):
    """The same, with a model."""

    def get_model(self) -> Model:
        return ScriptedModel.by_rule(lambda messages, tools: "Heard.")

    async def streams(self, run: ramet.RunInfo, result: ramet.RunResult[object]) -> None:
        """A callback that runs a turn and takes its chunks."""
        callback = ramet.TurnCallback(on_event=lambda chunk: None)
        await self.chat(f"It is {result.status}", callback)
        self.log.append("streamed")

    async def before_turn(self, turn: ramet.Turn) -> None:
        self.log.append(f"asked {text_of(turn.messages[-1]).splitlines()[0]}")
        if self.gate is not None:
            await self.gate.wait()


BOSSES = pytest.mark.parametrize("root", [ChatBoss, ThinkBoss])


class Room:
    """A chat agent with a child."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.root: type[Any] = ChatBoss

    async def boss(self) -> Any:
        """The live parent."""
        return await self.harness.agent(self.root, "b")

    async def let_go(self, run_id: str = "r", **detached: Any) -> None:
        """Start a run that the chat is told of."""
        if "on_finish" not in detached:
            detached.setdefault("notify", True)
        boss = await self.boss()
        await boss.run_agent_tool(
            Reporter, run_id=run_id, input="go", detached=ramet.Detached(**detached)
        )

    async def child(self, run_id: str = "r") -> Reporter:
        """The live child."""
        agent: object = await self.harness.agent(self.root, "b", [(Reporter, run_id)])
        assert isinstance(agent, Reporter)
        return agent

    async def ask(self, message_id: str, text: str) -> None:
        """Have a turn begin, and go on as far as it goes."""
        boss = await self.boss()
        boss._ramet.context.background.start(
            boss.save_messages([user_message(text, id=message_id)]), name="ask"
        )
        await self.harness.settle()

    async def texts(self) -> list[str]:
        """The texts of the transcript, each with its role's first letter."""
        messages: list[JsonObject] = (await self.boss()).messages
        return [f"{str(each['role'])[0]}: {text_of(each)}" for each in messages]

    async def ids(self) -> list[str]:
        """The ids of the user's and ramet's messages, without those of answers."""
        messages: list[JsonObject] = (await self.boss()).messages
        return [str(each["id"]) for each in messages if not str(each["id"]).startswith("asst_")]

    def row(self, run_id: str = "r") -> JsonObject:
        """The stored row of a run."""
        query = "SELECT * FROM cf_agent_tool_runs WHERE run_id = ?"
        return self.harness.rows(self.root, "b", query, run_id)[0]

    async def settle(self) -> None:
        """Run what can run."""
        await self.harness.settle()


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with Harness(
        agents=[ChatBoss, ThinkBoss], sub_agents=[Reporter, Asker], data_dir=tmp_path
    ) as harness:
        yield Room(harness)
        if Told.gate is not None:
            Told.gate.open()
    Told.log.clear()
    Told.mutes.clear()
    Told.failing.clear()
    Told.gate = None
    HandChild.fails_on.clear()
    HandChild.stalls_on.clear()


@pytest.mark.behaviour("AT-233", "AT-270", "AT-272", "AT-274", "AT-234")
@BOSSES
async def test_the_chat_is_told_of_the_end_and_answers_once(room: Room, root: type) -> None:
    room.root = root
    await room.let_go(notify=ramet.Notify(source="nightly"))
    assert room.row()["detached_on_finish"] == "_cfDetachedNotifyFinish"
    (await room.child()).end(summary="Forty-two.")
    await room.settle()
    question, answer = await room.texts()
    assert question == "u: Background run Reporter (r) finished.\n\nForty-two."
    assert answer.startswith("a: Heard")
    [message, _] = (await room.boss()).messages
    assert message["id"] == "detached-finish:r:completed"
    assert message["metadata"] == {
        "source": "nightly",
        "runId": "r",
        "agentType": "Reporter",
        "status": "completed",
    }
    assert room.row()["finish_delivered_at"] is not None
    await room.harness.advance(600)
    assert len(await room.texts()) == 2


@pytest.mark.behaviour("AT-272")
async def test_a_think_submits_its_notice_under_a_key(room: Room) -> None:
    room.root = ThinkBoss
    await room.let_go(max_budget=10)
    await room.harness.advance(600)
    boss = await room.boss()
    keys = [(each.idempotency_key, each.metadata) for each in boss.list_submissions()]
    origin = {"source": "detached-agent-tool", "runId": "r", "agentType": "Reporter"}
    assert sorted(keys) == [
        ("detached-finish:r:aborted", {**origin, "status": "aborted"}),
        ("detached-finish:r:interrupted", {**origin, "status": "interrupted"}),
    ]
    assert await room.ids() == ["detached-finish:r:interrupted", "detached-finish:r:aborted"]


@pytest.mark.behaviour("AT-270")
@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ({"summary": None}, "finished successfully."),
        ({"status": "error", "error": "no luck"}, "failed: no luck"),
        ({"status": "aborted", "error": "x"}, "was cancelled."),
    ],
)
async def test_each_end_has_its_words(room: Room, ending: dict[str, Any], text: str) -> None:
    await room.let_go()
    (await room.child()).end(**ending)
    await room.settle()
    assert (await room.texts())[0] == f"u: Background run Reporter (r) {text}"


@pytest.mark.behaviour("AT-270")
async def test_what_was_given_up_has_its_words_too(room: Room) -> None:
    HandChild.fails_on["cancel"] = ConnectionError("away")
    await room.let_go("slow", max_budget=30)
    await room.let_go("silent", no_progress_budget=10)
    (await room.child("silent")).progress(0.1)
    await room.harness.advance(40)
    told = [text for text in await room.texts() if text.startswith("u:")]
    assert told == [
        "u: Background run Reporter (silent) was interrupted: "
        "The agent tool run was given up: its child sent nothing more.",
        "u: Background run Reporter (slow) ran out of time.",
    ]


@pytest.mark.behaviour("AT-235", "AT-031")
async def test_wishes_for_milestones_stand_in_the_row(room: Room) -> None:
    await room.let_go("both", on_milestones=ramet.Milestones(["a", "b", "a"], mode="react"))
    await room.let_go("one", on_milestones=["a"])
    both, one = (str(room.row(each)["detached_on_milestones"]) for each in ("both", "one"))
    assert loads(both) == {"names": ["a", "b"], "mode": "react"}
    assert loads(one) == {"names": ["a"], "mode": "narrate"}


@pytest.mark.behaviour("AT-271")
async def test_an_empty_text_tells_nothing(room: Room) -> None:
    Told.mutes.update({"completed", "a"})
    await room.let_go(on_milestones=["a"])
    child = await room.child()
    child.milestone("a", 0)
    child.end()
    await room.settle()
    assert await room.texts() == []
    assert room.row()["finish_delivered_at"] is not None


@pytest.mark.behaviour("AT-249", "AT-248")
async def test_a_text_that_cannot_be_made_is_asked_for_again_after_the_lease(room: Room) -> None:
    Told.failing.append(ValueError("no words"))
    await room.let_go()
    (await room.child()).end(summary="s")
    await room.settle()
    assert await room.texts() == []
    await room.harness.advance(65)
    assert len(await room.texts()) == 2


@pytest.mark.behaviour("AT-268", "AT-273", "AT-356")
@BOSSES
async def test_what_ends_during_a_turn_is_told_after_it(room: Room, root: type) -> None:
    room.root = root
    Told.gate = gate = Gate()
    await room.ask("q1", "first")
    await room.let_go()
    (await room.child()).end(summary="s")
    await room.settle()
    assert room.row()["status"] == "completed"  # clients see the end at once
    assert room.row()["finish_claimed_at"] is None
    assert await room.ids() == ["q1"]
    await room.harness.advance(300)
    assert room.row()["finish_claimed_at"] is None
    gate.open()
    Told.gate = None
    await room.settle()
    assert await room.ids() == ["q1", "detached-finish:r:completed"]
    assert [text[0] for text in await room.texts()] == ["u", "a", "u", "a"]


@pytest.mark.behaviour("AT-268")
async def test_callbacks_run_between_turns_and_keep_the_next_one_waiting(room: Room) -> None:
    Told.gate = gate = Gate()
    await room.ask("q1", "first")
    await room.ask("q2", "second")
    await room.let_go(on_finish="done")
    (await room.child()).end()
    await room.settle()
    gate.open()
    await room.settle()
    assert Told.log == ["asked first", "answered", "done completed", "asked second", "answered"]


@pytest.mark.behaviour("AT-268", "AT-356")
async def test_a_callback_may_wait_for_a_turn_of_its_own(room: Room) -> None:
    Told.gate = gate = Gate()
    await room.ask("q1", "first")
    await room.let_go(on_finish="answers_itself")
    (await room.child()).end()
    await room.settle()
    gate.open()
    await room.settle()
    assert Told.log == [
        "asked first",
        "answered",
        "asked It is completed",
        "answered",
        "called back",
    ]
    assert room.row()["finish_delivered_at"] is not None


@pytest.mark.behaviour("AT-268")
async def test_a_callback_may_wait_until_the_chat_is_quiet(room: Room) -> None:
    Told.gate = gate = Gate()
    await room.ask("q1", "first")
    await room.ask("q2", "second")
    await room.let_go(on_finish="settles")
    (await room.child()).end()
    gate.open()
    await room.settle()
    assert Told.log == ["asked first", "answered", "asked second", "answered", "stable True"]


@pytest.mark.behaviour("AT-268")
async def test_a_callback_of_a_think_may_stream_a_turn(room: Room) -> None:
    room.root = ThinkBoss
    await room.let_go(on_finish="streams")
    (await room.child()).end()
    await room.settle()
    assert Told.log == ["asked It is completed", "streamed"]
    assert room.row()["finish_delivered_at"] is not None


@pytest.mark.behaviour("AT-268", "D11")
async def test_a_crash_in_a_gap_starts_no_turn_in_the_dead_instance(room: Room) -> None:
    Told.gate = gate = Gate()
    await room.let_go(on_finish="waits")
    (await room.child()).end()
    await room.settle()
    await room.ask("q1", "first")
    assert Told.log == ["waiting"]
    await room.harness.crash()
    assert Told.log == ["waiting"]
    gate.open()
    await room.harness.restart()
    await room.boss()
    await room.settle()
    assert Told.log == ["waiting", "asked first", "answered"]
    await room.harness.advance(70)
    assert Told.log[3:] == ["waiting", "waited"]


@pytest.mark.behaviour("AT-269", "AT-356")
async def test_a_turn_that_cancels_a_run_has_it_delivered_inside(room: Room) -> None:
    await room.let_go(on_finish="done")
    await room.ask("q1", "cancel it")
    assert Told.log == ["asked cancel it", "done aborted", "cancelled", "answered"]


@pytest.mark.behaviour("AT-269", "AT-356")
@BOSSES
async def test_a_notice_of_a_cancel_inside_a_turn_is_answered_after_it(
    room: Room, root: type
) -> None:
    room.root = root
    Told.gate = gate = Gate()
    await room.let_go()
    await room.ask("q1", "first")
    await (await room.boss()).cancel_agent_tool("r")
    gate.open()
    await room.settle()
    assert await room.ids() == ["q1", "detached-finish:r:aborted"]
    assert len(await room.texts()) == 4


@pytest.mark.behaviour("QK-006", "AT-268")
@BOSSES
async def test_a_delivery_survives_that_the_chat_is_cleared(room: Room, root: type) -> None:
    room.root = root
    Told.gate = gate = Gate()
    await room.ask("q1", "first")
    await room.let_go(on_finish="done")
    await room.let_go("told")
    (await room.child()).end()
    (await room.child("told")).end(summary="s")
    await room.settle()
    await (await room.boss()).clear_messages()
    gate.open()
    await room.harness.advance(200)
    assert Told.log.count("done completed") == 1
    assert await room.ids() == ["detached-finish:told:completed"]
    for run_id in ("r", "told"):
        assert room.row(run_id)["finish_delivered_at"] is not None


@pytest.mark.behaviour("AT-275", "AT-277", "AT-224", "D36", "QK-003")
@BOSSES
async def test_milestones_that_count_are_narrated_once_at_once(room: Room, root: type) -> None:
    room.root = root
    await room.let_go(on_finish="done", on_milestones=["schema-ready"])
    child = await room.child()
    child.milestone("other", 0)
    child.milestone("schema-ready", 1)
    child.milestone("schema-ready", 2)
    await room.settle()
    [message] = (await room.boss()).messages
    assert message["id"] == "detached-ms:r:schema-ready"
    assert message["role"] == "assistant"
    assert text_of(message) == "Background run Reporter (r) has reached 'schema-ready'."
    assert message["metadata"] == {
        "source": "detached-agent-tool",
        "runId": "r",
        "agentType": "Reporter",
        "milestone": "schema-ready",
    }
    await (await room.boss()).clear_messages()
    await room.harness.advance(60)  # ticks offer it again
    assert await room.texts() == []


@pytest.mark.behaviour("AT-276", "AT-277", "AT-235")
@BOSSES
async def test_milestones_can_be_reacted_to(room: Room, root: type) -> None:
    room.root = root
    wishes = ramet.Milestones(["ready"], mode="react")
    await room.let_go(on_finish="done", on_milestones=wishes)
    child = await room.child()
    child.milestone("ready", 0)
    child.milestone("ready", 1)
    await room.harness.advance(60)
    assert await room.ids() == ["detached-ms:r:ready"]
    assert [text[0] for text in await room.texts()] == ["u", "a"]
    assert Told.log.count("asked Background run Reporter (r) has reached 'ready'.") == 1


@pytest.mark.behaviour("AT-278", "AT-242")
@BOSSES
async def test_a_milestone_that_nobody_heard_is_told_before_the_end(room: Room, root: type) -> None:
    room.root = root
    await room.let_go(on_milestones=["ready"])
    child = await room.child()
    child.milestone("ready", 0)
    child.end(summary="s")
    await room.harness.crash()
    await room.harness.restart()
    await room.harness.advance(10)
    assert await room.ids() == ["detached-ms:r:ready", "detached-finish:r:completed"]
    assert (await room.texts())[0].startswith("a: Background run")


@pytest.mark.behaviour("AT-273", "AT-275", "CR-017")
async def test_a_narration_stands_before_questions_that_wait(room: Room) -> None:
    Told.gate = gate = Gate()
    await room.let_go(on_finish="done", on_milestones=["ready"])
    await room.ask("q1", "first")
    await room.ask("q2", "second")
    (await room.child()).milestone("ready", 0)
    await room.settle()
    assert await room.ids() == ["q1", "q2"]
    gate.open()
    await room.settle()
    assert await room.ids() == ["q1", "detached-ms:r:ready", "q2"]


@pytest.mark.behaviour("D5", "AT-268")
@BOSSES
async def test_a_lost_turn_goes_on_before_anything_is_told(room: Room, root: type) -> None:
    room.root = root
    Told.gate = Gate()
    await room.ask("q1", "first")
    await room.let_go(on_milestones=["ready"])
    child = await room.child()
    child.milestone("ready", 0)
    child.end(summary="s")
    await room.harness.crash()
    Told.gate = None
    await room.harness.restart()
    await room.harness.advance(60)
    texts = await room.texts()
    assert [text[0] for text in texts] == ["u", "a", "a", "u", "a"]
    assert texts[0] == "u: first"
    assert texts[1].startswith("a: Heard")


@pytest.mark.behaviour("AT-274", "AT-272", "D36")
@BOSSES
async def test_a_crash_before_the_delivery_is_recorded_adds_no_second_notice(
    room: Room, root: type
) -> None:
    room.root = root
    await room.let_go()
    (await room.child()).end(summary="s")
    await room.settle()
    boss = await room.boss()
    boss.sql("UPDATE cf_agent_tool_runs SET finish_delivered_at = NULL")
    await room.harness.crash()
    await room.harness.restart()
    await room.boss()
    await room.harness.advance(300)
    assert room.row()["finish_delivered_at"] is not None
    assert await room.ids() == ["detached-finish:r:completed"]
    assert len(await room.texts()) == 2


async def test_an_eviction_waits_for_a_delivery(room: Room) -> None:
    Told.gate = Gate()
    await room.let_go()
    (await room.child()).end(summary="s")
    await room.settle()
    await room.harness.evict(ChatBoss, "b", sub=[(Reporter, "r")])
    with pytest.raises(ramet.RametError, match="turn is running"):
        await room.harness.evict(ChatBoss, "b")
    Told.gate.open()
    await room.settle()
    await room.harness.evict(ChatBoss, "b")


# --- callbacks that take too long -----------------------------------------------------------------

HELD_UP = (
    "{} of the run 'r' has kept the turns of its chat waiting for 60 seconds: they go on beside it"
)


@pytest.mark.behaviour("AT-268")
async def test_a_callback_that_does_not_return_holds_turns_and_deliveries_up_for_a_minute(
    room: Room,
) -> None:
    gate = Told.gate = Gate()
    await room.let_go(on_finish="waits")
    await room.let_go("other", on_finish="done")
    (await room.child()).end()
    await room.settle()
    Told.gate = None
    (await room.child("other")).end()
    await room.ask("q", "beside?")
    await room.harness.advance(59)
    assert Told.log == ["waiting"]
    await room.harness.advance(2)
    assert Told.log == ["waiting", "done completed", "asked beside?", "answered"]
    await room.harness.advance(600)
    assert (await room.boss()).errors == [HELD_UP.format("waits")]
    assert Told.log.count("waiting") == 1
    assert room.row()["finish_delivered_at"] is None
    gate.open()
    await room.settle()
    assert Told.log[-1] == "waited"
    assert room.row()["finish_delivered_at"] is not None
    await room.ask("q2", "and now?")
    assert Told.log[-2:] == ["asked and now?", "answered"]


async def test_a_callback_that_never_returns_is_broken_off_after_an_hour_and_called_again(
    room: Room,
) -> None:
    Told.gate = Gate()
    await room.let_go(on_finish="waits")
    (await room.child()).end()
    await room.settle()
    await room.harness.advance(3599)
    assert Told.log == ["waiting"]
    Told.gate = None
    await room.harness.advance(300)
    assert Told.log == ["waiting", "waiting", "waited"]
    assert (await room.boss()).errors == [
        HELD_UP.format("waits"),
        "It has not returned in 3600 seconds",
    ]
    assert room.row()["finish_delivered_at"] is not None


async def test_a_callback_that_waits_for_a_child_that_asks_its_chat_comes_to_its_end(
    room: Room,
) -> None:
    await room.let_go(on_finish="starts_another")
    (await room.child()).end()
    await room.settle()
    assert Told.log == []
    await room.harness.advance(61)
    assert Told.log == ["asked from below", "answered", "asker completed"]
    assert (await room.boss()).errors == [HELD_UP.format("starts_another")]
    assert room.row()["finish_delivered_at"] is not None


async def test_a_turn_that_a_callback_waits_for_may_take_as_long_as_it_likes(room: Room) -> None:
    await room.let_go(on_finish="answers_itself")
    gate = Told.gate = Gate()
    (await room.child()).end()
    await room.harness.advance(600)
    assert Told.log == ["asked It is completed"]
    gate.open()
    await room.settle()
    assert Told.log == ["asked It is completed", "answered", "called back"]
    assert (await room.boss()).errors == []
    assert room.row()["finish_delivered_at"] is not None


async def test_a_timeout_of_the_callbacks_own_is_reported_as_it_is(room: Room) -> None:
    await room.let_go(on_finish="gives_up")
    (await room.child()).end()
    await room.settle()
    assert (await room.boss()).errors == [""]
    assert room.row()["finish_delivered_at"] is None
