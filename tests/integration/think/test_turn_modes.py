"""Turns of a `Think` that code runs, in every mode, and messages that it adds without one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic_ai.messages import UserPromptPart

import ramet
from ramet.core.json import JsonObject
from ramet.errors import InvalidArguments, TurnInsideTurn, UnknownModelResult
from ramet.observability.channels import Event, subscribe
from ramet.protocol import types
from ramet.protocol.messages import parts_of, text_of, user_message
from ramet.protocol.ui_message import UIMessage
from ramet.testing import Harness
from ramet.testing.scripted_model import Gate, ScriptedError, ScriptedModel, ToolCall
from tests.integration.chat.support import request
from tests.integration.think.stage import Assistant, connected, harness


class Told:
    """Notes what a streamed turn calls back with."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.text = ""
        self.callback = ramet.TurnCallback(
            on_start=lambda request_id: self.calls.append(f"start {bool(request_id)}"),
            on_event=self.event,
            on_done=lambda: self.calls.append("done"),
            on_error=lambda text: self.calls.append(f"error {text}"),
            on_interrupted=lambda: self.calls.append("interrupted"),
        )

    async def event(self, chunk: JsonObject) -> None:
        self.text += str(chunk.get("delta", ""))


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    async with harness(tmp_path) as running:
        yield running


@pytest.fixture
async def agent(host: Harness) -> Assistant:
    return await host.agent(Assistant, "a")


def play(*answers: object) -> ScriptedModel:
    Assistant.script = ScriptedModel(answers)  # type: ignore[arg-type] # checked when it is played
    return Assistant.script


def texts(agent: ramet.Think) -> list[str]:
    return [text_of(message) for message in agent.messages]


@pytest.mark.behaviour("TQ-006", "TQ-010")
async def test_wait_gives_how_the_turn_ended(agent: Assistant) -> None:
    play("hello", ScriptedError("out of credit"))
    result = await agent.run_turn("hi")
    assert (result.status, result.continuation, result.error) == ("completed", False, None)
    assert result.request_id
    assert result.message is not None
    assert text_of(result.message) == "hello"
    failed = await agent.run_turn(user_message("again", id="u2"))
    assert (failed.status, failed.error) == ("error", "out of credit")
    assert texts(agent)[:3] == ["hi", "hello", "again"]


@pytest.mark.behaviour("TQ-007")
@pytest.mark.parametrize("empty", ["", []])
async def test_nothing_to_answer_runs_no_turn_and_reports_none(
    agent: Assistant, empty: str | list[UIMessage]
) -> None:
    events: list[Event] = []
    unsubscribe = subscribe("chat", events.append)
    result = await agent.run_turn(empty)
    unsubscribe()
    assert (result.request_id, result.status, result.continuation) == ("", "skipped", False)
    assert events == []
    assert agent.messages == []


@pytest.mark.behaviour("TQ-007")
async def test_saving_no_messages_does_run_a_turn(agent: Assistant) -> None:
    play("first", "second")
    await agent.run_turn("hi")
    result = await agent.save_messages([])
    assert result.status == "completed"
    assert texts(agent) == ["hi", "first", "second"]


CALLBACK = ramet.TurnCallback(on_event=print)


@pytest.mark.behaviour("TQ-008")
@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"input": "hi", "mode": "later"}, "mode is one of"),
        ({"input": "hi", "continuation": True}, "takes no input"),
        ({}, "needs an input"),
        ({"mode": "submit"}, "needs an input"),
        ({"mode": "stream", "callback": CALLBACK}, "needs an input"),
        ({"input": "hi", "mode": "stream"}, "A callback is needed"),
        ({"input": "hi", "callback": CALLBACK}, "A callback is needed"),
        ({"mode": "submit", "continuation": True}, "can only be waited for"),
        ({"mode": "stream", "continuation": True, "callback": CALLBACK}, "can only be waited for"),
        ({"input": "", "mode": "stream", "callback": CALLBACK}, "at least one message"),
        ({"input": [], "mode": "submit"}, "at least one message"),
        ({"input": "hi", "metadata": 1}, 'for mode="submit"'),
        ({"input": "hi", "mode": "submit", "signal": ramet.AbortController().signal}, "a signal"),
    ],
)
async def test_arguments_that_do_not_fit_together_are_refused_and_nothing_is_written(
    host: Harness, agent: Assistant, arguments: dict[str, Any], fault: str
) -> None:
    run_turn: Any = agent.run_turn
    with pytest.raises(InvalidArguments, match=fault):
        await run_turn(**arguments)
    assert agent.messages == []
    assert host.rows(Assistant, "a", "SELECT 1 FROM cf_chat_turns") == []
    assert host.rows(Assistant, "a", "SELECT 1 FROM cf_think_submissions") == []


