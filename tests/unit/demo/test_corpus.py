"""The language reference that ships with Python, cut, searched and read."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pydoc_data.topics import topics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.demo.corpus import Corpus, language_reference
from ramet.demo.corpus_sections import Section, as_markdown, cut_topics, parse_blocks
from ramet.demo.errors import PassageUnknown
from tests.support.databases import left_open
from tests.unit.demo.small_reference import small_reference


def test_every_topic_is_in_the_corpus_and_ids_are_unique_and_stable() -> None:
    sections = cut_topics(topics)
    assert len({section.id for section in sections}) == len(sections) > 300
    assert sections == cut_topics(topics)
    assert {"with", "yield", "types", "string-methods"} <= {one.topic for one in sections}


def test_sections_are_of_readable_size() -> None:
    sizes = sorted(len(section.text) for section in cut_topics(topics))
    assert sizes[0] >= 40
    assert sizes[int(len(sizes) * 0.95)] < 2_500


def test_what_a_long_topic_repeats_is_in_the_corpus_once() -> None:
    texts = [section.text for section in cut_topics(topics)]
    assert len(set(texts)) == len(texts)


def test_a_section_keeps_code_lists_and_signatures_apart_from_prose() -> None:
    text = (
        'The "x" thing\n*************\n\nIt does "y" and\nmore:\n\n   x ::= "y"\n\n'
        "* first\n\n* second point\n  goes on\n\nNote:\n\n  Take care.\n\n"
        "thing.call(a, b)\n\n   Calls it with *a*.\n"
    )
    kinds = [(block.kind, block.text) for block in parse_blocks(text)]
    assert kinds == [
        ("heading", "The x thing"),
        ("text", "It does `y` and more:"),
        ("code", 'x ::= "y"'),
        ("item", "- first"),
        ("item", "- second point goes on"),
        ("text", "**Note:** Take care."),
        ("signature", "thing.call(a, b)"),
        ("text", "Calls it with *a*."),
    ]


def test_quoted_words_become_code_and_broken_words_are_joined() -> None:
    assert as_markdown(["the built-", 'in name "None" and ""ab"" [3].']) == (
        'the built-in name `None` and `"ab"`.'
    )


def test_footnotes_are_left_out() -> None:
    blocks = parse_blocks("Told once.\n\n-[ Footnotes ]-\n\n[1] Never told.\n")
    assert [block.text for block in blocks] == ["Told once."]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What is a generator?", "types/generator-functions"),
        ("explain the with statement", "with"),
        ("what does nonlocal do", "nonlocal"),
        ("tuples", "typesseq/tuples"),
        ("slots", "attribute-access/__slots__"),
        ("str.split", "string-methods/str-split"),
        ("is", "comparisons/identity-comparisons"),
        ("list comprehension", "lists"),
    ],
)
def test_the_passage_that_is_about_it_comes_first(query: str, expected: str) -> None:
    assert small_reference().search(query)[0].id == expected


def test_an_entry_is_a_section_whether_it_is_underlined_or_indented() -> None:
    start = "The types\n*********\n\nThey come with the language and are always there.\n\n"
    first, second = (
        "A function that yields is called a",
        "generator function, and gives an iterator.",
    )
    underlined = f"{start}Generator functions\n-------------------\n\n{first}\n{second}\n"
    indented = f"{start}Callable things\n   Generator functions\n      {first}\n      {second}\n"
    (_, one), (_, other) = cut_topics({"types": underlined}), cut_topics({"types": indented})
    assert one == other
    assert one.id == "types/generator-functions"


def test_a_hit_says_what_it_matched_and_shows_a_sentence() -> None:
    hit = language_reference().search("walrus operator")[0]
    assert hit.matched == ("operator",)
    assert hit.score > 0
    assert 0 < len(hit.snippet) <= 240
    assert hit.text == ""


def test_passages_with_all_words_are_preferred_and_any_word_will_do_else() -> None:
    corpus = Corpus(
        [
            Section(id="a", topic="a", title="A", text="red apples and green pears"),
            Section(id="b", topic="b", title="B", text="red plums"),
        ]
    )
    assert [hit.id for hit in corpus.search("red pears")] == ["a"]
    assert {hit.id for hit in corpus.search("plums pears")} == {"a", "b"}
    assert corpus.search("bananas") == []
    corpus.close()


def test_sections_that_cannot_be_had_leave_no_index_open() -> None:
    def sections() -> Iterator[Section]:
        yield Section(id="a", topic="a", title="A", text="red apples")
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        Corpus(sections())
    assert left_open() == []


def test_limits_are_kept() -> None:
    assert len(language_reference().search("object", limit=2)) == 2
    assert language_reference().search("object", limit=0) == []


def test_a_passage_is_read_whole_by_its_id() -> None:
    page = language_reference().read("with")
    assert page.title == "The with statement"
    assert "context manager" in page.text
    assert page.page() == {
        "id": "with",
        "topic": "with",
        "title": "The with statement",
        "text": page.text,
    }


def test_an_unknown_id_is_refused_with_what_to_do() -> None:
    with pytest.raises(PassageUnknown, match=r"no passage 'nope'; take an id from .* search"):
        language_reference().read("nope")


def test_the_corpus_says_how_much_it_holds() -> None:
    assert language_reference().describe().endswith("topics of the language reference")


def test_tools_in_several_threads_may_search_at_once() -> None:
    corpus = language_reference()
    queries = ["generator", "tuple", "exception", "class", "lambda"] * 8
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(lambda query: corpus.search(query)[0].id, queries))
    assert found == [corpus.search(query)[0].id for query in queries]


@given(st.text())
def test_no_query_breaks_the_search(query: str) -> None:
    assert isinstance(language_reference().search(query), list)


@given(
    st.lists(
        st.sampled_from(
            ["AND", "OR", "NOT", "NEAR(", ")", '"', "*", "^", ":", "title:", "-", "{", "generator"]
        ),
        max_size=8,
    )
)
def test_words_of_the_search_language_have_no_meaning_in_a_query(words: list[str]) -> None:
    found = language_reference().search(" ".join(words))
    assert "generator" not in words or found
