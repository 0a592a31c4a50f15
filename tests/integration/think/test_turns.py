"""Whole turns of a `Think` in a host: history, restarts, failures, cancellation."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage, ThinkingPart, ToolReturnPart, UserPromptPart

import ramet
from ramet.core.current import current_agent
from ramet.protocol.messages import text_of
from ramet.testing import Harness
from ramet.testing.scripted_model import Gate, Reasoning, ScriptedError, ScriptedModel, ToolCall
from tests.integration.think.stage import Assistant, Chat, Researcher, connected, harness


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Harness]:
    async with harness(tmp_path) as running:
        yield running


@pytest.fixture
async def chat(host: Harness) -> Chat:
    return await connected(host)


@pytest.fixture(autouse=True)
def plain_tools() -> Iterator[None]:
    Assistant.more_tools = ()
    yield
    Assistant.more_tools = ()


def play(*answers: object) -> ScriptedModel:
    """Let assistants answer so."""
    Assistant.script = ScriptedModel(answers)  # type: ignore[arg-type] # checked when it is played
    return Assistant.script


def prompts(messages: list[ModelMessage]) -> list[object]:
    return [
        part.content
        for message in messages
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]


async def test_a_turn_begins_with_the_servers_message_id(chat: Chat) -> None:
    play("hello there")
    request = await chat.ask("hi")
    first, second = chat.chunks(request)[:2]
    assert first["type"] == "start"
    assert str(first["messageId"]).startswith("asst_")
    assert second == {"type": "start-step"}
    assert chat.said == "hello there"
    assert chat.end(request)["outcome"] == "completed"


@pytest.mark.behaviour("D5")
async def test_the_model_knows_the_turns_before_with_its_own_reasoning(chat: Chat) -> None:
    model = play([Reasoning("hm"), "first"], "second")
    await chat.ask("one")
    await chat.ask("two")
    told = model.requests[1].messages
    assert prompts(told) == ["one", "two"]
    assert [part.content for part in told[1].parts if isinstance(part, ThinkingPart)] == ["hm"]
    assert model.requests[1].instructions == "Be brief."


@pytest.mark.behaviour("D5")
async def test_the_history_survives_a_crash(host: Harness) -> None:
    async def look() -> str:
        return "seen"

    Assistant.more_tools = [look]
    model = play([Reasoning("hm"), ToolCall("look")], "I saw it", "as I said")
    before = await connected(host)
    await before.ask("look!")
    await host.crash()
    await host.restart()
    after = await connected(host)
    after.asked = 1
    await after.ask("again?")
    assert after.said == "as I said"
    told = model.requests[2].messages
    kinds = [part.part_kind for message in told for part in message.parts]
    assert kinds == ["user-prompt", "thinking", "tool-call", "tool-return", "text", "user-prompt"]


async def test_an_error_of_the_model_ends_the_turn_with_its_text_and_keeps_the_partial(
    chat: Chat,
) -> None:
    model = play(["partial ", ScriptedError("scripted failure")], "better")
    request = await chat.ask("go")
    assert chat.said == "partial "
    end = chat.end(request)
    assert (end["outcome"], end["body"], end["error"]) == ("error", "scripted failure", True)
    await chat.ask("again")
    assert [part.content for part in model.requests[1].messages[1].parts] == ["partial "]  # type: ignore[union-attr]


async def test_a_cancelled_turn_keeps_its_partial_and_the_model_is_told_of_it(chat: Chat) -> None:
    gate = Gate()
    model = play(["so far", gate, "never"], "next")
    request = await chat.ask("go")
    assert gate.waiting == 1
    await chat.cancel(request)
    assert gate.waiting == 0
    assert chat.said == "so far"
    assert chat.end(request)["outcome"] == "aborted"
    await chat.ask("more")
    assert [part.content for part in model.requests[1].messages[1].parts] == ["so far"]  # type: ignore[union-attr]


async def test_tools_see_their_agent_and_the_call(chat: Chat) -> None:
    def where() -> str:
        agent = current_agent()
        assert isinstance(agent, Assistant)
        return agent.name

    Assistant.more_tools = [where]
    play(ToolCall("where"), "there")
    await chat.ask("go")
    assert chat.tool_parts()[0]["output"] == "a"


@pytest.mark.behaviour("D8")
async def test_a_provider_that_repeats_its_call_ids_gets_new_ones_on_the_wire(
    host: Harness,
) -> None:
    async def look(at: int) -> int:
        return at

    Assistant.more_tools = [look]
    model = play(
        ToolCall("look", {"at": 1}, id="call_0"),
        "one",
        ToolCall("look", {"at": 2}, id="call_0"),
        "two",
        "three",
    )
    chat = await connected(host)
    await chat.ask("1")
    assert chat.tool_parts()[0]["toolCallId"] == "call_0"
    await host.crash()
    await host.restart()
    chat = await connected(host)
    chat.asked = 1
    await chat.ask("2")
    assert str(chat.tool_parts()[0]["toolCallId"]).startswith("call_0-")
    await chat.ask("3")
    ids = [
        part.tool_call_id
        for message in model.requests[4].messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert ids == ["call_0", "call_0"]


async def test_without_a_model_the_turn_says_what_to_do(host: Harness, chat: Chat) -> None:
    Assistant.script = None  # type: ignore[assignment] # as a user who forgot it
    request = await chat.ask("hi")
    assert (
        chat.end(request)["body"] == "Assistant has no model: set `model` or override `get_model`"
    )


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("openai:gpt-5", "The model 'openai:gpt-5' needs the environment variable OPENAI_API_KEY"),
        ("anthropic:claude", "needs the environment variable ANTHROPIC_API_KEY to be set"),
        (
            "groq:llama",
            "The model 'groq:llama' cannot be used: its package is not installed. "
            "Install it with: pip install 'pydantic-ai-slim[groq]'",
        ),
        ("nonsense", "The model 'nonsense' is unknown: write it as 'provider:name'"),
        (
            "opnai:gpt-5",
            "The model 'opnai:gpt-5' is unknown, for there is no provider 'opnai'. "
            "Did you mean 'openai:gpt-5'?",
        ),
        ("zzzzzz:gpt-5", "is unknown, for there is no provider 'zzzzzz'"),
    ],
)
async def test_a_model_that_cannot_be_used_says_what_to_do(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, model: str, sentence: str
) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    Assistant.script = model  # type: ignore[assignment] # a name is a model too
    request = await chat.ask("hi")
    assert sentence in str(chat.end(request)["body"])


async def test_a_cleared_chat_is_forgotten_on_disk_and_by_the_model(
    host: Harness, chat: Chat
) -> None:
    model = play("first", "second")
    await chat.ask("one")
    await chat.client.send({"type": "cf_agent_chat_clear"})
    assert not host.rows(Assistant, "a", "select * from cf_think_steps where kind = 'response'")
    chat.client.frames.clear()
    await chat.ask("two")
    assert prompts(model.requests[1].messages) == ["two"]


async def test_five_researchers_of_one_step_run_at_once_and_a_cancel_reaches_all(
    host: Harness, chat: Chat
) -> None:
    gate = Gate()
    Researcher.rule = ScriptedModel.by_rule(lambda messages, tools: ["found", gate, "more"])
    play([ToolCall("research", {"topic": topic}) for topic in "abcde"], "never")
    request = await chat.ask("go")
    assert gate.waiting == 5
    await chat.cancel(request)
    await host.settle()
    assert gate.waiting == 0
    rows = host.rows(Assistant, "a", "select run_id, status from cf_agent_tool_runs")
    assert {str(row["run_id"]) for row in rows} == {f"agent-tool:call_{n}" for n in range(1, 6)}
    assert {row["status"] for row in rows} == {"aborted"}
    assert chat.end(request)["outcome"] == "aborted"


@pytest.mark.behaviour("AT-164", "AT-012")
async def test_a_researchers_summary_is_the_tools_output(host: Harness, chat: Chat) -> None:
    Researcher.rule = ScriptedModel.by_rule(lambda messages, tools: "all about it")
    model = play(ToolCall("research", {"topic": "bees"}), "Report")
    await chat.ask("go")
    assert chat.tool_parts()[0]["output"] == "all about it"
    assert chat.said == "Report"
    child = await host.connect(Assistant, "a", sub=[(Researcher, "agent-tool:call_1")])
    asked = Chat(child).transcript
    assert [text_of(message) for message in asked] == ['{\n  "topic": "bees"\n}', "all about it"]
    (row,) = host.rows(Assistant, "a", "select * from cf_agent_tool_runs")
    assert row["parent_tool_call_id"] == "call_1"
    assert row["display_metadata"] == '{"name":"Researcher","icon":"R"}'
    assert len(model.requests) == 2


async def test_a_child_that_was_not_given_to_the_app_is_an_error_in_the_log(
    chat: Chat, caplog: pytest.LogCaptureFixture
) -> None:
    class Stranger(ramet.Think):
        """A child that nobody has registered."""

    Assistant.more_tools = [ramet.agent_tool(Stranger, description="Ask a stranger.")]
    try:
        play(ToolCall("stranger", {"input": "hi"}), "sorry")
        await chat.ask("go")
    finally:
        Assistant.more_tools = ()
    (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert record.name == "ramet.think"
    assert record.getMessage() == (
        "The tool 'stranger' cannot be called: The agent class 'Stranger' is not registered: "
        "give it to App(agents=[…]) or App(sub_agents=[…])"
    )


@pytest.mark.behaviour("AT-169", "AT-172", "AT-173")
async def test_a_researcher_that_fails_is_told_as_a_failure_and_the_others_go_on(
    chat: Chat,
) -> None:
    def by_topic(messages: list[ModelMessage], tools: object) -> object:
        return ScriptedError("no luck") if "bad" in str(prompts(messages)[-1]) else "found"

    Researcher.rule = ScriptedModel.by_rule(by_topic)  # type: ignore[arg-type] # by its name
    play([ToolCall("research", {"topic": topic}) for topic in ("bad", "good")], "half")
    await chat.ask("go")
    assert [part["output"] for part in chat.tool_parts()] == [
        {"ok": False, "status": "error", "error": "no luck", "retryable": False},
        "found",
    ]
    assert chat.said == "half"


@pytest.mark.behaviour("D5")
async def test_a_tool_that_ran_at_the_crash_is_told_as_interrupted_and_the_others_as_they_ended(
    host: Harness,
) -> None:
    gate = Gate()

    async def slow() -> str:
        await gate.wait()
        return "never"

    async def quick() -> str:
        return "quick"

    Assistant.more_tools = [slow, quick]
    model = play([ToolCall("slow"), ToolCall("quick")], "on we go")
    before = await connected(host)
    await before.ask("go")
    assert gate.waiting == 1
    await host.crash()
    await host.restart()
    after = await connected(host)
    after.asked = 1
    await after.ask("and?")
    assert after.said == "on we go"
    told = [
        (part.tool_name, part.outcome, part.content)
        for part in model.requests[1].messages[2].parts
        if isinstance(part, ToolReturnPart)
    ]
    assert sorted(told) == [
        ("quick", "success", "quick"),
        ("slow", "interrupted", "The tool call was interrupted before a result was produced."),
    ]


async def test_a_hook_that_raises_ends_the_turn_before_the_model_is_asked(chat: Chat) -> None:
    model = play()
    Assistant.refuses = "no credit left"
    try:
        request = await chat.ask("hi")
    finally:
        Assistant.refuses = ""
    end = chat.end(request)
    assert (end["outcome"], end["body"]) == ("error", "no credit left")
    assert model.requests == []


async def test_on_chunk_sees_each_chunk_of_the_answer(host: Harness, chat: Chat) -> None:
    play("two words")
    request = await chat.ask("hi")
    agent = await host.agent(Assistant, "a")
    assert agent.seen == chat.chunks(request)[1:]


async def test_half_an_emoji_from_the_model_or_a_tool_is_replaced(
    host: Harness, chat: Chat
) -> None:
    def cut(how: str) -> object:
        """Cut a text."""
        if how == "raise":
            raise ValueError("cut \ud83d")
        return "cut \ud83d" if how == "text" else {"text": "cut \ud83d"}

    Assistant.more_tools = [cut]
    model = play(
        [ToolCall("cut", {"how": "text"})],
        [ToolCall("cut", {"how": "object"})],
        [ToolCall("cut", {"how": "raise"})],
        "said \ud83d",
        "again",
    )
    request = await chat.ask("hi")
    assert chat.end(request)["outcome"] == "completed"
    assert chat.said == "said \N{REPLACEMENT CHARACTER}"
    outcomes = [part.get("output", part.get("errorText")) for part in chat.tool_parts()]
    whole = "cut \N{REPLACEMENT CHARACTER}"
    assert outcomes[:2] == [whole, {"text": whole}]
    assert whole in str(outcomes[2])
    await chat.ask("and?")
    assert chat.said == "again"
    assert str(model.requests[-1].messages).isascii() or "\ud83d" not in str(
        model.requests[-1].messages
    )