@pytest.mark.parametrize("wrong", [7, [7], {"id": "u1"}, [{"id": "u1", "role": "user"}]])
async def test_an_input_that_is_no_message_is_refused(agent: Assistant, wrong: Any) -> None:
    with pytest.raises(UnknownModelResult):
        await agent.run_turn(wrong)
    assert agent.messages == []


@pytest.mark.behaviour("TQ-006")
async def test_stream_calls_back_with_the_chunks_and_then_the_end(agent: Assistant) -> None:
    play(["Hel", "lo"])
    told = Told()
    await agent.run_turn("hi", mode="stream", callback=told.callback)
    assert told.calls == ["start True", "done"]
    assert told.text == "Hello"


@pytest.mark.behaviour("TQ-006")
async def test_a_streamed_turn_that_fails_or_is_cancelled_says_so(
    host: Harness, agent: Assistant
) -> None:
    gate = Gate()
    play([ScriptedError("no")], ["so far", gate])
    told = Told()
    await agent.chat("hi", told.callback)
    assert told.calls == ["start True", "error no"]
    told = Told()
    running = asyncio.ensure_future(agent.chat("more", told.callback))
    await host.settle()
    agent.cancel_all_chats()
    await running
    assert told.calls == ["start True", "interrupted"]
    assert told.text == "so far"


async def test_a_callback_that_raises_cancels_its_turn(host: Harness, agent: Assistant) -> None:
    gate = Gate()
    play(["so far", gate])

    def fail(chunk: JsonObject) -> None:
        raise OSError("the listener is gone")

    with pytest.raises(OSError, match="listener"):
        await agent.chat("hi", ramet.TurnCallback(on_event=fail))
    await host.settle()
    assert await agent.wait_until_stable()
    rows = host.rows(Assistant, "a", "SELECT outcome FROM cf_chat_turns")
    assert rows == [{"outcome": "aborted"}]


class Nesting(ramet.Think):
    """Tries everything from inside a turn."""

    script: ClassVar[ScriptedModel] = ScriptedModel([])

    def get_model(self) -> ScriptedModel:
        return self.script

    def __init__(self) -> None:
        self.refused: list[str] = []

    async def before_turn(self, turn: ramet.Turn) -> None:
        if turn.trigger == "submission":
            return
        told = Told()
        for attempt in (
            lambda: self.run_turn("x"),
            lambda: self.run_turn(continuation=True),
            lambda: self.continue_last_turn(),
            lambda: self.chat("x", told.callback),
            lambda: self.save_messages([]),
        ):
            try:
                await attempt()
            except TurnInsideTurn as error:
                self.refused.append(str(error))
        self.add_messages(user_message("by the way", id="added"))
        await self.submit_messages("later", submission_id="s1")


@pytest.mark.behaviour("TQ-005", "TQ-013")
async def test_inside_a_turn_only_submitting_and_adding_are_allowed(tmp_path: Path) -> None:
    async with Harness(agents=[Nesting], data_dir=tmp_path) as host:
        client = await host.connect(Nesting, "a")
        agent = await host.agent(Nesting, "a")
        Nesting.script = ScriptedModel(["one", "two"])
        result = await agent.run_turn(user_message("go", id="u1"))
        await host.settle()
        sent = [frame["messages"] for frame in client.of_type(types.CHAT_MESSAGES)]
        assert result.status == "completed"
        assert len(agent.refused) == 5
        assert texts(agent) == ["go", "one", "by the way", "later", "two"]
        lengths = [len(messages) for messages in sent if isinstance(messages, list)]
        assert lengths == [0, 1, 3, 4, 5]
        submission = agent.inspect_submission("s1")
        assert submission is not None
        assert submission.status == "completed"


