"""The planner's rules: list the folder, search it for the goal's words, read what matters, plan."""

import re
from dataclasses import dataclass

from ramet.core.json import JsonValue
from ramet.demo.offline_plan_text import (
    Excerpt,
    Findings,
    Goal,
    Kind,
    Mention,
    Overview,
    write_plan,
)
from ramet.demo.offline_turn import Answer, Call, CallTools, Move, ToolResult, Turn
from ramet.demo.words import also_called, key_terms, stem, word_set

PLANNER_TOOLS = frozenset({"list_files", "search_files", "read_file"})
_MOST_READ = 3
_FOLDER_WORDS = word_set(
    """
    folder folders project projects directory repo repository codebase code base file files module
    modules package source tree app application plan plans step steps please add added adding
    change changes changed rename renamed remove delete replace migrate move extract split fix
    write update upgrade introduce implement make new another one refactor roadmap find list read
    open inspect look located location live lives defined implemented used called mentioned contain
    contains content contents inside overview structure organised organized laid big large largest
    biggest small language languages written lines go need want improve support better way start
    begin first next goal
    """
)
_LOCATES = re.compile(
    r"\b(?:where|which (?:file|module)|who (?:calls|uses)|find|locate|look for|search for)\b",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:plan|steps|how (?:do|can|could|should|would|to)|should|add|rename|remove|delete|drop"
    r"|replace|migrate|move|extract|split|fix|write|update|upgrade|introduce|implement|port"
    r"|document|test|change|refactor|make|improve|support|goal)\b",
    re.IGNORECASE,
)
_DEFINITION = r"^(?:export )?(?:async )?(?:def|class|function|const|let|interface|type|struct|fn)\b"
_PATH = re.compile(r"[\w./-]*\w\.[a-z]\w{0,4}\b|\b[\w-]+(?:/[\w.-]+)+")
_INTRODUCTIONS = (
    "README.md",
    "README.rst",
    "README.txt",
    "README",
    "pyproject.toml",
    "package.json",
)
_BESIDE_SOURCE = re.compile(r"(?:^|/)(?:tests?|docs?)/|\.(?:md|rst|txt|toml|ya?ml|json)$")
_NOT_SOURCE = re.compile(r"(?:\.lock|lock\.json|\.min\.\w+|\.svg|LICENSE.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    path: str
    line: int
    score: float


def plan(turn: Turn) -> Move:
    """What the planner does next."""
    goal = _goal(turn.question)
    if not turn.steps:
        return _look_around(goal)
    if turn.every_result("read_file"):
        return _write(turn, goal)
    overview = _overview(turn)
    mentions = _mentions(turn)
    if goal.words and not mentions and (other := _other_words(goal, turn)):
        return _search_again(goal, other)
    return _read(goal, overview, mentions) or _write(turn, goal)


def _look_around(goal: Goal) -> Move:
    calls = [Call(tool="list_files", arguments={})]
    reason = "I look at what the folder holds"
    if goal.words:
        calls.append(Call(tool="search_files", arguments={"words": " ".join(goal.words)}))
        reason += f" and search its files for {_list(goal.words)}, both in one step."
    else:
        reason += "; the goal names nothing to search for."
    return CallTools(reason=reason, calls=tuple(calls))


def _search_again(goal: Goal, other: tuple[str, ...]) -> Move:
    return CallTools(
        reason=f"No line has {_list(goal.words)}, so I search for relatives: {_list(other)}.",
        calls=(Call(tool="search_files", arguments={"words": " ".join(other)}),),
    )


def _read(goal: Goal, overview: Overview, mentions: tuple[Mention, ...]) -> Move | None:
    """Read the files that say most about the goal, else those that introduce the project."""
    named = [_Candidate(path=path, line=1, score=100.0) for path in _named_files(goal, overview)]
    ranked = [*named, *_ranked(goal, mentions)]
    if goal.kind == "overview" or not ranked:
        ranked += [_Candidate(path=path, line=1, score=0) for path in _introductions(overview)]
    chosen: dict[str, _Candidate] = {}
    for candidate in ranked:
        chosen.setdefault(candidate.path, candidate)
    reads = list(chosen.values())[:_MOST_READ]
    if not reads:
        return None
    listed = ", ".join(f"`{candidate.path}`" for candidate in reads)
    why = "say most about it" if goal.words and mentions else "introduce the project"
    return CallTools(
        reason=f"These files {why}, so I read them in one step: {listed}.",
        calls=tuple(
            Call(
                tool="read_file",
                arguments={"path": candidate.path, "start_line": max(candidate.line - 3, 1)},
            )
            for candidate in reads
        ),
    )


def _write(turn: Turn, goal: Goal) -> Move:
    findings = Findings(
        goal=goal,
        overview=_overview(turn),
        mentions=_mentions(turn),
        excerpts=tuple(
            excerpt for result in turn.results("read_file") if (excerpt := _excerpt(result))
        ),
        searched=tuple(result.argument("words") for result in turn.every_result("search_files")),
        failures=tuple(_failure(result) for result in turn.failures()),
    )
    return Answer(
        reason={
            "overview": "The goal asks what is there, so I describe the folder from what I read.",
            "locate": "The goal asks where something is, so I name the places, definitions first.",
            "change": "The goal asks for a change, so I order the places found into steps.",
        }[goal.kind],
        text=write_plan(findings),
    )


def _goal(question: str) -> Goal:
    paths = tuple(dict.fromkeys(match.rstrip("./") for match in _PATH.findall(question)))
    text = question
    for path in paths:
        text = text.replace(path, " ")
    words = tuple(
        word
        for term in key_terms(text)
        for word in term.split()
        if word not in _FOLDER_WORDS and len(word) > 1
    )
    if not words:
        words = tuple(path.rsplit("/", 1)[-1].split(".")[0] for path in paths)
    return Goal(text=question, words=words, paths=paths, kind=_kind(question, words))


def _kind(question: str, words: tuple[str, ...]) -> Kind:
    if not words:
        return "overview"
    return "change" if _CHANGES.search(question) and not _LOCATES.search(question) else "locate"


def _other_words(goal: Goal, turn: Turn) -> tuple[str, ...]:
    """Parts, stems and other names of the goal's words that were not searched for yet."""
    done = {word for result in turn.every_result("search_files") for word in _searched(result)}
    parts = [part for word in goal.words for part in word.split("_") if len(part) > 2]
    roots = [stem(word) for word in goal.words]
    names = [name for word in goal.words for other in also_called(word) for name in other.split()]
    return tuple(dict.fromkeys(word for word in [*parts, *roots, *names] if word not in done))


def _searched(result: ToolResult) -> list[str]:
    return result.argument("words").split()


def _ranked(goal: Goal, mentions: tuple[Mention, ...]) -> list[_Candidate]:
    candidates = []
    for path in dict.fromkeys(mention.path for mention in mentions):
        own = [mention for mention in mentions if mention.path == path]
        defining = [mention for mention in own if re.match(_DEFINITION, mention.text)]
        words = {word for mention in own for word in mention.words}
        score = 3.0 * len(words) + min(len(own), 5) + 4.0 * bool(defining)
        score += 3.0 * sum(word in path.lower() for word in goal.words)
        score -= 8.0 * bool(_NOT_SOURCE.search(path)) + 4.0 * bool(_BESIDE_SOURCE.search(path))
        first = (defining or own)[0]
        candidates.append(_Candidate(path=path, line=first.line, score=score))
    return sorted(candidates, key=lambda one: (-one.score, one.path))


def _named_files(goal: Goal, overview: Overview) -> list[str]:
    """The files of the folder that the goal names by their path or the end of it."""
    return [
        path
        for named in goal.paths
        for path in overview.paths
        if path == named or path.endswith(f"/{named}")
    ]


def _introductions(overview: Overview) -> list[str]:
    return [path for path in _INTRODUCTIONS if path in overview.paths]


def _overview(turn: Turn) -> Overview:
    for result in turn.results("list_files"):
        content = result.content
        if isinstance(content, dict):
            return Overview(
                name=str(content.get("name", "")),
                files=_number(content.get("files")),
                languages=_counts(content.get("languages")),
                largest=_paths(content.get("largest")),
                paths=_paths(content.get("paths")),
            )
        return Overview(files=len(_paths(content)), paths=_paths(content))
    return Overview()


def _mentions(turn: Turn) -> tuple[Mention, ...]:
    rows = [row for result in turn.results("search_files") for row in _rows(result.content)]
    return tuple(
        Mention(
            path=str(row.get("path")),
            line=_number(row.get("line")),
            text=str(row.get("text", "")),
            words=_paths(row.get("words")),
        )
        for row in rows
    )


def _excerpt(result: ToolResult) -> Excerpt | None:
    content = result.content
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        return None
    return Excerpt(
        path=str(content.get("path", result.argument("path"))),
        start_line=_number(content.get("start_line")) or 1,
        total_lines=_number(content.get("total_lines")),
        text=str(content["text"]),
    )


def _failure(result: ToolResult) -> str:
    what = result.argument("path") or result.argument("words")
    return f"**Failed:** `{result.tool}`{f' of `{what}`' if what else ''} — {result.failure}"


def _rows(content: JsonValue) -> list[dict[str, JsonValue]]:
    return [row for row in content if isinstance(row, dict)] if isinstance(content, list) else []


def _paths(content: JsonValue) -> tuple[str, ...]:
    """Texts, or the paths of objects, as they come."""
    items = content if isinstance(content, list) else []
    plain = (item.get("path") if isinstance(item, dict) else item for item in items)
    return tuple(item for item in plain if isinstance(item, str))


def _counts(content: JsonValue) -> tuple[tuple[str, int], ...]:
    pairs = content.items() if isinstance(content, dict) else ()
    return tuple((name, _number(count)) for name, count in pairs)


def _number(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _list(words: tuple[str, ...]) -> str:
    return ", ".join(f"“{word}”" for word in words)
