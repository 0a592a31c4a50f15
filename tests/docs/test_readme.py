"""The example in the README, with models that play a script in place of the real ones."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet.testing import Harness, ScriptedModel, ToolCall
from tests.docs.pages import ROOT, Block, Page

README = Page(file=ROOT / "README.md")
MOST_LINES = 25


def example() -> Block:
    return next(block for block in README.blocks() if block.title == "app.py")


def test_the_example_is_short() -> None:
    assert len(example().code.splitlines()) <= MOST_LINES


async def test_the_assistant_of_the_example_answers_with_the_help_of_researchers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "readme_app.py").write_text(example().code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    app: Any = importlib.import_module("readme_app")
    monkeypatch.delitem(sys.modules, "readme_app")
    app.Researcher.model = ScriptedModel.by_rule(lambda messages, tools: "over UDP")
    app.Assistant.model = ScriptedModel(
        [
            [ToolCall("research", {"input": "What is QUIC?"}), ToolCall("research")],
            "QUIC runs over UDP.",
        ]
    )
    async with Harness(
        agents=[app.Assistant], sub_agents=[app.Researcher], data_dir=tmp_path / "data"
    ) as harness:
        assistant: Any = await harness.agent(app.Assistant, "ada")
        result = await assistant.save_messages("QUIC?")
        runs = assistant.list_agent_tool_runs()

    assert result.status == "completed"
    assert ramet.text_of(result.message) == "QUIC runs over UDP."
    assert [(run.agent_type, run.status, run.display) for run in runs] == [
        ("Researcher", "completed", {"name": "Researcher", "icon": "🔎"})
    ]


def test_the_picture_of_the_page_is_there() -> None:
    assert "docs/images/demo.png" in set(README.links())
    picture = (ROOT / "docs/images/demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
