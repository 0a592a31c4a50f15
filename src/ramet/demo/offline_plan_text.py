"""Writes the planner's answer in Markdown from what was found in a folder."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["overview", "locate", "change"]

_DEFINED = re.compile(
    r"^(?:export )?(?:async )?(?:def|class|function|const|interface|type|struct|fn) (\w+)",
    re.MULTILINE,
)
_TEST = re.compile(r"(?:^|/)(?:tests?|spec)/|(?:^|/)test_|\.(?:test|spec)\.|_test\.")
_PROSE = (".md", ".rst", ".txt")
_CHECKS = re.compile(r"(?:scripts|bin)/(?:test|check|ci)\w*|Makefile|noxfile\.py|tox\.ini|justfile")
_VERBS: tuple[tuple[str, str], ...] = (
    ("rename", "Rename it there first, so that every use that is left fails loudly."),
    ("remove|delete|drop", "Take away the uses listed below first, what is defined there last."),
    (
        "fix|debug|repair",
        "Write down what goes wrong there as a failing test, then change the code.",
    ),
    ("split|extract|refactor|move", "Move one piece at a time, and run the checks after each."),
    ("document|docs|docstring", "Write down there what a caller cannot see from the names."),
    ("test", "List what is promised there; each promise is a test."),
    (
        "add|introduce|implement|support|write",
        "Add the new part beside it, in the shape of its neighbours.",
    ),
)
_SHOWN_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is to be planned."""

    text: str
    words: tuple[str, ...]
    """What to search the files for."""
    paths: tuple[str, ...]
    """Files that it names."""
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What the folder holds."""

    name: str = ""
    files: int = 0
    languages: tuple[tuple[str, int], ...] = ()
    largest: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A line that has words of the goal."""

    path: str
    line: int
    text: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A part of a file that was read."""

    path: str
    start_line: int
    total_lines: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that is known when the answer is written."""

    goal: Goal
    overview: Overview
    mentions: tuple[Mention, ...]
    excerpts: tuple[Excerpt, ...]
    searched: tuple[str, ...]
    failures: tuple[str, ...]


def write_plan(findings: Findings) -> str:
    """The answer: what the folder holds, where the goal's words are, and what to do about it."""
    blocks = [_scene(findings)]
    match findings.goal.kind:
        case "overview":
            blocks += _introduction(findings)
        case "locate":
            blocks += _places(findings)
        case "change":
            blocks += _change(findings)
    blocks += findings.failures
    if findings.excerpts:
        read = [f"- `{one.path}`, {_lines_read(one)}" for one in findings.excerpts]
        blocks.append("\n".join(["**Sources**", "", *read]))
    return "\n\n".join(blocks)


def _scene(findings: Findings) -> str:
    overview = findings.overview
    languages = _and(f"{name} ({count})" for name, count in overview.languages[:3])
    said = f"The folder **{overview.name or 'given'}** has {overview.files} files"
    said += f", mostly {languages}." if languages else "."
    if not findings.goal.words:
        return said
    files = len({mention.path for mention in findings.mentions})
    if not files:
        tried = " and ".join(f"“{words}”" for words in findings.searched)
        return f"{said} No line of them has {tried}."
    words = _and(f"“{word}”" for word in _words_found(findings))
    return f"{said} I found {words} in {_count(files, 'file')}."


def _introduction(findings: Findings) -> Iterator[str]:
    overview = findings.overview
    tops = Counter(path.split("/", 1)[0] + "/" for path in overview.paths if "/" in path)
    if tops:
        rows = [f"- `{top}` — {_count(count, 'file')}" for top, count in tops.most_common(8)]
        yield "\n".join(["### How it is laid out", "", *rows])
    if overview.largest:
        yield "The largest files are " + _and(f"`{path}`" for path in overview.largest[:3]) + "."
    for excerpt in findings.excerpts:
        if quoted := _opening(excerpt):
            yield f"### From `{excerpt.path}`\n\n{quoted}"


def _opening(excerpt: Excerpt) -> str:
    """How a file begins: the first paragraphs of prose, the first lines of anything else."""
    if not excerpt.path.endswith(_PROSE):
        shown = "\n".join(excerpt.text.splitlines()[:_SHOWN_LINES])
        return f"```\n{shown}\n```" if shown.strip() else ""
    paragraphs = [block.strip("\n") for block in excerpt.text.split("\n\n") if block.strip()]
    prose = [block for block in paragraphs if not re.match(r"[#!<`|\[>\s-]", block)][:2]
    return "\n>\n".join("\n".join(f"> {line}" for line in block.splitlines()) for block in prose)


def _places(findings: Findings) -> Iterator[str]:
    defining = [mention for mention in findings.mentions if _DEFINED.match(mention.text)]
    for mention in _exact(findings, defining)[:2]:
        yield f"`{mention.path}` defines it in line {mention.line}:"
        yield _code_at(findings, mention)
    rest = _by_file(findings)
    if rest:
        rows = [_row(path, mentions) for path, mentions in list(rest.items())[:8]]
        yield "\n".join(["### Where it is mentioned", "", *rows])


