"""Case conversion of class and method names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.protocol.names import camel, kebab


@pytest.mark.behaviour("D28")
@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("MyAgent", "my-agent"),
        ("AIChatAgent", "a-i-chat-agent"),
        ("MY_AGENT", "my-agent"),
        ("A1", "a1"),
        ("already-kebab", "already-kebab"),
        ("HTTPServer", "h-t-t-p-server"),
        ("fooBar2Baz", "foo-bar2-baz"),
        ("my_agent", "my-agent"),
        ("Foo_", "foo"),
        ("123", "123"),
        ("", ""),
        ("_Private", "--private"),
        ("Foo__", "foo-"),
        ("FOO_", "foo-"),
    ],
)
def test_a_class_name_becomes_its_url_segment(name: str, segment: str) -> None:
    assert kebab(name) == segment


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True))
def test_a_segment_has_neither_capitals_nor_underscores(name: str) -> None:
    segment = kebab(name)

    assert segment == segment.lower()
    assert "_" not in segment


@given(st.from_regex(r"([A-Z][a-z0-9]+)+", fullmatch=True))
def test_an_ordinary_class_name_keeps_its_letters(name: str) -> None:
    assert kebab(name).replace("-", "") == name.lower()


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("start_report", "startReport"),
        ("increment", "increment"),
        ("alreadyCamel", "alreadyCamel"),
        ("count_to_10", "countTo10"),
        ("_private_one", "_privateOne"),
        ("a__b", "aB"),
        ("import_", "import"),
        ("get_URL", "getURL"),
        ("_", "_"),
        ("", ""),
    ],
)
def test_a_method_name_becomes_the_one_javascript_calls(name: str, called: str) -> None:
    assert camel(name) == called
