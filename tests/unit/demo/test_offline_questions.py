"""What the offline rules take a question for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.demo.offline_questions import Comparison, Goal, Topics, Wish, read_question


def compared(a: str, b: str) -> list[Wish]:
    return [Comparison(a=a, b=b)]


def topics(*names: str) -> list[Wish]:
    return [Topics(topics=names)]


@pytest.mark.parametrize(
    ("question", "wishes"),
    [
        ("What is the difference between lists and tuples?", compared("lists", "tuples")),
        ("list vs tuple", compared("list", "tuple")),
        ("How do generators differ from iterators?", compared("generators", "iterators")),
        ("Compare try/except with if checks", compared("try/except", "if checks")),
        ("Should I use a class or a closure?", compared("class", "closure")),
        ("When should I use a lambda instead of a def?", compared("lambda", "def")),
        ("is `is` the same as `==`?", compared("`is`", "`==`")),
        ("Which is better: a lambda or a def?", compared("lambda", "def")),
        ("How are classes and instances related?", compared("classes", "instances")),
        ("Compare lists, tuples and dicts", topics("lists", "tuples", "dicts")),
        ("What are metaclasses and descriptors?", topics("metaclasses", "descriptors")),
        ("What is a generator?", topics("generator")),
        (
            "What happens when a generator raises and nobody catches it?",
            topics("What happens when a generator raises and nobody catches it"),
        ),
        ("How does import find a module?", topics("How does import find a module")),
        ("What is in this folder?", [Goal(goal="What is in this folder")]),
        ("refactor the tests", [Goal(goal="refactor the tests")]),
        ("Where is Boiler in src/kettle?", [Goal(goal="Where is Boiler in src/kettle")]),
        ("Plan how to rename boiler.py", [Goal(goal="Plan how to rename boiler.py")]),
        ("Add tests for the whistle", [Goal(goal="Add tests for the whistle")]),
        ("Plan to improve logging", [Goal(goal="Plan to improve logging")]),
        ("How do I read a file in Python?", topics("How do I read a file")),
        ("Why should I write tests?", topics("Why should I write tests")),
        ("Plan a trip to Rome", topics("Plan a trip to Rome")),
        ("hello", []),
        ("Thank you, that was great!", []),
        ("What can you do?", []),
        ("", []),
    ],
)
def test_a_question_is_read_as(question: str, wishes: list[Wish]) -> None:
    assert read_question(question) == wishes


def test_a_question_of_several_parts_asks_for_each() -> None:
    assert read_question("What is a generator? And compare lists with tuples.") == [
        Topics(topics=("generator",)),
        Comparison(a="lists", b="tuples"),
    ]
    assert read_question("Explain decorators and plan how to add one to this project") == [
        Topics(topics=("decorators",)),
        Goal(goal="plan how to add one to this project (decorators)"),
    ]


def test_a_question_that_leans_on_the_one_before_takes_its_topic() -> None:
    assert read_question("tell me more about it", "What is a generator?") == topics(
        "tell me more about it (generator)"
    )
    assert read_question("tell me more about it") == []


@given(st.text(max_size=400), st.text(max_size=100))
def test_any_text_can_be_read(question: str, previous: str) -> None:
    for wish in read_question(question, previous):
        assert isinstance(wish, Comparison | Goal | Topics)
