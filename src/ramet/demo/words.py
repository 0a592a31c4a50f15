"""Words of questions and texts: tokens, stems, key terms and what a term is also called."""

import keyword
import re
from collections.abc import Iterable
from functools import lru_cache

_TOKEN = re.compile(r"[^\W_][\w]*|__\w+__|_\w+")
_F_STRING = re.compile(r"\bf[- ]?strings?\b", re.IGNORECASE)
_PHRASE = re.compile(r'"([^"]+)"')
_STATEMENT_NOUNS = frozenset({"statement", "loop", "keyword", "block", "clause", "expression"})


def word_set(text: str) -> frozenset[str]:
    """The words of a text that lists them, as a set."""
    return frozenset(text.split())


STOP_WORDS = word_set(
    """
    a about above after again against all also am an and any are aren as at be because been before
    being below between both but by can cannot could couldn did didn do does doesn doing don down
    during each else few for from further get got had has have having he help her here hers him his
    how i if in into is isn it its itself just know let like ll make many may me mean means might
    more most much must my need no nor not now of off often on once only or other ought our out over
    own please point re really s same say says shall she should show so some such t tell than thank
    thanks that the their them then there these they thing things this those through to too under
    until up us use used using ve very want was way we well were what when where whether which while
    who whom why will with would write you your explain describe summarise summarize define
    definition meaning exactly happen happens give example examples work works working python
    difference differences differ different compare compared comparison between vs versus
    """
)

GENERIC = word_set(
    """
    statement statements operator operators expression expressions function functions keyword
    keywords object objects method methods value values code language program programs name names
    syntax semantics type types block clause loop rule rules call called define defined create
    created run built evaluated argument arguments parameter parameters
    """
)

_CLAUSES = frozenset({"except", "finally", "else", "elif"})
_PAIRS = frozenset({"async for", "async with", "async def", "yield from", "not in", "is not"})

_POINTING = frozenset({"it", "this", "that", "these", "those", "they"})
_ENGLISH = _POINTING | {"what", "how", "why", "when", "where", "who", "which"}

_KEYWORD_TERMS = {
    "is": "identity",
    "in": "membership",
    "and": "boolean operations",
    "or": "boolean operations",
    "not": "boolean operations",
    "as": "with statement",
    "from": "import statement",
    "else": "else clause",
    "elif": "if statement",
}

_SYMBOL_TERMS = {
    ":=": "assignment expression",
    "==": "equality comparison",
    "!=": "equality comparison",
    "//": "floor division",
    "**": "power operator",
    "->": "return annotation",
    "+=": "augmented assignment",
    "...": "ellipsis",
    "<<": "shifting operations",
    "@": "decorator",
    "%": "modulo",
}

_ALSO_CALLED: dict[str, tuple[str, ...]] = {
    "walrus": ("assignment expression",),
    "constructor": ("__init__", "instance creation"),
    "destructor": ("__del__", "finalizer"),
    "inheritance": ("base class", "method resolution order"),
    "inherit": ("base class", "method resolution order"),
    "subclass": ("base class", "derived class"),
    "mro": ("method resolution order",),
    "closure": ("free variable", "nonlocal statement"),
    "ternary": ("conditional expression",),
    "array": ("list", "mutable sequence"),
    "hashmap": ("dictionary", "mapping"),
    "map": ("dictionary", "mapping"),
    "hash": ("dictionary", "__hash__"),
    "typing": ("annotation",),
    "hint": ("annotation",),
    "hinting": ("annotation",),
    "iterable": ("__iter__", "iterator"),
    "iterate": ("__iter__", "for statement"),
    "polymorphism": ("special method", "base class"),
    "overload": ("special method",),
    "overloading": ("special method",),
    "magic": ("special method",),
    "dunder": ("special method",),
    "switch": ("match statement",),
    "case": ("match statement",),
    "pattern": ("match statement",),
    "error": ("exception",),
    "throw": ("raise statement",),
    "catch": ("except clause", "try statement"),
    "wildcard": ("import statement",),
    "unpack": ("assignment target list", "iterable"),
    "unpacking": ("assignment target list", "iterable"),
    "coroutine": ("async def",),
    "concurrency": ("coroutine", "await"),
    "scope": ("resolution of names", "naming binding"),
    "variable": ("naming binding",),
    "property": ("descriptor",),
    "getter": ("descriptor", "attribute access"),
    "setter": ("descriptor", "attribute access"),
    "anonymous": ("lambda",),
    "parameter": ("function definition",),
    "argument": ("call",),
    "kwargs": ("keyword argument", "call"),
    "args": ("positional argument", "call"),
    "memory": ("garbage", "reference"),
    "gc": ("garbage", "reference"),
    "breakpoint": ("debugger",),
    "debug": ("debugger",),
    "interpolation": ("formatted string literal", "format string"),
    "monkeypatch": ("attribute reference",),
    "duck": ("special method",),
    "immutable": ("objects values types",),
    "comprehension": ("list displays", "dictionary displays"),
    "singleton": ("identity",),
    "private": ("reserved classes of identifiers", "private name mangling"),
    "underscore": ("reserved classes of identifiers",),
    "dataclass": ("class definition", "annotation"),
    "arithmetic": ("binary arithmetic operations",),
    "precedence": ("operator precedence",),
}


