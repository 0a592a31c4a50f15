"""What users write with messages, as they write it: mypy checks this file as it would check theirs.

No message is narrowed, cast or annotated by hand here. A line with an `ignore` is one that a type
checker has to refuse; mypy says so when it no longer does.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, assert_type

import pytest

import ramet
from ramet.client import AgentClient, AgentToolEvents, ChatOutcome
from ramet.errors import UnknownModelResult
from ramet.testing import Harness, ScriptedModel, ToolCall


class Echo(ramet.AIChatAgent[None]):
    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        assert_type(turn.messages, Sequence[ramet.UIMessage])
        assert_type(turn.messages[-1]["role"] == "user", bool)
        yield "You said: " + turn.messages[-1]["parts"][0]["text"]

    def on_chat_response(self, result: ramet.ChatResult) -> None:
        self.heard = ramet.text_of(result.message)

    def on_chat_error(self, error: BaseException, ctx: ramet.ChatErrorContext) -> str:
        return f"{error}, after {ramet.text_of(ctx.message)!r}"

    def on_chat_recovery(self, ctx: ramet.ChatRecoveryContext) -> ramet.ChatRecoveryDecision:
        newest = ctx.messages[-1]["id"]
        begun = ctx.partial is not None and bool(ctx.partial["parts"])
        return ramet.ChatRecoveryDecision(proceed=begun or newest == "q1")

    def format_agent_tool_input(self, input: object, run: ramet.ChildRun) -> ramet.UIMessage:
        return ramet.user_message(f"Please: {input}", metadata={"run": run.run_id})

    def get_agent_tool_output(self, run_id: str) -> object:
        run = self.agent_tool_child_run(run_id)
        return {"words": len(run.messages[-1]["parts"][0]["text"].split())}


class Desk(ramet.Think[None]):
    def get_tools(self) -> list[object]:
        return [self.look_up]

    async def look_up(self, title: str) -> str:
        """Find a book."""
        return f"{title} is on shelf 3"


def roles(messages: Sequence[ramet.UIMessage]) -> list[str]:
    return [message["role"] for message in messages]


def kinds(message: ramet.UIMessage) -> list[str]:
    return [part["type"] for part in message["parts"]]


async def test_messages_are_read_by_their_keys(tmp_path: Path) -> None:
    async with Harness(agents=[Echo], data_dir=tmp_path) as harness:
        echo = await harness.agent(Echo, "e")
        result = await echo.save_messages("hello")
        assert_type(result, ramet.TurnResult)
        assert_type(result.message, ramet.UIMessage | None)
        assert_type(echo.messages, list[ramet.UIMessage])
        assert_type(ramet.text_of(result.message), str)

        text: str = echo.messages[-1]["parts"][0]["text"]
        assert text == ramet.text_of(result.message) == "You said: hello"
        assert roles(echo.messages) == ["user", "assistant"]
        assert [kinds(message) for message in echo.messages] == [["text"], ["text"]]
        await harness.settle()
        assert echo.heard == text


async def test_messages_are_written_as_dicts_and_made_of_texts(tmp_path: Path) -> None:
    first: ramet.UIMessage = {
        "id": "q1",
        "role": "user",
        "parts": [{"type": "text", "text": "Where is "}, {"type": "text", "text": "Emma?"}],
    }
    second = ramet.user_message("Well?", metadata={"page": 1})
    assert_type(second, ramet.UIMessage)
    Desk.model = ScriptedModel(
        [ToolCall("look_up", {"title": "Emma"}), "On shelf 3.", "Shelf 3.", "Noted."]
    )
    async with Harness(agents=[Desk, Echo], data_dir=tmp_path) as harness:
        desk = await harness.agent(Desk, "d")
        answer = await desk.save_messages([first])
        [call] = ramet.tool_calls(answer.message)
        assert_type(call, dict[str, Any])
        assert (call["input"]["title"], call["output"]) == ("Emma", "Emma is on shelf 3")

        assert (await desk.run_turn([first, second])).status == "completed"
        desk.add_messages([{"id": "n1", "role": "assistant", "parts": []}])
        submitted = await desk.submit_messages(second, idempotency_key="k")
        assert submitted.accepted

        echo = await harness.agent(Echo, "e")
        await echo.persist_messages([first, second])
        assert [message.get("metadata") for message in echo.messages] == [None, {"page": 1}]


async def test_a_run_reads_its_own_messages(tmp_path: Path) -> None:
    class Boss(ramet.Agent[None]):
        async def ask(self) -> ramet.RunResult[dict[str, int]]:
            return await self.run_agent_tool(Echo, input="work", output=dict[str, int])

    async with Harness(agents=[Boss], sub_agents=[Echo], data_dir=tmp_path) as harness:
        result = await (await harness.agent(Boss, "b")).ask()

    assert result.output == {"words": 4}


async def test_a_test_client_shows_messages(tmp_path: Path) -> None:
    async with Harness(agents=[Echo], data_dir=tmp_path) as harness:
        await (await harness.agent(Echo, "e")).save_messages("hello")
        client = await harness.connect(Echo, "e")
        [greeting] = client.of_type("cf_agent_chat_messages")

    assert greeting["messages"][-1]["parts"][0]["text"] == "You said: hello"


async def through_the_client(client: AgentClient) -> ChatOutcome:
    """What a program does with an answer and its runs; it only has to type-check."""
    assert_type(client.messages, Sequence[ramet.UIMessage])
    reply = await client.chat([*client.messages, ramet.user_message("And then?")])
    assert_type(reply.message, ramet.UIMessage)
    pieces = [chunk["delta"].strip() async for chunk in reply if chunk["type"] == "text-delta"]
    outcome = await reply.result()
    assert_type(outcome.message, ramet.UIMessage | None)
    pieces += [str(await client.call("add", 1, 2) + client.state["count"])]
    runs = AgentToolEvents(client).runs_by_id.values()
    pieces += [run.parts[-1]["text"].strip() for run in runs]
    return outcome


async def test_a_turn_is_followed_by_the_keys_of_its_chunks(tmp_path: Path) -> None:
    Desk.model = ScriptedModel(["On shelf 3."])
    heard: list[str] = []

    def on_event(chunk: dict[str, Any]) -> None:
        if chunk["type"] == "text-delta":
            heard.append(chunk["delta"])

    async with Harness(agents=[Desk], data_dir=tmp_path) as harness:
        desk = await harness.agent(Desk, "d")
        await desk.chat("Where?", ramet.TurnCallback(on_event=on_event))

    assert "".join(heard) == "On shelf 3."


async def test_a_message_that_lacks_something_is_refused_by_mypy_and_at_run_time(
    tmp_path: Path,
) -> None:
    misspelt: ramet.UIMessage = {"id": "q", "role": "user", "prats": []}  # type: ignore[typeddict-item, typeddict-unknown-key] # no parts
    async with Harness(agents=[Echo], data_dir=tmp_path) as harness:
        echo = await harness.agent(Echo, "e")
        with pytest.raises(UnknownModelResult, match="A message needs an id, a role and parts"):
            await echo.save_messages(misspelt)
        with pytest.raises(UnknownModelResult, match="A message needs an id, a role and parts"):
            await echo.save_messages([{"id": "q", "role": "user"}])  # type: ignore[typeddict-item] # no parts
        assert echo.messages == []
