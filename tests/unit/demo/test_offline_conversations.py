"""Questions that the offline model has not seen, over real tools: what it does and what it says."""

import re
from pathlib import Path

import pytest

from ramet.core.json import JsonValue, dumps
from tests.unit.demo.rig import (
    FAILURE,
    Conversation,
    assistant_tools,
    planner_tools,
    researcher_tools,
    write_project,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path / "kettle")


@pytest.mark.parametrize(
    ("question", "steps"),
    [
        ("What is a metaclass?", [["research"]]),
        ("How are default argument values evaluated?", [["research"]]),
        ("What is the difference between break and continue?", [["compare"]]),
        ("sets vs frozensets", [["compare"]]),
        ("Should I use a lambda or a def?", [["compare"]]),
        ("Explain decorators, generators and context managers", [["research"] * 3]),
        ("What are slices and subscriptions?", [["research"] * 2]),
        ("Compare strings, bytes and lists", [["research"] * 3]),
        ("What does this folder contain?", [["plan"]]),
        ("How do I add a timer to the project?", [["plan"]]),
        ("What is a coroutine? Also compare lists with tuples.", [["research", "compare"]]),
        ("Explain closures and plan how to use one in this project", [["research", "plan"]]),
        ("Who won the world cup?", [["research"]]),
        ("good morning", []),
        ("thanks a lot!", []),
    ],
)
async def test_the_assistant_sends_for(root: Path, question: str, steps: list[list[str]]) -> None:
    conversation = Conversation(assistant_tools(root))
    answer = await conversation.ask(question)
    assert conversation.steps == steps
    assert len(answer) > 60
    assert all(len(reason) > 20 for reason in conversation.reasons)


@pytest.mark.parametrize(
    ("question", "searches", "reads"),
    [
        ("What is a generator?", [1], 3),
        ("How do decorators work?", [1], 3),
        ("What does nonlocal do?", [1], 1),
        ("What's the walrus operator?", [1, 1], 3),
        ("closures", [1, 2], 1),
        ("what happens if an exception is raised in a finally block", [1], 3),
        ("What's the weather in Paris?", [1, 1], 0),
        ("teapots", [1, 1], 0),
        ("inheritance", [1], 3),
    ],
)
async def test_the_researcher_searches_and_reads(
    question: str, searches: list[int], reads: int
) -> None:
    conversation = Conversation(researcher_tools())
    await conversation.ask(question)
    assert conversation.steps == [
        *(["search"] * count for count in searches),
        *([["read"] * reads] if reads else []),
    ]


async def test_when_nothing_is_found_it_searches_in_fewer_words_and_then_says_so() -> None:
    conversation = Conversation(researcher_tools())
    answer = await conversation.ask("What's the weather in Paris?")
    assert conversation.arguments("search") == [{"query": "weather paris"}, {"query": "weather"}]
    assert answer.startswith("I found nothing about “What's the weather in Paris”")
    assert "I searched for “weather paris”, “weather”." in answer
    assert "That found nothing that fits" in conversation.reasons[1]


async def test_a_plan_for_something_else_is_answered_with_what_the_sources_are_about() -> None:
    answer = await Conversation(assistant_tools(Path())).ask("Plan a trip to Rome")
    assert answer.startswith("I found nothing about “Plan a trip to Rome”")
    assert "other subjects are not in it" in answer


async def test_when_the_words_are_not_the_references_it_searches_for_what_it_is_also_called() -> (
    None
):
    conversation = Conversation(researcher_tools())
    answer = await conversation.ask("What's the walrus operator?")
    assert conversation.arguments("search")[1] == {"query": '"assignment expression"'}
    assert "assignment expression" in answer


@pytest.mark.parametrize(
    "question",
    [
        "What is a generator?",
        "explain the with statement",
        "How does attribute lookup work?",
        "list comprehension",
        "What is pattern matching?",
        "garbage collection",
        "How do I make a class callable?",
        "async for",
    ],
)
async def test_a_researchers_answer_quotes_only_what_it_read(question: str) -> None:
    conversation = Conversation(researcher_tools())
    answer = await conversation.ask(question)
    read = " ".join(collapsed(text) for text in texts_of(conversation.returned))
    lead, *rest = answer.split("\n\n")
    assert lead == f"The language reference on “{question.rstrip('?')}”:"
    assert count_quoted(rest, read) >= 1


async def test_the_assistants_answer_holds_only_what_its_children_said() -> None:
    conversation = Conversation(assistant_tools(Path()))
    answer = await conversation.ask("What is the difference between lists and tuples?")
    said = " ".join(collapsed(unquoted(text)) for text in texts_of(conversation.returned))
    lead, *rest = answer.split("\n\n")
    assert lead == "Both questions were answered: **lists**, **tuples**."
    assert [block for block in rest if block.startswith("### ")] == [
        "### lists and tuples together",
        "### lists",
        "### tuples",
    ]
    assert count_quoted([b for b in rest if not b.startswith("### ")], said) >= 4
    assert answer.count("**Sources**") == 1


