"""Picks the sentences of some passages that answer a question best, and quotes them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ramet.demo.corpus_sections import TITLE_SEPARATOR
from ramet.demo.words import is_generic, shared_stems

_FENCE = "```"
_MOST_SENTENCES = 7
_MOST_PER_PASSAGE = 4
_LONGEST_CODE = 14
_MOST_ITEMS = 7
_WORTH_QUOTING = 1.0
_SHARE_OF_BEST = 0.45
_SENTENCE_END = re.compile(
    r"(?<=[.!?:])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!cf\.)\s+(?=[A-Z`*(\u201c\u2018])"
)
_LEANS_BACK = re.compile(
    r"(?:This|It|Its|These|They|Their|That|Those|However|Otherwise|Thus|But|Such|Similarly|Then"
    r"|If so|Instead|In this|For example|Therefore|Hence|Note that (?:this|it))\b"
)
_POINTS_AWAY = re.compile(
    r"(?:- )?(?:\*\*See also|\(?See |For (?:full|more) |Changed in |New in |Added in |Deprecated "
    r"|Please refer|Refer to|\*\*PEP|Removed in)"
)
_DEFINES = re.compile(
    r"\b(?:is|are) (?:an?|the|used|called|evaluated|\w+ed)\b|\ballows?\b|\bmeans\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A passage that was read."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A sentence, a list item or a piece of code, where it stands in its page."""

    kind: Literal["sentence", "item", "code"]
    text: str
    position: int
    paragraph: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What is quoted of one page, in the page's order."""

    page: Page
    units: tuple[Unit, ...]

    def markdown(self) -> str:
        """The quote as a Markdown block quote with its source in the last line."""
        source = f"— *{self.page.title.rsplit(TITLE_SEPARATOR, 1)[-1]}*, `{self.page.id}`"
        lines = [*_rendered(self.units), "", source]
        return "\n".join(f"> {line}".rstrip() for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    score: float
    page: int
    unit: Unit


def best_quotes(pages: Sequence[Page], terms: Iterable[str], aspect: Iterable[str]) -> list[Quote]:
    """Quote the sentences that fit the terms best, the page with the best sentence first.

    A page of which nothing fits well is left out. Only whole sentences, items and code of the
    pages are used, unchanged.
    """
    wanted, also = tuple(terms), tuple(aspect)
    read = [split_units(page.text) for page in pages]
    scored = [
        _Scored(score=score + 0.6 / (rank + 1), page=rank, unit=unit)
        for rank, (page, units) in enumerate(zip(pages, read, strict=True))
        for unit, score in _scores(units, page, terms=wanted, aspect=also)
        if score > 0
    ]
    chosen = _chosen(scored)
    return [
        Quote(page=pages[rank], units=tuple(_completed(read[rank], positions)))
        for rank in dict.fromkeys(pick.page for pick in chosen)
        if (positions := {pick.unit.position for pick in chosen if pick.page == rank})
    ]


def split_units(text: str) -> list[Unit]:
    """Take a Markdown passage apart into sentences, list items and code."""
    units: list[Unit] = []
    for paragraph, block in enumerate(_blocks(text)):
        if block.startswith(_FENCE):
            code = block.removeprefix(_FENCE).removesuffix(_FENCE).strip("\n")
            pieces = [Unit(kind="code", text=code, position=0, paragraph=paragraph)]
        elif _is_item(block):
            pieces = [
                Unit(kind="item", text=line, position=0, paragraph=paragraph)
                for line in block.splitlines()
            ]
        else:
            pieces = [
                Unit(kind="sentence", text=sentence, position=0, paragraph=paragraph)
                for sentence in _SENTENCE_END.split(block)
            ]
        units.extend(pieces)
    return [replace(unit, position=position) for position, unit in enumerate(units)]


def _chosen(scored: list[_Scored]) -> list[_Scored]:
    """The best units, not too many of one page, none twice, none far below the best."""
    chosen: list[_Scored] = []
    least = max((one.score for one in scored), default=0.0) * _SHARE_OF_BEST
    for candidate in sorted(scored, key=lambda one: (-one.score, one.page, one.unit.position)):
        same_page = sum(1 for one in chosen if one.page == candidate.page)
        repeated = any(one.unit.text == candidate.unit.text for one in chosen)
        if candidate.score < max(_WORTH_QUOTING, least) or len(chosen) >= _MOST_SENTENCES:
            break
        if same_page < _MOST_PER_PASSAGE and not repeated:
            chosen.append(candidate)
    return chosen


def _scores(
    units: list[Unit], page: Page, *, terms: tuple[str, ...], aspect: tuple[str, ...]
) -> Iterator[tuple[Unit, float]]:
    """A score for each sentence and item; one that goes on from a fitting sentence gains by it."""
    named = bool(shared_stems(terms, page.title))
    before, paragraph = 0.0, -1
    for unit in units:
        if unit.kind == "code":
            continue
        found = sum(0.3 if is_generic(term) else 1.0 for term in shared_stems(terms, unit.text))
        goes_on = min(0.6, before / 2) if unit.paragraph == paragraph else 0.0
        score = found + goes_on
        if found or named or goes_on:
            score += 0.4 * named + _bonus(unit, terms) + 0.5 * len(shared_stems(aspect, unit.text))
        yield unit, score - _penalty(unit) - 0.8 * _announces_in_vain(units, unit.position)
        before, paragraph = found, unit.paragraph


def _bonus(unit: Unit, terms: tuple[str, ...]) -> float:
    bonus = 0.0
    if shared_stems(terms, " ".join(unit.text.split()[:6])):
        bonus += 0.5
    if _DEFINES.search(unit.text):
        bonus += 0.5
    if unit.position <= 1:
        bonus += 0.5
    return bonus


def _penalty(unit: Unit) -> float:
    penalty = 0.0
    if _POINTS_AWAY.match(unit.text):
        penalty += 3.0
    if unit.kind == "item":
        penalty += 0.8
    if _LEANS_BACK.match(unit.text):
        penalty += 0.4
    if not 35 <= len(unit.text) <= 340:
        penalty += 0.6
    if unit.text.count("(") != unit.text.count(")"):
        penalty += 0.8
    if unit.kind == "sentence" and unit.text[-1] not in ".?!:)*":
        penalty += 0.6
    return penalty


def _completed(units: list[Unit], positions: set[int]) -> Iterator[Unit]:
    """The chosen units, each with the sentence it leans on and the code or list it announces."""
    wanted = set(positions)
    for position in positions:
        before = units[position - 1] if position else None
        leans = _LEANS_BACK.match(units[position].text) is not None
        if leans and before is not None and before.paragraph == units[position].paragraph:
            wanted.add(position - 1)
    for position in sorted(wanted):
        if _announces(units[position]):
            wanted.update(_announced(units, position + 1))
    yield from (unit for unit in units if unit.position in wanted)


def _announces(unit: Unit) -> bool:
    return unit.kind != "code" and unit.text[-1] not in ".?!)*`"


def _announces_in_vain(units: list[Unit], position: int) -> bool:
    """Whether a unit leads up to something that cannot be quoted with it."""
    return _announces(units[position]) and not any(_announced(units, position + 1))


def _announced(units: list[Unit], start: int) -> Iterator[int]:
    if start >= len(units):
        return
    first = units[start]
    if first.kind == "code":
        lines = first.text.count("\n") + 1
        if lines <= (5 if "::=" in first.text else _LONGEST_CODE):
            yield start
        return
    for unit in units[start : start + _MOST_ITEMS]:
        if unit.kind != "item":
            return
        yield unit.position


def _rendered(units: tuple[Unit, ...]) -> list[str]:
    lines: list[str] = []
    previous: Unit | None = None
    for unit in units:
        if unit.kind == "code":
            lines += ["", _FENCE, *unit.text.splitlines(), _FENCE]
        elif unit.kind == "item":
            lines += [unit.text] if previous and previous.kind == "item" else ["", unit.text]
        elif previous is not None and previous.kind == "sentence":
            follows = unit.position == previous.position + 1
            if follows and unit.paragraph != previous.paragraph:
                lines += ["", unit.text]
            else:
                lines[-1] += f" {unit.text}" if follows else f" … {unit.text}"
        else:
            lines += ["", unit.text]
        previous = unit
    return lines[1:]


def _blocks(text: str) -> Iterator[str]:
    pieces = re.split(r"(^```\n.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    for piece in pieces:
        if piece.startswith(_FENCE):
            yield piece
        else:
            yield from (block.strip() for block in piece.split("\n\n") if block.strip())


def _is_item(block: str) -> bool:
    return re.match(r"(?:-|\d+\.) ", block) is not None
