"""Drives the offline model over real tools, as an agent would, and writes down what it did."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from typing import TypeAlias

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from ramet.core.json import JsonValue, dumps, to_json
from ramet.demo.corpus import Corpus, language_reference
from ramet.demo.folder import Folder
from ramet.demo.offline_model import OfflineModel

Function: TypeAlias = "Callable[..., JsonValue | Awaitable[JsonValue]]"
Tools = Mapping[str, Function]

FAILURE: JsonValue = {"ok": False, "status": "error", "error": "the disk is on fire"}


async def no_sleep(seconds: float) -> None:
    """Tests do not wait."""


@dataclass
class Conversation:
    """What was said and done; `ask` goes on with it."""

    tools: Tools
    streamed: bool = False
    messages: list[ModelMessage] = field(default_factory=list)
    steps: list[list[str]] = field(default_factory=list)
    """The names of the tools of each step of the last question."""
    calls: list[ToolCallPart] = field(default_factory=list)
    returned: list[JsonValue] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    async def ask(self, question: str) -> str:
        """Put a question, carry out the calls, and return the answer."""
        self.messages.append(ModelRequest(parts=[UserPromptPart(question)]))
        self.steps, self.calls, self.returned, self.reasons = [], [], [], []
        while len(self.steps) < 10:
            response = await self._request()
            self.messages.append(response)
            self.reasons += [p.content for p in response.parts if isinstance(p, ThinkingPart)]
            calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
            if not calls:
                return "".join(p.content for p in response.parts if isinstance(p, TextPart))
            self.steps.append([call.tool_name for call in calls])
            self.calls += calls
            self.messages.append(ModelRequest(parts=[await self._carry_out(c) for c in calls]))
        raise AssertionError(f"no answer after ten steps: {self.steps}")

    def arguments(self, tool: str) -> list[dict[str, JsonValue]]:
        """What a tool was called with, in order."""
        return [call.args_as_dict() for call in self.calls if call.tool_name == tool]

    async def _request(self) -> ModelResponse:
        model = OfflineModel(sleep=no_sleep)
        parameters = parameters_for(self.tools)
        if not self.streamed:
            return await model_request(model, self.messages, model_request_parameters=parameters)
        async with model_request_stream(
            model, self.messages, model_request_parameters=parameters
        ) as stream:
            async for _ in stream:
                pass
            return stream.get()

    async def _carry_out(self, call: ToolCallPart) -> ToolReturnPart:
        outcome = self.tools[call.tool_name](**call.args_as_dict())
        content = await outcome if isawaitable(outcome) else outcome
        self.returned.append(content)
        return ToolReturnPart(call.tool_name, content, call.tool_call_id)


def parameters_for(tools: Tools) -> ModelRequestParameters:
    """Tool definitions with the first line of each function's docstring."""
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=name,
                description=function.__doc__,
                parameters_json_schema={"type": "object", "properties": {}},
            )
            for name, function in tools.items()
        ]
    )


def researcher_tools(corpus: Corpus | None = None) -> Tools:
    """The researcher's tools, over the reference that ships with Python unless another is given."""
    corpus = corpus or language_reference()

    def search(query: str) -> JsonValue:
        """Search the language reference."""
        return [passage.hit() for passage in corpus.search(query)]

    def read(id: str) -> JsonValue:
        """Read one passage."""
        return corpus.read(id).page()

    return {"search": search, "read": read}


def planner_tools(root: Path) -> Tools:
    """The planner's tools over a real folder."""
    folder = Folder(root)

    def list_files() -> JsonValue:
        """Describe the folder."""
        return folder.describe().to_json()

    def search_files(words: str) -> JsonValue:
        """Find lines with any of the words."""
        return to_json(folder.search_text(words))

    def read_file(path: str, start_line: int = 1) -> JsonValue:
        """Read some lines of a file."""
        return to_json(folder.read_text(path, start_line))

    return {"list_files": list_files, "search_files": search_files, "read_file": read_file}


def assistant_tools(root: Path) -> Tools:
    """The assistant's tools: each runs a child, an offline model with tools of its own."""

    async def research(query: str) -> JsonValue:
        """Find out about one topic in the language reference.

        More of the description.
        """
        return await Conversation(researcher_tools()).ask(dumps({"query": query}))

    async def plan(goal: str) -> JsonValue:
        """Look at the folder and plan steps towards a goal."""
        return await Conversation(planner_tools(root)).ask(dumps({"goal": goal}))

    async def compare(a: str, b: str) -> JsonValue:
        """Research two things and set them side by side."""
        left = await Conversation(researcher_tools()).ask(dumps({"query": a, "compared_with": b}))
        right = await Conversation(researcher_tools()).ask(dumps({"query": b, "compared_with": a}))
        return {"a": left, "b": right}

    return {"research": research, "plan": plan, "compare": compare}


def write_project(root: Path) -> Path:
    """A small project to plan for."""
    files = {
        "README.md": "# Kettle\n\nKettle boils water and says when.\n\n    pip install kettle\n",
        "pyproject.toml": '[project]\nname = "kettle"\nversion = "1.0"\n',
        "src/kettle/boiler.py": (
            '"""Boils water."""\n\n\nclass Boiler:\n    """Heats until it boils."""\n\n'
            "    def heat(self, degrees: int) -> int:\n        return degrees + 1\n"
        ),
        "src/kettle/whistle.py": (
            "from kettle.boiler import Boiler\n\n\ndef whistle(boiler: Boiler) -> str:\n"
            '    return "fweee" if boiler.heat(99) >= 100 else ""\n'
        ),
        "tests/test_boiler.py": (
            "from kettle.boiler import Boiler\n\n\ndef test_it_heats() -> None:\n"
            "    assert Boiler().heat(1) == 2\n"
        ),
        "scripts/test": "pytest\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
