"""A process with a `Think` whose page answers a tool call, until an armed failpoint kills it."""

import asyncio
import multiprocessing
import os
import signal
from pathlib import Path

from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.tools import ToolDefinition

import ramet
from ramet.core import failpoints
from ramet.core.json import JsonObject, dumps
from ramet.protocol.messages import parts_of, text_of, user_message
from ramet.testing import Harness
from ramet.testing.scripted_model import ScriptedModel, ToolCall

_RAN = "RAMET_TEST_RAN"
WEATHER: JsonObject = {"name": "getWeather", "parameters": {"type": "object", "properties": {}}}


def remove(target: str) -> str:
    """Remove something, which a person must approve."""
    file = os.open(os.environ[_RAN], os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    try:
        os.write(file, f"{target}\n".encode())
    finally:
        os.close(file)
    return f"{target} is gone"


class Asking(ramet.Think):
    """Asks its page for the weather, or a person whether it may remove something."""

    def get_tools(self) -> list[object]:
        return [Tool(remove, requires_approval=True)]

    def get_model(self) -> ScriptedModel:
        return ScriptedModel.by_rule(_said)


def _said(messages: list[ModelMessage], tools: list[ToolDefinition]) -> str | ToolCall:
    results = [
        str(part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    if results:
        return f"It is so: {results[-1]}"
    if any(tool.name == "getWeather" for tool in tools):
        return ToolCall("getWeather", {}, "c1")
    return ToolCall("remove", {"target": "it"}, "c1")


def harness(folder: Path, *, seed: int = 1) -> Harness:
    """A host; another process has another seed, since ids are not made twice."""
    os.environ[_RAN] = str(folder / "ran")
    return Harness(agents=[Asking], data_dir=folder / "data", seed=seed)


def ran(folder: Path) -> list[str]:
    """What was removed, over all processes."""
    file = folder / "ran"
    return file.read_text().split() if file.exists() else []


def said(agent: Asking) -> str:
    """The text of the answer."""
    return text_of(agent.messages[-1])


def states(agent: Asking) -> list[object]:
    """The states of the answer's tool calls."""
    return [part["state"] for part in parts_of(agent.messages[-1]) if "toolCallId" in part]


async def play(folder: Path, scene: str) -> None:
    """Let the page answer the call that an answer has stopped for."""
    async with harness(folder) as host:
        client = await host.connect(Asking, "a")
        body: dict[str, object] = {"messages": [user_message("Well?", id="u1")]}
        if scene == "result":
            body["clientTools"] = [WEATHER]
        init: JsonObject = {"method": "POST", "body": dumps(body)}
        await client.send({"type": "cf_agent_use_chat_request", "id": "r1", "init": init})
        frame: JsonObject = {"toolCallId": "c1", "autoContinue": True}
        if scene == "result":
            frame |= {"type": "cf_agent_tool_result", "toolName": "getWeather", "output": "sunny"}
        else:
            frame |= {"type": "cf_agent_tool_approval", "approved": True}
        await client.send(frame)
        await host.advance(1)


def play_until_killed(folder: Path, scene: str, failpoint: str) -> None:
    """Play in a process of its own, which the failpoint `name` or `name:pass` kills."""
    process = _PROCESSES.Process(target=_play_armed, args=(folder, scene, failpoint))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"{failpoint} was not reached"


def _play_armed(folder: Path, scene: str, failpoint: str) -> None:
    name, _, passes = failpoint.partition(":")
    failpoints._ARMED, failpoints._passes_left = name, int(passes or 1)
    asyncio.run(play(folder, scene))


# Each process is forked from one that has its imports done, and no threads.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])
