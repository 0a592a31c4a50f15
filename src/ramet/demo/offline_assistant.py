"""The assistant's rules: which children to send for a question, and an answer made of theirs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ramet.core.json import JsonValue
from ramet.demo.background import Notice
from ramet.demo.offline_questions import (
    Aside,
    Build,
    Comparison,
    Goal,
    Topics,
    Wish,
    read_question,
)
from ramet.demo.offline_researcher import LEAD, NOTHING, SOURCES
from ramet.demo.offline_turn import (
    Answer,
    Call,
    CallTools,
    Move,
    Tool,
    ToolResult,
    Turn,
    failure_of,
)
from ramet.demo.words import key_terms, shared_stems

_MOST_CALLS = 5
_HEADING = re.compile(r"^(#{1,4}) ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """What one child gave back about one thing."""

    about: str
    body: str
    sources: tuple[str, ...] = ()
    failure: str | None = None


def assist(turn: Turn, tools: Sequence[Tool]) -> Move:
    """What the assistant does next: one step of calls, then the answer."""
    if turn.notice is not None:
        return _pass_on(turn.notice)
    if turn.steps:
        return _compose(turn)
    wishes = read_question(turn.question, turn.previous)
    names = {tool.name for tool in tools}
    calls = [call for wish in wishes for call in _calls(wish, names)]
    calls = [call for place, call in enumerate(calls) if call not in calls[:place]]
    if not calls:
        return _introduce(turn, tools)
    return CallTools(reason=_why(wishes, calls), calls=tuple(calls[:_MOST_CALLS]))


def _calls(wish: Wish, names: set[str]) -> Iterator[Call]:
    """The calls for a wish; a tool that is not there is replaced by `research`."""
    own = tuple(_own_calls(wish))
    yield from own if all(call.tool in names for call in own) else _instead(wish, names)


def _own_calls(wish: Wish) -> Iterator[Call]:
    match wish:
        case Comparison(a=a, b=b):
            yield Call(tool="compare", arguments={"a": a, "b": b})
        case Goal(goal=goal):
            yield Call(tool="plan", arguments={"goal": goal})
        case Build(task=task):
            yield Call(tool="build", arguments={"task": task})
        case Aside(topics=topics):
            for topic in topics:
                yield Call(tool="research_in_background", arguments={"query": topic})
        case Topics(topics=topics):
            for topic in topics:
                yield Call(tool="research", arguments={"query": topic})


def _instead(wish: Wish, names: set[str]) -> Iterator[Call]:
    """Research of whatever the wish is about, if at least that can be done."""
    match wish:
        case Comparison(a=a, b=b):
            topics: tuple[str, ...] = (a, b)
        case Goal(goal=goal):
            topics = (goal,)
        case Aside(topics=topics):
            pass
        case _:
            topics = ()
    if "research" in names:
        yield from (Call(tool="research", arguments={"query": topic}) for topic in topics)


def _why(wishes: list[Wish], calls: list[Call]) -> str:
    reasons = list(dict.fromkeys(_why_one(wish) for wish in wishes))
    several = f" That makes {len(calls)} calls in one step." if len(calls) > 1 else ""
    return " ".join(reasons) + several


def _why_one(wish: Wish) -> str:
    match wish:
        case Comparison(a=a, b=b):
            return f"The question sets “{a}” and “{b}” side by side, so I compare them."
        case Goal():
            return "The question is about a folder or about changing files, so I ask for a plan."
        case Aside():
            return "This may be done in the background, so I let go of it and go on."
        case Build():
            return "This is a task of the project, which runs in the background."
        case Topics(topics=(_,)):
            return "The question has one topic, so one piece of research should do."
        case Topics(topics=topics):
            named = ", ".join(f"“{topic}”" for topic in topics)
            return (
                f"The question names {len(topics)} topics ({named}), so each gets its own research."
            )


def _introduce(turn: Turn, tools: Sequence[Tool]) -> Move:
    """An answer without a tool, made of what the tools say about themselves."""
    thanked = bool({"thanks", "thank", "thx", "cheers"} & set(turn.question.lower().split()))
    abilities = [f"- **{tool.name}** — {_first_line(tool.description)}" for tool in tools]
    lead = "You are welcome." if thanked else "Hello."
    lead += " I follow fixed rules rather than a language model: I work with tools, and quote them."
    said = ["This is what I can use:", "\n".join(abilities)] if tools else ["I have no tools here."]
    return Answer(
        reason="The message names no topic, so there is nothing to look up.",
        text="\n\n".join([lead, *said]),
    )


def _first_line(description: str) -> str:
    return description.strip().split("\n\n")[0].replace("\n", " ") or "no description"


def _pass_on(notice: Notice) -> Answer:
    """What became of a run in the background, in the words it came with."""
    if notice.failure is not None:
        return Answer(
            reason="What was let go of did not come to its end, so I say why.",
            text=f"**{notice.title}** did not finish: {notice.failure}.",
        )
    lead, _, rest = notice.found.partition("\n\n")
    body = rest if lead.startswith(LEAD) and rest else notice.found
    return Answer(
        reason="What was let go of has reported back, so I pass on what it found.",
        text=f"**{notice.title}** is done.\n\n{body}".rstrip(),
    )


def _compose(turn: Turn) -> Move:
    every = [result for step in turn.steps for result in step]
    started = [result for result in every if _is_started(result)]
    results = [result for result in every if result not in started]
    if not results:
        return _set_going(started)
    findings = [finding for result in results for finding in _findings(result)]
    answered = [finding for finding in findings if finding.failure is None]
    failed = [finding for finding in findings if finding.failure is not None]
    blocks = [*_lead(findings), *_shared(results), *_sections(answered)]
    blocks += [f"**Not answered:** {_about(one)} failed — {one.failure}" for one in failed]
    sources = list(dict.fromkeys(source for finding in answered for source in finding.sources))
    if sources:
        blocks.append("\n".join([SOURCES, "", *sources]))
    if started:
        blocks.append(_at_work(started))
    return Answer(reason=_how_composed(answered, failed), text="\n\n".join(blocks))


def _is_started(result: ToolResult) -> bool:
    return result.failure is None and _title(result) != ""


def _title(result: ToolResult) -> str:
    """The title of what was let go of; empty for a result that holds an answer."""
    content = result.content
    title = content.get("started") if isinstance(content, dict) else None
    return title if isinstance(title, str) else ""


def _set_going(started: list[ToolResult]) -> Answer:
    return Answer(
        reason="Nobody waits for what runs in the background, so I say that it has begun.",
        text=_at_work(started),
    )


def _at_work(started: list[ToolResult]) -> str:
    names = " and ".join(f"**{_title(result)}**" for result in started)
    return (
        f"At work in the background: {names}. I tell you here what comes of it; "
        "ask me something else meanwhile."
    )


def _lead(findings: list[_Finding]) -> Iterator[str]:
    """How many of several questions were answered; nothing where one answer speaks for itself."""
    if len(findings) == 1 and findings[0].failure is None:
        return
    found = [one for one in findings if one.failure is None and not _is_empty(one)]
    named = ", ".join(f"**{one.about}**" for one in found)
    if not found:
        yield "None of this could be answered."
    elif len(found) < len(findings):
        yield f"{len(found)} of {len(findings)} questions were answered: {named}."
    else:
        all_of_them = "Both" if len(found) == 2 else f"All {len(found)}"
        yield f"{all_of_them} questions were answered: {named}."


def _is_empty(finding: _Finding) -> bool:
    return finding.body.startswith(NOTHING)


def _sections(answered: list[_Finding]) -> Iterator[str]:
    if len(answered) == 1:
        yield answered[0].body
        return
    for finding in answered:
        yield f"### {finding.about}"
        yield _HEADING.sub(r"##\1 ", finding.body).replace("#######", "######")


def _shared(results: list[ToolResult]) -> Iterator[str]:
    """For each comparison, the quoted lines that speak of both sides."""
    for result in results:
        if result.tool != "compare" or result.failure is not None:
            continue
        a, b = result.argument("a"), result.argument("b")
        quoted = [piece for finding in _findings(result) for piece in _quoted(finding.body)]
        both = [piece for piece in dict.fromkeys(quoted) if _has_all(piece, key_terms(f"{a} {b}"))]
        if both:
            yield f"### {a} and {b} together"
            yield "\n>\n".join(f"> {piece}" for piece in both[:2])


def _quoted(body: str) -> Iterator[str]:
    """The running texts that a body quotes, without the lines that name a source."""
    for line in body.splitlines():
        if line.startswith("> ") and not line.startswith("> — "):
            yield from line.removeprefix("> ").split(" … ")


def _has_all(text: str, terms: tuple[str, ...]) -> bool:
    return bool(terms) and len(shared_stems(terms, text)) == len(terms)


def _how_composed(answered: list[_Finding], failed: list[_Finding]) -> str:
    said = f"I put together what came back, each part under its own name ({len(answered)})."
    if len(answered) == 1:
        said = (
            "The research found nothing, and I add nothing of my own."
            if _is_empty(answered[0])
            else "One result came back, so I pass it on with its sources."
        )
    if failed:
        said += f" {len(failed)} failed; I name what failed instead of filling the gap."
    return said


def _findings(result: ToolResult) -> Iterator[_Finding]:
    """What a result holds: one finding, or one for each side of a comparison."""
    if result.failure is not None:
        named = (result.argument(name) for name in ("query", "goal", "task"))
        about = next(filter(None, named), "") or _both(result)
        yield _Finding(about=about or result.tool, body="", failure=result.failure)
    elif result.tool == "compare" and isinstance(result.content, dict):
        for side in ("a", "b"):
            yield _finding(result.argument(side) or side, result.content.get(side))
    else:
        about = result.argument("query") or result.argument("goal") or result.tool
        yield _finding(about, result.content)


def _both(result: ToolResult) -> str:
    return " and ".join(side for side in (result.argument("a"), result.argument("b")) if side)


def _finding(about: str, content: JsonValue) -> _Finding:
    failure = failure_of(content)
    if failure is not None:
        return _Finding(about=about, body="", failure=failure)
    text = _text(content)
    body, _, listed = text.partition(SOURCES)
    lead, _, rest = body.partition("\n\n")
    if lead.startswith(LEAD) and rest:
        body = rest
    sources = tuple(line for line in listed.splitlines() if line.startswith("- "))
    if not body.strip():
        return _Finding(about=about, body="", failure="it came back empty")
    return _Finding(about=about, body=body.strip(), sources=sources)


def _text(content: JsonValue) -> str:
    """The Markdown of a result, which may be wrapped in an object."""
    if isinstance(content, dict):
        texts = (content.get(key) for key in ("text", "answer", "summary", "output"))
        return next((text for text in texts if isinstance(text, str)), "")
    return content if isinstance(content, str) else ""


def _about(finding: _Finding) -> str:
    return f"“{finding.about}”"
