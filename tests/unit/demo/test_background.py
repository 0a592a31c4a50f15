"""How the assistant is told of runs in the background, and that the rules read it."""

import pytest

import ramet
from ramet.core.json import JsonValue
from ramet.demo.background import Notice, finish_text, milestone_text, read_notice, shown_as
from tests.unit.demo.rig import Conversation, assistant_tools

TITLE = "Research on “generators. All of them”"


def run_called(title: str) -> ramet.RunInfo:
    return ramet.RunInfo(
        run_id="r", agent_type="Researcher", status="running", display=shown_as(title, "🔎")
    )


def ended(status: str, **more: object) -> ramet.RunResult[object]:
    return ramet.RunResult(run_id="r", agent_type="Researcher", status=status, **more)  # type: ignore[arg-type] # each test names fields that fit


@pytest.mark.parametrize(
    ("result", "notice"),
    [
        (
            ended("completed", summary="Much.\n\nAnd more. It has finished."),
            Notice(title=TITLE, found="Much.\n\nAnd more. It has finished."),
        ),
        (ended("completed"), Notice(title=TITLE)),
        (ended("error", error="no\nluck"), Notice(title=TITLE, failure="no luck")),
        (
            ended("interrupted", reason="budget-exceeded", error="internal words"),
            Notice(title=TITLE, failure="it ran out of time"),
        ),
    ],
)
def test_what_is_told_can_be_read(result: ramet.RunResult[object], notice: Notice) -> None:
    assert read_notice(finish_text(run_called(TITLE), result)) == notice


def test_nobody_is_told_of_what_a_person_has_cancelled() -> None:
    assert finish_text(run_called(TITLE), ended("aborted", error="cancelled")) == ""


def test_a_question_is_no_notice() -> None:
    assert read_notice("In the background: research generators") is None
    assert read_notice("What has finished?") is None


def test_a_milestone_is_told_in_its_own_words() -> None:
    milestone = ramet.Milestone(name="first-failure", sequence=0, at=0)
    assert milestone_text(run_called("The tests"), milestone) == (
        "In the background: The tests — first failure"
    )


def test_a_long_title_is_cut() -> None:
    name = shown_as("x" * 200, "🔎")["name"]
    assert isinstance(name, str)
    assert (len(name), name[-1]) == (80, "…")


async def test_the_rules_pass_on_what_came_back_and_know_it_for_no_question() -> None:
    said: list[str] = []

    def research_in_background(query: str) -> JsonValue:
        """Have one topic researched while the conversation goes on."""
        said.append(query)
        return {"started": f"Research on “{query}”", "status": "at work in the background"}

    tools = {**assistant_tools(None), "research_in_background": research_in_background}  # type: ignore[arg-type] # nothing is planned
    conversation = Conversation(tools)
    answer = await conversation.ask("Research generators thoroughly in the background")
    assert said == ["generators"]
    assert answer.startswith("At work in the background: **Research on “generators”**.")

    notice = finish_text(run_called(TITLE), ended("completed", summary="Lazy.\n\n**Sources**"))
    assert await conversation.ask(notice) == f"**{TITLE}** is done.\n\nLazy.\n\n**Sources**"
    assert conversation.steps == []

    await conversation.ask("Research more about them in the background")
    assert "generators" in said[-1]


async def test_what_was_let_go_of_is_named_beside_an_answer() -> None:
    def research_in_background(query: str) -> JsonValue:
        """Have one topic researched while the conversation goes on."""
        return {"started": f"Research on “{query}”", "status": "at work in the background"}

    tools = {**assistant_tools(None), "research_in_background": research_in_background}  # type: ignore[arg-type] # nothing is planned
    conversation = Conversation(tools)
    answer = await conversation.ask(
        "Look into metaclasses in the background. Meanwhile compare lists with tuples."
    )
    assert conversation.steps == [["research_in_background", "compare"]]
    assert "### lists" in answer
    assert "At work in the background: **Research on “metaclasses”**." in answer