def _exact(findings: Findings, defining: list[Mention]) -> list[Mention]:
    """The lines that define just what the goal names, if there are any."""
    named = [
        mention
        for mention in defining
        if (match := _DEFINED.match(mention.text)) and match[1].lower() in findings.goal.words
    ]
    return named or defining


def _code_at(findings: Findings, mention: Mention) -> str:
    for excerpt in findings.excerpts:
        offset = mention.line - excerpt.start_line
        lines = excerpt.text.splitlines()
        if excerpt.path == mention.path and 0 <= offset < len(lines):
            shown = "\n".join(lines[offset : offset + _SHOWN_LINES])
            return f"```\n{shown}\n```"
    return f"```\n{mention.text}\n```"


def _change(findings: Findings) -> Iterator[str]:
    if not findings.mentions:
        yield from _introduction(findings)
        yield "I found nothing about that yet, so the first step is to decide where it belongs."
        return
    by_file = _by_file(findings)
    first = findings.excerpts[0].path if findings.excerpts else next(iter(by_file))
    rows = [_row(path, mentions) for path, mentions in list(by_file.items())[:6]]
    yield "\n".join(["### What is there", "", *rows])
    for excerpt in findings.excerpts:
        if names := list(dict.fromkeys(_DEFINED.findall(excerpt.text)))[:4]:
            yield f"`{excerpt.path}` defines {_and(f'`{name}`' for name in names)}."
    steps = [f"{number}. {step}" for number, step in enumerate(_steps(findings, first), start=1)]
    yield "\n".join(["### Steps", "", *steps])


def _steps(findings: Findings, first: str) -> Iterator[str]:
    by_file = _by_file(findings)
    own = by_file.get(first, [])
    where = f", line {own[0].line} (`{_code_span(own[0].text)}`)" if own else ""
    yield f"Start in `{first}`{where}."
    yield _advice(findings.goal.text)
    rest = [path for path in by_file if path != first]
    code = [path for path in rest if not _TEST.search(path) and not path.endswith(_PROSE)]
    if code:
        yield f"Follow it through what also mentions it: {_and(_spot(by_file, code))}."
    if tests := [path for path in by_file if _TEST.search(path) and path != first]:
        yield f"Bring the tests along: {_and(_spot(by_file, tests))}."
    else:
        yield _missing_test(findings)
    if prose := [path for path in rest if path.endswith(_PROSE) and not _TEST.search(path)]:
        yield f"Correct what is written about it: {_and(_spot(by_file, prose))}."
    if checks := [path for path in findings.overview.paths if _CHECKS.fullmatch(path)]:
        yield f"Run the checks that come with the project (`{checks[0]}`)."


def _missing_test(findings: Findings) -> str:
    tests = [path for path in findings.overview.paths if _TEST.search(path)]
    near = f"; `{tests[0]}` shows how tests look here" if tests else ""
    return f"I found no test that mentions it: write one first{near}."


def _advice(goal: str) -> str:
    for verbs, advice in _VERBS:
        if re.search(rf"\b(?:{verbs})", goal, re.IGNORECASE):
            return advice
    return "Change it there, in one small step that can be checked on its own."


def _by_file(findings: Findings) -> dict[str, list[Mention]]:
    """Mentions of each file, definitions first; what was read comes first, then the most lines."""
    grouped: dict[str, list[Mention]] = {}
    for mention in sorted(findings.mentions, key=lambda one: _DEFINED.match(one.text) is None):
        grouped.setdefault(mention.path, []).append(mention)
    read = [excerpt.path for excerpt in findings.excerpts]
    return dict(
        sorted(
            grouped.items(),
            key=lambda item: (
                read.index(item[0]) if item[0] in read else len(read),
                -_weight(item[1]),
            ),
        )
    )


def _weight(mentions: list[Mention]) -> int:
    return 10 * len({word for mention in mentions for word in mention.words}) + len(mentions)


def _row(path: str, mentions: list[Mention]) -> str:
    shown = _code_span(mentions[0].text)
    count = _count(len(mentions), "line")
    return f"- `{path}` — {count}, such as {mentions[0].line}: `{shown}`"


def _spot(by_file: dict[str, list[Mention]], paths: list[str]) -> Iterator[str]:
    for path in paths[:4]:
        numbers = sorted({mention.line for mention in by_file[path]})[:3]
        plural = "lines" if len(numbers) > 1 else "line"
        yield f"`{path}` ({plural} {', '.join(str(number) for number in numbers)})"


def _words_found(findings: Findings) -> list[str]:
    return sorted({word for mention in findings.mentions for word in mention.words})


def _lines_read(excerpt: Excerpt) -> str:
    end = excerpt.start_line + max(len(excerpt.text.splitlines()) - 1, 0)
    return f"lines {excerpt.start_line} to {end} of {excerpt.total_lines}"


def _code_span(text: str) -> str:
    """A line of code that fits in a sentence and cannot end its code span."""
    shown = text.strip().replace("`", "'")
    return shown if len(shown) <= 80 else shown[:79].rstrip() + "…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _and(items: Iterable[str]) -> str:
    every = list(items)
    return " and ".join([", ".join(every[:-1]), every[-1]] if len(every) > 1 else every)
