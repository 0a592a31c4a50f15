"""Reads what a question asks for: a comparison, a plan, a build, topics, or nothing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ramet.demo.words import key_terms, tokens, word_set

_LONGEST_SIDE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two things are to be set side by side."""

    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Something about a folder: what is in it, or how to change it."""

    goal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """One or more topics to find out about."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """Topics to find out about in the background."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A task of the project is to be run."""

    task: str


Wish: TypeAlias = Comparison | Goal | Topics | Aside | Build

_SIDES = (
    r"\bdifferences?\b.*?\bbetween (?P<a>.+?) and (?P<b>.+)",
    r"\bhow (?:do|does|is|are) (?P<a>.+?) (?:differ|different|distinct) from (?P<b>.+)",
    r"\bhow (?:do|are|is) (?P<a>.+?) and (?P<b>.+?) (?:differ|different|related|compare)\b",
    r"\b(?:distinguishes|distinguish|tell) (?P<a>.+?) from (?P<b>.+)",
    r"\bcompar(?:e|es|ing|ison of|ison between) (?P<a>.+?) (?:and|with|to|against|vs\.?) (?P<b>.+)",
    r"\b(?:should|would|do|to|can) (?:\w+ )?(?:use|choose|prefer|pick|take) (?P<a>.+?)"
    r" (?:or|instead of|rather than|over) (?P<b>.+)",
    r"\b(?:is|are) (?P<a>.+?) (?:the same (?:thing )?as|better than|faster than) (?P<b>.+)",
    r"\bwhich (?:is|one is|are) (?:\w+ )?(?:better|faster|safer|simpler|right)[:,]?"
    r" (?P<a>.+?) or (?P<b>.+)",
    r"(?P<a>.+?) (?:vs\.?|versus|compared (?:to|with)|or rather) (?P<b>.+)",
)
_PATH = re.compile(
    r"(?<!\w)(?:\.{1,2}|src|tests?|docs?|lib|app|scripts|web|\w+/\w+)/[\w.-]+"
    r"|\b[\w-]+\.(?:py|toml|md|ts|tsx|js|json|ya?ml|cfg|txt|css)\b"
)
_PLACE = re.compile(
    r"\b(?:this|the|my|our|your|that|given|whole|current) (?:\w+ )?"
    r"(?:folder|directory|project|repo|repository|code ?base|code|source|app|application|package)\b"
    r"|\b(?:codebase|repository|repo|project|folder|roadmap)\b",
    re.IGNORECASE,
)
_CHANGING = (
    r"add|rename|remove|delete|replace|migrate|move|extract|split|fix|write|update|upgrade"
    r"|introduce|port|document|test|change"
)
_PLAN = re.compile(
    rf"\b(?:plan|steps)\b.*\b(?:{_CHANGING}|implement|improve|support)\b|\brefactor",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    rf"\b(?:{_CHANGING}|find|list|read|open|inspect)\b.*?"
    r"\b(?:files?|tests?|readme|docs|documentation|config|configuration|dependenc\w+|logging"
    r"|endpoints?|pages?|ci|docstrings?|type hints|changelog|license)\b",
    re.IGNORECASE,
)
_A_FILE = re.compile(
    r"\b(?:a|an|any|some) (?:\w+ ){0,2}files?\b|\bfiles? in general\b|\bopen\(", re.IGNORECASE
)
_IN_PYTHON = re.compile(r"\b(?:in|with|using) python\b", re.IGNORECASE)
_ASIDE = re.compile(
    r"^in the background(?:[,:]? +|$)"
    r"|(?:[,;] *| *\(| +)(?:and do (?:it|that|so) )?in the background\)?(?=,? *(?:please)?$)",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"(?:how|why|what|when|which|where|who|is|are|does|do|can(?! you))\b", re.IGNORECASE
)
_THOROUGHLY = re.compile(r",? +(?:very )?(?:thoroughly|in (?:depth|detail))$", re.IGNORECASE)
_BUILDS = {
    "tests": re.compile(
        r"^(?:(?:please|now|also|and|then|can you|could you) )*(?:re-?run|run|start|execute)"
        r"(?: (?:all|the|my|our|your|its|this|project's|whole|full|unit|of))*"
        r" (?:tests?(?: suite)?|build|checks)\b",
        re.IGNORECASE,
    ),
    "syntax": re.compile(
        r"^(?:(?:please|now|also|and|then|can you|could you) )*"
        r"(?:(?:run|start) (?:the|a) syntax check|check (?:the )?syntax|syntax check)\b",
        re.IGNORECASE,
    ),
}
_IN_GENERAL = re.compile(
    r"\b(?:how|why|in python)\b|^(?:what|when|which|is|are|does)\b", re.IGNORECASE
)
_ASKS = (
    r"explain|describe|define|summari[sz]e|tell me about|what (?:is|are)|what's|teach me|introduce"
    r"|how (?:do|does)|show me|look up|look into|research|investigate|study"
    r"|find out(?: all)?(?: about)?|read up on|i want to know about|give me an overview of"
)
_ENUMERATION = re.compile(
    rf"^(?:please |can you |could you )*(?:{_ASKS}|compare) (?P<items>.+?)(?: work| mean| do)?$",
    re.IGNORECASE,
)
_NEXT_CLAUSE = re.compile(
    r"(?<=[.?!;])\s+|\n+"
    r"|,? (?:and|then|and then|also|and also),? (?=(?:then |also |please )?"
    r"(?:plan|compare|explain|describe|tell me|show me|make a plan|what (?:is|are|does)"
    r"|how (?:do|does|is|are|can|should|to)|why)\b)",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:a|an|the|using|when to use|python's|python) +", re.IGNORECASE)
_TAIL = re.compile(r"(?:,? (?:in|of|for) python(?: 3)?|,? please|[?.!,:; ])+$", re.IGNORECASE)
_LEAD_IN = re.compile(
    rf"^(?:please |can you |could you |and |also |so |then )*(?:{_ASKS})? *", re.IGNORECASE
)
_CLAUSE_WORDS = word_set(
    "if when that which who whose because while how why where what does do is are happens raises"
)
_REFERS_BACK = word_set("it its they them their that those these this more")
_STANDS_FOR = word_set("one it them")
_COURTESY = word_set(
    """
    hi hello hey thanks thank thx cheers good morning evening afternoon bye goodbye ok okay great
    cool nice fine well done awesome perfect please you welcome help hm hmm yes no sure lol bravo
    today there lot everything again appreciate appreciated
    """
)


def read_question(question: str, previous: str = "") -> list[Wish]:
    """Take a question apart into what it asks for; empty when it asks for nothing.

    Args:
        question: What the user wrote.
        previous: The question before it, to which "it" and "they" may refer.
    """
    wishes: list[Wish] = []
    for clause in _clauses(question):
        wish = _wish(clause, previous)
        if wish is not None:
            wishes.append(wish)
            previous = clause
    return wishes


def _clauses(question: str) -> Iterator[str]:
    for clause in _NEXT_CLAUSE.split(question.strip()):
        if clause and clause.strip():
            yield clause.strip()


def _wish(said: str, previous: str) -> Wish | None:
    """What one clause asks for; topics that are set aside are an `Aside`."""
    clause, is_aside = _without_aside(_TAIL.sub("", said))
    for task, pattern in _BUILDS.items():
        if pattern.search(clause):
            return Build(task=task)
    if _is_about_a_folder(clause) and not _is_about_python(said):
        return Goal(goal=_with_antecedent(clause, previous))
    wish = _looked_into(clause, previous)
    if is_aside and isinstance(wish, Topics):
        return Aside(topics=tuple(_LEAD_IN.sub("", topic) or topic for topic in wish.topics))
    return wish


def _without_aside(clause: str) -> tuple[str, bool]:
    """A clause without "in the background", and whether that says how to go about it."""
    match = _ASIDE.search(clause)
    if match is None or (_ASKING.match(clause) and match[0][:1] not in ",;("):
        return clause, False
    rest = f"{clause[: match.start()]}{clause[match.end() :]}"
    return _TAIL.sub("", _THOROUGHLY.sub("", rest)).strip(), True


def _looked_into(clause: str, previous: str) -> Comparison | Topics | None:
    if (sides := _sides(clause)) is not None:
        return sides
    terms = key_terms(clause)
    if not set(terms) - _COURTESY:
        return _again(clause, previous) if _REFERS_BACK & set(tokens(clause)) else None
    items = _enumerated(clause)
    if len(items) > 1:
        return Topics(topics=items)
    if previous and len(terms) <= 2 and _REFERS_BACK & set(tokens(clause)):
        return _again(clause, previous)
    is_short = len(items) == 1 and len(items[0].split()) <= 3
    return Topics(topics=items if is_short else (clause,))


def _with_antecedent(goal: str, previous: str) -> str:
    """A goal about "one" or "them", with what that was in the question before."""
    about = " ".join(key_terms(previous))
    return f"{goal} ({about})" if about and _STANDS_FOR & set(tokens(goal)) else goal


def _again(clause: str, previous: str) -> Topics | None:
    """A question that leans on the one before it, asked with that one's topic."""
    about = " ".join(key_terms(previous))
    return Topics(topics=(f"{clause} ({about})",)) if about else None


def _is_about_a_folder(clause: str) -> bool:
    if any(pattern.search(clause) for pattern in (_PATH, _PLACE, _PLAN)):
        return True
    return bool(_CHANGE.search(clause)) and not _IN_GENERAL.search(clause)


def _is_about_python(said: str) -> bool:
    """Whether a clause is about what Python does with files, not about those of the folder."""
    return bool(_A_FILE.search(said) or _IN_PYTHON.search(said)) and not _PLACE.search(said)


def _sides(clause: str) -> Comparison | None:
    for pattern in _SIDES:
        if match := re.search(pattern, clause, re.IGNORECASE):
            a, b = _side(match["a"]), _side(match["b"])
            if _is_side(a) and _is_side(b):
                return Comparison(a=a, b=b)
    return None


def _side(text: str) -> str:
    text = _LEAD_IN.sub("", _TAIL.sub("", text.strip()))
    text = re.sub(r"^(?:both|either|whether)\s+", "", text, flags=re.IGNORECASE)
    return _ARTICLE.sub("", text).strip()


def _is_side(text: str) -> bool:
    """Whether a text is one thing: short, and not itself a list."""
    return 0 < len(text.split()) <= _LONGEST_SIDE and "," not in text


def _enumerated(clause: str) -> tuple[str, ...]:
    match = _ENUMERATION.match(clause)
    if match is None:
        return ()
    pieces = re.split(r",\s*(?:and |or )?|\s+and\s+|\s*&\s*|\s+as well as\s+", match["items"])
    items = tuple(_side(piece) for piece in pieces if piece.strip())
    return items if all(_is_topic(item) for item in items) else ()


def _is_topic(item: str) -> bool:
    words = set(item.lower().split())
    return 0 < len(item.split()) <= 4 and not (words & _CLAUSE_WORDS) and bool(key_terms(item))
