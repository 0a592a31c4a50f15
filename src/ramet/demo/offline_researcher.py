"""The researcher's rules: search, search again in other words, read the best, quote from it."""

from collections.abc import Iterable
from dataclasses import dataclass

from ramet.core.json import JsonObject, JsonValue
from ramet.demo.offline_extract import Page, Quote, best_quotes
from ramet.demo.offline_turn import Answer, Call, CallTools, Move, ToolResult, Turn
from ramet.demo.words import also_called, is_generic, key_terms, specific_terms, stem

RESEARCHER_TOOLS = frozenset({"search", "read"})
SOURCES = "**Sources**"
LEAD = "The language reference on "
NOTHING = "I found nothing about "
_MOST_READ = 3
_MOST_READ_THOROUGHLY = 8
_MOST_QUERIES = 6
_MOST_QUOTED = 6
_FOUND = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    id: str
    title: str
    score: float
    coverage: float
    """How much of what was searched for the passage contains, from 0 to 1."""
    named: bool
    """Whether its title has a term of the search."""


def research(turn: Turn) -> Move:
    """What the researcher does next.

    A search that finds nothing that fits is followed by another in other or fewer words, and one
    that finds only little by one for what the thing is also called.
    """
    if turn.thorough:
        return _research_thoroughly(turn)
    if turn.every_result("read"):
        return _compose(turn)
    hits = _hits(turn.results("search"))
    good = [hit for hit in hits if hit.coverage >= _FOUND]
    pending = () if _enough(good) else _next_queries(turn, found=bool(good))
    if pending:
        return _search(turn, pending, "little" if good else "nothing")
    return _read(good) if good else _nothing(turn)


def _research_thoroughly(turn: Turn) -> Move:
    """Search under every name, then read what fits, one passage a step, with a note of each."""
    if not turn.steps:
        return _search(turn, _every_query(turn), "")
    hits = _hits(turn.results("search"))
    asked = [result.argument("id") for result in turn.every_result("read")]
    left = [hit for hit in hits if hit.coverage >= _FOUND and hit.id not in asked]
    if not left or len(asked) >= _MOST_READ_THOROUGHLY:
        return _compose(turn)
    of_all = min(len(left) + len(asked), _MOST_READ_THOROUGHLY)
    reason = f"Passage {len(asked) + 1} of {of_all} that fit: {_list([left[0].title])}."
    return CallTools(
        reason=f"{_note(turn)}{reason}",
        calls=(Call(tool="read", arguments={"id": left[0].id}),),
    )


def _every_query(turn: Turn) -> tuple[str, ...]:
    """The key terms together, each of its own, and what each is also called."""
    terms = key_terms(turn.question)
    specific = specific_terms(terms)
    others = [_quoted(other) for term in specific for other in also_called(term)]
    queries = dict.fromkeys([" ".join(terms), *specific, *others])
    return tuple(query for query in queries if query)[:_MOST_QUERIES]


def _note(turn: Turn) -> str:
    """What is noted of the passage that was read last."""
    pages = [page for result in turn.results("read") if (page := _page(result.content))]
    quotes = best_quotes(pages[-1:], _terms_that_were_found(turn), ())
    if not quotes:
        return ""
    text = " ".join(quotes[0].units[0].text.split())
    return f"I note from the last one: {text}\n\n"


def _search(turn: Turn, queries: tuple[str, ...], found: str) -> Move:
    if turn.steps:
        reason = (
            f"That found {found} that fits, so I search again in other words: {_list(queries)}."
        )
    else:
        reason = (
            f"First I search the reference for the key terms of the question: {_list(queries)}."
        )
    return CallTools(
        reason=reason,
        calls=tuple(Call(tool="search", arguments={"query": query}) for query in queries),
    )


def _read(good: list[_Hit]) -> Move:
    best = good[0]
    close = [
        hit
        for hit in good[1:]
        if hit.coverage >= best.coverage - 0.01
        and hit.score >= (0.4 if hit.named else 0.55) * best.score
    ]
    chosen = [best, *close][:_MOST_READ]
    titles = _list(hit.title for hit in chosen)
    reason = (
        f"One passage fits clearly better than the rest, so I read only that one: {titles}."
        if len(chosen) == 1
        else f"{len(chosen)} passages fit well, so I read them in one step: {titles}."
    )
    return CallTools(
        reason=reason,
        calls=tuple(Call(tool="read", arguments={"id": hit.id}) for hit in chosen),
    )


def _compose(turn: Turn) -> Move:
    pages = [page for result in turn.results("read") if (page := _page(result.content))]
    terms = _terms_that_were_found(turn)
    quotes = _quotes(turn, pages, terms)
    failed = [_failed_line(result) for result in turn.failures()]
    if not quotes:
        return _nothing(turn)
    lead = f"{LEAD}“{_short(turn.question)}”:"
    blocks = [lead, *(quote.markdown() for quote in quotes), *failed, _sources(quotes)]
    return Answer(
        reason=(
            f"Of what I read I quote the sentences that fit {_list(terms)} best; those that define"
            " something count more."
        ),
        text="\n\n".join(blocks),
    )


