"""What the offline rules take a question for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.demo.offline_questions import (
    Aside,
    Build,
    Comparison,
    Goal,
    Topics,
    Wish,
    read_question,
)


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
        ("Read a file in Python", topics("Read a file")),
        ("open a text file and read its lines", topics("open a text file and read its lines")),
        ("What does open('data.txt') do?", topics("What does open('data.txt') do")),
        ("write to a file", topics("write to a file")),
        ("reading notes.txt with Python", topics("reading notes.txt with Python")),
        ("Read the files of this folder", [Goal(goal="Read the files of this folder")]),
        ("Find a file of this project", [Goal(goal="Find a file of this project")]),
        ("List the files", [Goal(goal="List the files")]),
        ("Run the unit tests in the background", [Build(task="tests")]),
        ("please run the tests", [Build(task="tests")]),
        ("Run the tests of this project", [Build(task="tests")]),
        ("Check the syntax of every file", [Build(task="syntax")]),
        ("How do tests run?", topics("tests run")),
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
        assert isinstance(wish, Aside | Build | Comparison | Goal | Topics)


@pytest.mark.parametrize(
    ("question", "topics"),
    [
        ("Research generators thoroughly in the background", ("generators",)),
        ("In the background, look into how generators end", ("how generators end",)),
        ("Can you research metaclasses in the background please?", ("metaclasses",)),
        ("What is a generator, in the background?", ("generator",)),
        ("Explain decorators and closures, in the background", ("decorators", "closures")),
        ("Find out about slots and do it in the background", ("slots",)),
    ],
)
def test_what_is_wanted_in_the_background_is_set_aside(
    question: str, topics: tuple[str, ...]
) -> None:
    assert read_question(question) == [Aside(topics=topics)]


def test_only_how_to_go_about_it_is_set_aside() -> None:
    assert read_question("How do threads run in the background?") == topics(
        "How do threads run in the background"
    )
    assert read_question("in the background") == []
    assert read_question("Plan how to add a flag to this project in the background") == [
        Goal(goal="Plan how to add a flag to this project")
    ]
    assert read_question("Look into slots in the background. Compare lists and tuples.") == [
        Aside(topics=("slots",)),
        Comparison(a="lists", b="tuples"),
    ]
