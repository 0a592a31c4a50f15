"""What is taken for a word, a key term and the same word in another form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.demo.words import also_called, key_terms, shared_stems, stem


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What is a generator?", ("generator",)),
        ("How do decorators work in Python?", ("decorators",)),
        ("Explain the with statement, please", ("with statement",)),
        ("what does a for loop do", ("for statement",)),
        ("the finally block", ("finally clause",)),
        ("What does `__init__` do?", ("__init__",)),
        ("what is async with", ("async with",)),
        ("f-strings", ("formatted", "string", "literal")),
        ("is", ("identity",)),
        ("what is `in`?", ("membership",)),
        ("what does := mean", ("assignment expression",)),
        ('find "free variable" for me', ("free variable", "find")),
        ("generator generators", ("generator",)),
        ("what does with do", ("with statement",)),
        ("what is that?", ()),
        ("what is that for", ()),
        ("", ()),
    ],
)
def test_key_terms_are_what_a_question_is_about(question: str, terms: tuple[str, ...]) -> None:
    assert key_terms(question) == terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("classes", "class"),
        ("raises", "raised"),
        ("raising", "raise"),
        ("properties", "property"),
        ("mapped", "mapping"),
        ("tuples", "tuple"),
    ],
)
def test_forms_of_one_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize("word", ["class", "is", "status", "__init__", "try"])
def test_words_that_only_look_like_plurals_stay(word: str) -> None:
    assert stem(word) == word


def test_a_term_of_several_words_is_found_only_as_it_stands() -> None:
    assert shared_stems(("with statement",), "The `with` statement wraps.") == ("with statement",)
    assert shared_stems(("with statement",), "A statement with a block.") == ()


def test_a_special_name_is_found_by_its_bare_name() -> None:
    assert shared_stems(("slots",), "Declare `__slots__` first.") == ("slots",)


def test_other_names_of_a_thing_are_known_in_any_form() -> None:
    assert "assignment expression" in also_called("walrus")
    assert also_called("closures") == also_called("closure") != ()
    assert also_called("teapot") == ()


@given(st.text())
def test_any_text_has_key_terms_that_can_be_searched_for(text: str) -> None:
    for term in key_terms(text):
        assert term.strip()
        assert '"' not in term
