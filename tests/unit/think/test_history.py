"""Steps on disk, and the history that a model is given out of them and the transcript."""

from pathlib import Path

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from ramet.chat.settling import NOT_FINISHED
from ramet.core.json import JsonObject, JsonValue
from ramet.protocol.messages import user_message
from ramet.protocol.parts import settle_parts
from ramet.protocol.ui_message import UIMessage
from ramet.storage import Database, combined
from ramet.testing.manual_clock import ManualClock
from ramet.think.history import GO_ON, History, model_history
from ramet.think.step_store import THINK_MIGRATIONS, StepStore, TurnKey
from tests.support.databases import open_database

QUESTION = user_message("what?", id="m1")


def opened(path: Path) -> Database:
    return open_database(path / "agent.db", combined(THINK_MIGRATIONS))


@pytest.fixture
def store(tmp_path: Path) -> StepStore:
    return StepStore(opened(tmp_path), ManualClock())


def answer(*parts: JsonObject, message_id: str = "a1") -> UIMessage:
    return {"id": message_id, "role": "assistant", "parts": [*parts]}


def text(said: str) -> JsonObject:
    return {"type": "text", "text": said, "state": "done"}


def call(call_id: str, **more: JsonValue) -> JsonObject:
    return {
        "type": "tool-look",
        "toolCallId": call_id,
        "state": "output-available",
        "input": {"at": "it"},
        **more,
    }


STEP: JsonObject = {"type": "step-start"}
ANSWER = answer(STEP, call("w1", output={"seen": 1}), STEP, text("it is seen"))


def write_two_steps(store: StepStore) -> None:
    """A turn as the loop writes it: thinking and a call under a provider's id, then a text."""
    journal = store.journal(TurnKey(turn_id="t1", message_id="a1"))
    said: list[ModelResponsePart] = [
        ThinkingPart("let me look", signature="signed", provider_name="p"),
        ToolCallPart("look", '{"at":"it"}', "native"),
    ]
    journal.add_response(0, ModelResponse(parts=said, provider_name="p"), ["w1"])
    journal.add_result("w1", ModelRequest(parts=[ToolReturnPart("look", {"seen": 1}, "native")]))
    journal.add_response(1, ModelResponse(parts=[TextPart("it is seen")]), [])


def history(store: StepStore, *messages: UIMessage) -> list[ModelMessage]:
    steps = store.steps_of(str(message["id"]) for message in messages)
    return model_history(messages, steps)


def kinds(messages: list[ModelMessage]) -> list[str]:
    return [" ".join(part.part_kind for part in message.parts) for message in messages]


@pytest.mark.behaviour("D5")
def test_an_answer_is_told_as_the_model_said_it_with_signatures_and_native_ids(
    store: StepStore,
) -> None:
    write_two_steps(store)
    told = history(store, QUESTION, ANSWER, user_message("and then?", id="m2"))
    assert kinds(told) == [
        "user-prompt",
        "thinking tool-call",
        "tool-return",
        "text",
        "user-prompt",
    ]
    thinking, native_call = told[1].parts
    assert isinstance(thinking, ThinkingPart)
    assert thinking.signature == "signed"
    assert isinstance(native_call, ToolCallPart)
    assert native_call.tool_call_id == "native"


@pytest.mark.behaviour("D5")
def test_steps_are_read_again_after_a_restart(tmp_path: Path) -> None:
    first = opened(tmp_path)
    write_two_steps(StepStore(first, ManualClock()))
    first.close()
    second = opened(tmp_path)
    store = StepStore(second, ManualClock())
    assert kinds(history(store, QUESTION, ANSWER))[1:4] == [
        "thinking tool-call",
        "tool-return",
        "text",
    ]
    assert store.is_used("w1")


@pytest.mark.behaviour("D5")
@pytest.mark.parametrize(
    "changed",
    [
        answer(STEP, call("w1", output={"seen": 1}), STEP, text("it was edited")),
        answer(STEP, call("w1", output={"seen": 2}), STEP, text("it is seen")),
        answer(STEP, text("it is seen")),
    ],
    ids=["text", "output", "call removed"],
)
def test_a_changed_answer_is_told_as_its_parts_say(store: StepStore, changed: UIMessage) -> None:
    write_two_steps(store)
    told = history(store, QUESTION, changed, user_message("and?", id="m2"))
    assert not [part for message in told for part in message.parts if part.part_kind == "thinking"]
    assert kinds(told)[-1] == "user-prompt"


@pytest.mark.parametrize(
    ("part", "noted"),
    [
        (answer(STEP, call("w1", output="it…"), STEP, text("it is seen")), "compactedToolOutputs"),
        (answer(STEP, call("w1", output={"seen": 1}), STEP, text("it…")), "compactedTextParts"),
    ],
)
def test_an_answer_that_was_shortened_to_fit_on_disk_is_told_whole(
    store: StepStore, part: UIMessage, noted: str
) -> None:
    write_two_steps(store)
    names: list[JsonValue] = ["w1"] if noted == "compactedToolOutputs" else [3]
    told = history(store, QUESTION, {**part, "metadata": {noted: names}})
    assert kinds(told)[1] == "thinking tool-call"