def _quotes(turn: Turn, pages: list[Page], terms: tuple[str, ...]) -> list[Quote]:
    """The best of all pages; a thorough answer has the best of each."""
    if not turn.thorough:
        return best_quotes(pages, terms, key_terms(turn.aspect))
    of_each = [quote for page in pages for quote in best_quotes([page], terms, ())]
    return of_each[:_MOST_QUOTED]


def _nothing(turn: Turn) -> Move:
    searched = _list(_searches_done(turn))
    failed = [_failed_line(result) for result in turn.failures()]
    said = f"{NOTHING}“{_short(turn.question)}” in the language reference."
    if searched:
        said += f" I searched for {searched}."
    said += " It treats the Python language itself; other subjects are not in it."
    return Answer(
        reason="No passage holds enough of what was asked for, and guessing is not an answer.",
        text="\n\n".join([said, *failed]),
    )


def _sources(quotes: list[Quote]) -> str:
    lines = [f"- *{quote.page.title}* — `{quote.page.id}`" for quote in quotes]
    return "\n".join([SOURCES, "", *lines])


def _searches_done(turn: Turn) -> list[str]:
    return [result.argument("query") for result in turn.every_result("search")]


def _next_queries(turn: Turn, *, found: bool) -> tuple[str, ...]:
    """The searches to make next; empty when there are no words left to try.

    Once something was found, only other names of the thing are worth another search.
    """
    terms = key_terms(turn.question)
    if not terms:
        return ()
    specific = specific_terms(terms)
    others = [_quoted(other) for term in specific for other in also_called(term)]
    rarest = max(specific, key=len)
    plans = [(" ".join(terms),), tuple(others[:3])]
    if not found:
        plans += [(rarest,), (_shortened(rarest),)]
    done = _searches_done(turn)
    left = (tuple(query for query in plan if query and query not in done) for plan in plans)
    return next((plan for plan in left if plan), ())


def _quoted(phrase: str) -> str:
    """Several words as one phrase, to be found as they stand."""
    return f'"{phrase}"' if " " in phrase and not phrase.endswith(" statement") else phrase


def _shortened(word: str) -> str:
    """A word without the ending that makes it a plural or a noun; empty when it has none."""
    if " " in word:
        return ""
    root = stem(word)
    for ending in ("ability", "ization", "isation", "ation", "ment", "ness", "tion", "able"):
        if root.endswith(ending) and len(root) - len(ending) >= 4:
            return root[: -len(ending)]
    return root


def _hits(results: Iterable[ToolResult]) -> list[_Hit]:
    """All that was found, each passage once, the best first."""
    best: dict[str, _Hit] = {}
    for result in results:
        terms = key_terms(result.argument("query"))
        for hit in _hits_of(result.content, terms):
            known = best.get(hit.id)
            if known is None or (hit.coverage, hit.score) > (known.coverage, known.score):
                best[hit.id] = hit
    return sorted(best.values(), key=lambda hit: (-hit.coverage, -hit.score))


def _hits_of(content: JsonValue, terms: tuple[str, ...]) -> Iterable[_Hit]:
    rows = content.get("passages") if isinstance(content, dict) else content
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and isinstance(row.get("id"), str):
            yield _hit(row, terms)


def _hit(row: JsonObject, terms: tuple[str, ...]) -> _Hit:
    matched = row.get("matched")
    found = {str(term) for term in matched} if isinstance(matched, list) else set(terms)
    score, title = row.get("score"), str(row.get("title", ""))
    return _Hit(
        id=str(row["id"]),
        title=title,
        score=float(score) if isinstance(score, int | float) else 0.0,
        coverage=_weight(found) / (_weight(terms) or 1.0),
        named=any(stem(term) in title.lower() for term in found),
    )


def _weight(terms: Iterable[str]) -> float:
    return sum(0.3 if is_generic(term) else 1.0 for term in terms)


def _enough(good: list[_Hit]) -> bool:
    """Whether what fits is worth reading without another search."""
    return len(good) >= 3 or any(hit.named and hit.coverage > 0.9 for hit in good)


def _terms_that_were_found(turn: Turn) -> tuple[str, ...]:
    """The question's terms, and the other words of searches that found something."""
    terms = list(key_terms(turn.question))
    for result in turn.results("search"):
        if any(hit.coverage >= _FOUND for hit in _hits([result])):
            terms.extend(key_terms(result.argument("query")))
    return tuple(dict.fromkeys(terms))


def _page(content: JsonValue) -> Page | None:
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        return None
    return Page(
        id=str(content.get("id", "")),
        title=str(content.get("title", "")),
        text=str(content["text"]),
    )


def _failed_line(result: ToolResult) -> str:
    what = result.argument("query") or result.argument("id")
    return f"**Failed:** `{result.tool}` of “{what}” — {result.failure}"


def _short(question: str) -> str:
    return question.strip().rstrip("?.! ")


def _list(items: Iterable[str]) -> str:
    return ", ".join("“{}”".format(item.replace('"', "")) for item in items)
