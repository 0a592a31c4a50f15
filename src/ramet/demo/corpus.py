"""The language reference that ships with Python, as passages that can be searched and read."""

import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pydoc_data import topics as shipped
from typing import Self

from ramet.core.fence import Fence
from ramet.core.json import JsonObject
from ramet.demo.corpus_sections import TITLE_SEPARATOR, Section, cut_topics
from ramet.demo.errors import PassageUnknown
from ramet.demo.words import key_terms, searchable, shared_stems, stems
from ramet.storage import Database, Row

_LONGEST_SNIPPET = 240
_CANDIDATES = 30
_PART_NUMBER = re.compile(r" \(\d+\)$")

_CREATE = """
    CREATE VIRTUAL TABLE passages USING fts5(
        id UNINDEXED, topic UNINDEXED, title UNINDEXED, text UNINDEXED,
        own_title, whole_title, content,
        tokenize = "unicode61 tokenchars '_'"
    )
"""
_INSERT = "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)"
_SEARCH = """
    SELECT id, topic, title, text, own_title, -bm25(passages, 0, 0, 0, 0, 5.0, 2.0, 1.0) AS score
    FROM passages WHERE passages MATCH ? ORDER BY score DESC, id LIMIT ?
"""
_READ = "SELECT id, topic, title, text FROM passages WHERE id = ?"
_COUNT = "SELECT count(*) AS passages, count(DISTINCT topic) AS topics FROM passages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A section of the reference: a hit of a search, or a page that was read."""

    id: str
    topic: str
    title: str
    snippet: str = ""
    """The sentence that fits the search best; empty in a passage that was read."""
    score: float = 0.0
    """How well it fits the search, higher is better; comparable within one search only."""
    matched: tuple[str, ...] = ()
    """The search's terms that the passage contains."""
    text: str = ""
    """The whole passage in Markdown; empty in a hit."""

    def hit(self) -> JsonObject:
        """The passage as a search tool returns it."""
        return {
            "id": self.id,
            "topic": self.topic,
            "title": self.title,
            "snippet": self.snippet,
            "score": round(self.score, 2),
            "matched": list(self.matched),
        }

    def page(self) -> JsonObject:
        """The passage as a read tool returns it."""
        return {"id": self.id, "topic": self.topic, "title": self.title, "text": self.text}


class Corpus:
    """Passages in a full-text index in memory; any thread may ask."""

    def __init__(self, sections: Iterable[Section]) -> None:
        self._lock = threading.Lock()
        self._database = Database(":memory:", fence=Fence("the corpus"))
        try:
            self._database.run(_CREATE)
            with self._database.transaction():
                for section in sections:
                    self._add(section)
        except BaseException:
            self._database.close()
            raise

    @classmethod
    def from_topics(cls, topics: Mapping[str, str]) -> Self:
        """Index reference topics as `pydoc` has them: a name and a text each."""
        return cls(cut_topics(topics))

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """Find passages for a query in plain words, the best first.

        Passages with all key terms are given; when there is none, those with any of them. Nothing
        in a query has a special meaning. An empty list means that no passage has any of the words.
        """
        terms = key_terms(query)
        phrases = [_phrase(term) for term in terms]
        if not phrases or limit < 1:
            return []
        rows = self._rows(" AND ".join(phrases)) or self._rows(" OR ".join(phrases))
        hits = sorted((_hit(row, terms) for row in rows), key=lambda hit: -hit.score)
        return hits[:limit]

    def read(self, passage_id: str) -> Passage:
        """The passage of that id with its whole text.

        Raises:
            PassageUnknown: No passage has that id.
        """
        with self._lock:
            row = self._database.one(_READ, passage_id)
        if row is None:
            raise PassageUnknown(
                f"There is no passage {passage_id!r}; take an id from the result of a search."
            )
        return Passage(id=row["id"], topic=row["topic"], title=row["title"], text=row["text"])

    def describe(self) -> str:
        """What the corpus holds, in one sentence."""
        with self._lock:
            row = self._database.query(_COUNT)[0]
        return f"{row['passages']} passages from {row['topics']} topics of the language reference"

    def close(self) -> None:
        """Drop the index."""
        self._database.close()

    def _add(self, section: Section) -> None:
        self._database.run(
            _INSERT,
            section.id,
            section.topic,
            section.title,
            section.text,
            " ".join(searchable(_own_title(section.title))),
            " ".join(searchable(f"{section.title} {section.topic}")),
            " ".join(searchable(section.text)),
        )

    def _rows(self, match: str) -> list[Row]:
        with self._lock:
            return self._database.query(_SEARCH, match, _CANDIDATES)


@cache
def language_reference() -> Corpus:
    """The reference topics of the running Python, indexed once for the whole process."""
    return Corpus.from_topics(shipped.topics)


def _phrase(term: str) -> str:
    return '"{}"'.format(" ".join(stems(term)).replace('"', '""'))


def _own_title(title: str) -> str:
    return _PART_NUMBER.sub("", title.rsplit(TITLE_SEPARATOR, 1)[-1])


def _hit(row: Row, terms: tuple[str, ...]) -> Passage:
    return Passage(
        id=row["id"],
        topic=row["topic"],
        title=row["title"],
        snippet=_snippet(row["text"], terms),
        score=row["score"] * _prominence(row["title"], terms) * _relevance(row["topic"], terms),
        matched=shared_stems(terms, f"{row['title']} {row['topic']} {row['text']}"),
    )


def _prominence(title: str, terms: tuple[str, ...]) -> float:
    """More for the passage that is named like the search, less for the later part of a section."""
    if _PART_NUMBER.search(title):
        return 0.9
    named = {word for term in key_terms(_own_title(title)) for word in searchable(term)}
    wanted = {word for term in terms for word in stems(term)}
    if not wanted <= named:
        return 1.0
    exact = 1.4 if title.endswith("()") else 1.6
    return {0: exact, 1: 1.25}.get(len(named) - len(wanted), 1.0)


def _relevance(topic: str, terms: tuple[str, ...]) -> float:
    """Less for the debugger's commands, many of which are named like a statement."""
    if topic != "debugger" or shared_stems(terms, "pdb debugger debug debugging breakpoint"):
        return 1.0
    return 0.3


def _snippet(text: str, terms: tuple[str, ...]) -> str:
    prose = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    sentences = [" ".join(piece.split()) for piece in re.split(r"(?<=[.:;])\s+", prose)]
    best = max(sentences, key=lambda sentence: len(shared_stems(terms, sentence)))
    return best if len(best) <= _LONGEST_SNIPPET else best[: _LONGEST_SNIPPET - 1].rstrip() + "…"