@pytest.mark.behaviour("D5")
def test_a_call_that_never_ended_is_told_as_interrupted(store: StepStore) -> None:
    journal = store.journal(TurnKey(turn_id="t1", message_id="a1"))
    calls = [ToolCallPart("look", {}, "n1"), ToolCallPart("look", {}, "n2")]
    journal.add_response(0, ModelResponse(parts=calls), ["w1", "w2"])
    journal.add_result("w2", ModelRequest(parts=[ToolReturnPart("look", "seen", "n2")]))
    pending: JsonObject = {**call("w1"), "state": "input-available"}
    settled = settle_parts([STEP, pending, call("w2", output="seen")], reason=NOT_FINISHED)
    told = history(store, QUESTION, answer(*settled), user_message("and?", id="m2"))
    returns = [part for part in told[2].parts if isinstance(part, ToolReturnPart)]
    assert {(part.tool_call_id, part.outcome) for part in returns} == {
        ("n1", "interrupted"),
        ("n2", "success"),
    }


def test_results_are_told_in_call_order_whatever_came_first(store: StepStore) -> None:
    journal = store.journal(TurnKey(turn_id="t1", message_id="a1"))
    calls = [ToolCallPart("look", {}, f"n{n}") for n in (1, 2)]
    journal.add_response(0, ModelResponse(parts=calls), ["w1", "w2"])
    for n in (2, 1):
        returned = ToolReturnPart("look", f"seen {n}", f"n{n}")
        journal.add_result(f"w{n}", ModelRequest(parts=[returned, UserPromptPart(f"extra {n}")]))
    seen = [call(f"w{n}", output=f"seen {n}") for n in (1, 2)]
    told = history(store, QUESTION, answer(STEP, *seen))
    contents = [part.content for part in told[2].parts if isinstance(part, ToolReturnPart)]
    assert contents == ["seen 1", "seen 2"]
    assert kinds(told)[2] == "tool-return tool-return user-prompt user-prompt"


def test_an_answer_from_elsewhere_is_told_by_its_parts(store: StepStore) -> None:
    failed: JsonObject = {**call("x2"), "state": "output-error", "errorText": "gone"}
    reasoning: JsonObject = {"type": "reasoning", "text": "hm"}
    foreign = answer(STEP, reasoning, call("x1", output="seen"), failed, STEP, text("so"))
    told = history(store, QUESTION, foreign, user_message("and?", id="m2"))
    assert kinds(told) == [
        "user-prompt",
        "tool-call tool-call",
        "tool-return tool-return",
        "text",
        "user-prompt",
    ]
    outcomes = [part.outcome for part in told[2].parts if isinstance(part, ToolReturnPart)]
    assert outcomes == ["success", "failed"]


def test_a_removed_answer_leaves_the_history_and_the_disk_but_its_ids_stay_taken(
    store: StepStore,
) -> None:
    write_two_steps(store)
    store.keep_only(["m1"].__contains__)
    assert store.steps_of(["a1"]) == {}
    assert store.is_used("w1")


def test_steps_of_answers_that_are_there_are_kept(store: StepStore) -> None:
    write_two_steps(store)
    store.keep_only(["m1", "a1"].__contains__)
    assert len(store.steps_of(["a1"])["a1"]) == 2


def test_steps_are_read_from_disk_once_until_more_are_written(tmp_path: Path) -> None:
    database = opened(tmp_path)
    store = StepStore(database, ManualClock())
    write_two_steps(store)
    first = store.steps_of(["m1", "a1"])
    reads = database.commits
    assert store.steps_of(["m1", "a1"]) == first
    assert database.commits == reads
    journal = store.journal(TurnKey(turn_id="t1", message_id="a1"))
    journal.add_response(2, ModelResponse(parts=[TextPart("more")]), ["w2"])
    assert list(store.steps_of(["a1"])["a1"][2].results.values()) == [None]
    journal.add_result("w2", ModelRequest(parts=[ToolReturnPart("look", 1, "native")]))
    assert list(store.steps_of(["a1"])["a1"][2].results.values()) != [None]


def test_a_message_is_told_anew_only_when_it_was_changed(store: StepStore) -> None:
    write_two_steps(store)
    teller, steps = History(), store.steps_of(["a1"])
    more = user_message("and then?", id="m2")
    first = teller.tell([QUESTION, ANSWER, more], steps)
    assert teller.tell([QUESTION, ANSWER, more], store.steps_of(["a1"]))[1] is first[1]
    edited = answer(STEP, text("something else"))
    assert kinds(teller.tell([QUESTION, edited, more], steps)) == [
        "user-prompt",
        "text",
        "user-prompt",
    ]
    assert kinds(teller.tell([more], {})) == ["user-prompt"]


def test_a_history_that_ends_with_an_answer_asks_to_go_on(store: StepStore) -> None:
    last = history(store, QUESTION, answer(text("half an")))[-1]
    assert [part.content for part in last.parts if isinstance(part, UserPromptPart)] == [GO_ON]


def test_files_of_a_user_are_told_as_content(store: StepStore) -> None:
    files: list[JsonObject] = [
        {"type": "text", "text": "see"},
        {"type": "file", "url": "data:text/plain;base64,aGk=", "mediaType": "text/plain"},
        {"type": "file", "url": "https://example.org/a.png", "mediaType": "image/png"},
        {"type": "file", "url": "data:broken", "mediaType": "text/plain"},
    ]
    (prompt,) = history(store, {"id": "m1", "role": "user", "parts": files})[0].parts
    assert isinstance(prompt, UserPromptPart)
    said, inline, linked = list(prompt.content)
    assert said == "see"
    assert isinstance(inline, BinaryContent)
    assert inline.data == b"hi"
    assert isinstance(linked, ImageUrl)


def test_a_system_message_is_told_as_a_system_prompt(store: StepStore) -> None:
    system: UIMessage = {"id": "s", "role": "system", "parts": [{"type": "text", "text": "Hush."}]}
    assert isinstance(history(store, system, QUESTION)[0].parts[0], SystemPromptPart)