def tokens(text: str) -> list[str]:
    """The words of a text in lower case; names such as `__init__` stay whole."""
    return [match.group().lower() for match in _TOKEN.finditer(text)]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word without its most common English endings, so that forms of one word meet.

    Both sides of a comparison go through here; a stem need not be a word.
    """
    if "_" in word or len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def stems(text: str) -> list[str]:
    """The stems of a text's words, in order."""
    return [stem(token) for token in tokens(text)]


def searchable(text: str) -> list[str]:
    """The stems of a text under which it is found: a name such as `__slots__` also as `slots`."""
    found = stems(text)
    return found + [stem(name.strip("_")) for name in found if name.startswith("__")]


def key_terms(text: str) -> tuple[str, ...]:
    """What a question is about: its words without stop words, each once.

    A term may be several words: those in straight double quotes, and `the with statement` gives
    `with statement`, though `with` alone would be dropped. A question of nothing but keywords or
    symbols is about those.
    """
    text = _F_STRING.sub("formatted string literal", text)
    terms = [
        phrase for quoted in _PHRASE.findall(text) if " " in (phrase := " ".join(tokens(quoted)))
    ]
    if terms:
        text = _PHRASE.sub(" ", text)
    words = tokens(text)
    index = 0
    while index < len(words):
        word = words[index]
        following = words[index + 1] if index + 1 < len(words) else ""
        if f"{word} {following}" in _PAIRS:
            terms.append(f"{word} {following}")
            index += 1
        elif keyword.iskeyword(word) and following in _STATEMENT_NOUNS:
            terms.append(f"{word} {_noun(word, following)}")
            index += 1
        elif word not in STOP_WORDS:
            terms.append(word)
        index += 1
    terms.extend(term for symbol, term in _SYMBOL_TERMS.items() if _names_symbol(text, symbol))
    return _each_once(terms or _keywords_as_terms(text, words))


def specific_terms(terms: Iterable[str]) -> tuple[str, ...]:
    """The terms that say something of their own; all of them when none does."""
    every = tuple(terms)
    return tuple(term for term in every if not is_generic(term)) or every


def is_generic(term: str) -> bool:
    """Whether a term is one that nearly every passage has, such as `function`."""
    return term in GENERIC


def also_called(term: str) -> tuple[str, ...]:
    """Other words under which a reference may treat a term; empty when none are known."""
    wanted = stem(term)
    for name, others in _ALSO_CALLED.items():
        if wanted == stem(name):
            return others
    return ()


def shared_stems(terms: Iterable[str], text: str) -> tuple[str, ...]:
    """The terms that a text contains, words compared by their stems."""
    running = f" {' '.join(searchable(text))} "
    return tuple(term for term in terms if f" {' '.join(stems(term))} " in running)


def _noun(word: str, following: str) -> str:
    """What the reference calls a loop, a block or a keyword."""
    if word in _CLAUSES:
        return "clause"
    return "expression" if following == "expression" else "statement"


def _names_symbol(text: str, symbol: str) -> bool:
    return re.search(rf"(?:^|[\s`'\"]){re.escape(symbol)}(?:$|[\s`'\"?.,])", text) is not None


def _keywords_as_terms(text: str, words: list[str]) -> list[str]:
    quoted = [word for word in words if re.search(rf"[`'\"]{re.escape(word)}[`'\"]", text)]
    spoken = set() if quoted else _ENGLISH & set(words)
    if spoken & _POINTING:
        return []
    named = [word for word in quoted or words if keyword.iskeyword(word)]
    if spoken or len(named) > 1:
        named = [word for word in named if word != "is"]
    return [_KEYWORD_TERMS.get(word, f"{word} statement") for word in named]


def _each_once(terms: Iterable[str]) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for term in terms:
        seen.setdefault(" ".join(stems(term)), term)
    return tuple(seen.values())