@pytest.mark.behaviour("TQ-013")
async def test_added_messages_start_no_turn_and_are_known_by_their_ids(
    host: Harness, agent: Assistant
) -> None:
    chat = await connected(host)
    first = user_message("one", id="u1")
    agent.add_messages([first, user_message("two", id="u2")])
    await host.settle()
    assert chat.transcript == agent.messages
    agent.add_messages(user_message("changed", id="u1"))
    assert texts(agent) == ["one", "two"]
    agent.add_messages(user_message("changed", id="u1"), mode="upsert")
    assert texts(agent) == ["changed", "two"]
    agent.add_messages([user_message("x", id="u3"), user_message("y", id="u4")], parent_id="u1")
    assert texts(agent) == ["changed", "x", "y", "two"]
    add: Any = agent.add_messages
    with pytest.raises(InvalidArguments, match="no message 'nobody'"):
        add(user_message("z", id="u5"), parent_id="nobody")
    with pytest.raises(InvalidArguments, match="not 'replace'"):
        add(user_message("z", id="u5"), mode="replace")
    assert len(agent.messages) == 4
    assert host.rows(Assistant, "a", "SELECT 1 FROM cf_chat_turns") == []


@pytest.mark.behaviour("TQ-009", "TQ-006", "D5")
async def test_a_continuation_extends_the_last_answer_and_the_model_knows_it_all(
    host: Harness, agent: Assistant
) -> None:
    async def look() -> str:
        return "seen"

    nothing = await agent.run_turn(continuation=True)
    assert (nothing.status, nothing.request_id) == ("skipped", "")
    model = play([ToolCall("look")], "first", "second", "third")
    Assistant.more_tools = [look]
    try:
        await agent.run_turn("hi")
        result = await agent.run_turn(continuation=True)
        assert (result.status, result.continuation) == ("completed", True)
        assert len(agent.messages) == 2
        parts = [part for part in parts_of(agent.messages[-1]) if part["type"] != "step-start"]
        assert [part.get("text", part.get("output")) for part in parts] == [
            "seen",
            "first",
            "second",
        ]
        await agent.run_turn("so?")
    finally:
        Assistant.more_tools = ()
    kinds = [part.part_kind for message in model.requests[3].messages for part in message.parts]
    assert kinds == ["user-prompt", "tool-call", "tool-return", "text", "text", "user-prompt"]
    asked = model.requests[2].messages[-1].parts[-1]
    assert isinstance(asked, UserPromptPart)


class Merging(Assistant):
    message_concurrency = "merge"  # type: ignore[mutable-override] # as users write it


@pytest.mark.behaviour("TQ-019")
async def test_merged_questions_stay_apart_and_are_answered_in_one_turn(tmp_path: Path) -> None:
    async with Harness(agents=[Merging], data_dir=tmp_path) as host:
        client = await host.connect(Merging, "a")
        agent = await host.agent(Merging, "a")
        gate = Gate()
        Merging.script = ScriptedModel([["first", gate], "both"])
        asked = [user_message(f"q{number}", id=f"u{number}") for number in (1, 2, 3)]
        for number in (1, 2, 3):
            await client.send(request(f"r{number}", asked[:number]))
        gate.open()
        await host.settle()
        assert texts(agent) == ["q1", "first", "q2", "q3", "both"]
        ended = [frame for frame in client.of_type(types.CHAT_RESPONSE) if frame["done"]]
        assert [(frame["id"], frame["outcome"]) for frame in ended] == [
            ("r2", "skipped"),
            ("r1", "completed"),
            ("r3", "completed"),
        ]