async def test_a_follow_up_is_asked_with_the_topic_before() -> None:
    conversation = Conversation(assistant_tools(Path()))
    await conversation.ask("What is a metaclass?")
    await conversation.ask("And when do I need it?")
    assert conversation.arguments("research") == [{"query": "And when do I need it (metaclass)"}]


async def test_an_aspect_given_by_the_parent_counts_when_sentences_are_chosen() -> None:
    answer = await Conversation(researcher_tools()).ask(
        dumps({"query": "sequence types", "compared_with": "mapping"})
    )
    assert answer.startswith("The language reference on “sequence types”:")


async def test_when_one_topic_of_three_fails_the_others_are_told(root: Path) -> None:
    real = assistant_tools(root)["research"]

    async def research(query: str) -> JsonValue:
        """Fail for one."""
        if query == "generators":
            return FAILURE
        outcome = real(query=query)
        assert not isinstance(outcome, str | dict | list | int | float | None)
        return await outcome

    conversation = Conversation({**assistant_tools(root), "research": research})
    answer = await conversation.ask("Explain decorators, generators and lambdas")
    assert "2 of 3 questions were answered: **decorators**, **lambdas**." in answer
    assert "**Not answered:** “generators” failed — the disk is on fire" in answer


async def test_an_overview_reads_what_introduces_the_project(root: Path) -> None:
    conversation = Conversation(planner_tools(root))
    answer = await conversation.ask("What is in this folder?")
    assert conversation.steps == [["list_files"], ["read_file", "read_file"]]
    assert "The folder **kettle** has 6 files, mostly Python (3)" in answer
    assert "> Kettle boils water and says when." in answer
    assert "pip install kettle" not in answer


async def test_a_question_where_something_is_is_answered_with_its_lines(root: Path) -> None:
    conversation = Conversation(planner_tools(root))
    answer = await conversation.ask("Where is Boiler defined in this project?")
    assert conversation.steps == [["list_files", "search_files"], ["read_file"] * 3]
    assert "`src/kettle/boiler.py` defines it in line 4:\n\n```\nclass Boiler:" in answer
    assert "`src/kettle/whistle.py`" in answer


async def test_a_change_becomes_steps_over_the_files_that_are_there(root: Path) -> None:
    conversation = Conversation(planner_tools(root))
    answer = await conversation.ask(dumps({"goal": "Rename the boiler in this project"}))
    steps = re.findall(r"^\d+\. (.+)$", answer, re.MULTILINE)
    assert steps == [
        "Start in `src/kettle/boiler.py`, line 4 (`class Boiler:`).",
        "Rename it there first, so that every use that is left fails loudly.",
        "Follow it through what also mentions it: `src/kettle/whistle.py` (lines 1, 4, 5).",
        "Bring the tests along: `tests/test_boiler.py` (lines 1, 5).",
        "Run the checks that come with the project (`scripts/test`).",
    ]


async def test_a_goal_that_no_file_mentions_is_searched_for_again_and_said_to_be_new(
    root: Path,
) -> None:
    conversation = Conversation(planner_tools(root))
    answer = await conversation.ask("Plan to add logging_levels to the project")
    assert conversation.steps[1] == ["search_files"]
    assert conversation.arguments("search_files")[1] == {"words": "logging levels"}
    assert "I found nothing about that yet" in answer


async def test_a_file_that_the_goal_names_is_read_first(root: Path) -> None:
    conversation = Conversation(planner_tools(root))
    await conversation.ask("Plan how to split whistle.py")
    assert conversation.arguments("read_file")[0]["path"] == "src/kettle/whistle.py"


async def test_a_file_that_could_not_be_read_is_named_in_the_plan(root: Path) -> None:
    tools = {**planner_tools(root), "read_file": lambda path, start_line=1: FAILURE}
    answer = await Conversation(tools).ask("Rename the boiler in this project")
    assert "**Failed:** `read_file` of `src/kettle/boiler.py` — the disk is on fire" in answer


def texts_of(returned: list[JsonValue]) -> list[str]:
    """Every text that tools gave back."""
    texts: list[str] = []
    pending = list(returned)
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return texts


def unquoted(text: str) -> str:
    """A text without the marks of a block quote."""
    return re.sub(r"^> ?", "", text, flags=re.MULTILINE)


def collapsed(text: str) -> str:
    """A text without fences, with its line ends and runs of spaces as one space."""
    return " ".join(text.replace("```", " ").split())


def count_quoted(blocks: list[str], read: str) -> int:
    """Check that each block is a source list or a quote of what was read; count the quotes."""
    quotes = 0
    for block in blocks:
        if block == "**Sources**" or block.startswith("- *"):
            continue
        assert block.startswith("> "), block
        for piece in re.split(r" … |^> ?— \*.*$|^>$|^> ```$", block, flags=re.MULTILINE):
            plain = collapsed(unquoted(piece))
            assert plain in read, plain
        quotes += 1
    return quotes
