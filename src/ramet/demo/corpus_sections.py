"""Cuts the reference topics that ship with Python into titled sections of readable Markdown."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

TITLE_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
"""Stands in a title between a topic and the part of it."""

_LONGEST_SECTION = 2_200
_SHORTEST_BODY = 40
_SHORTEST_ENTRY = 60
_UNDERLINE = re.compile(r"([*=\-~^])\1{2,}$")
_ITEM = re.compile(r"(\*|-|\d+\.|\([0-9a-z]\)) +")
_SIGNATURE = re.compile(r"(?:class |exception |async )?[A-Za-z_][\w.]*(?:\(.*\)|\[.*\])?$")
_SENTENCE_TAIL = re.compile(r"\b(?:to|statements|as|by)$|^(?:is|are|was|were) ")
_ENTRY_NAME = re.compile(r"[A-Z][\w' -]*\w(?: \(.*\))?")
_PDB_COMMAND = re.compile(r"(\w{1,2})\((\w+)\)(?= |$)")
_ADMONITION = re.compile(r"(?:Note|Warning|See also|Important|Tip)(?::|$)")
_FOOTNOTES = "-[ Footnotes ]-"
_FOOTNOTE_MARK = re.compile(r" \[\d+\](?=[\s.,;:)]|$)")
_BROKEN_WORD = re.compile(r"(?<=\w)-\n(?=\w)")
_NESTED_QUOTES = re.compile(r'""([^"]+)""')
_QUOTES = re.compile(r'"([^"`]+)"')

BlockKind = Literal["heading", "signature", "text", "item", "code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A heading, a signature, a paragraph, a list item or a piece of code."""

    kind: BlockKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A piece of a topic that can be read on its own; the same topics give the same ids."""

    id: str
    topic: str
    title: str
    text: str


def cut_topics(topics: Mapping[str, str]) -> list[Section]:
    """Cut topics into sections; what a long topic repeats from a shorter one is left out."""
    seen: set[str] = set()
    sections: list[Section] = []
    for topic, text in sorted(topics.items(), key=lambda item: (len(item[1]), item[0])):
        fresh = [
            draft
            for draft in _drafts(text)
            if draft[1] not in seen and len(draft[1]) >= _SHORTEST_BODY
        ]
        seen.update(body for _, body in fresh)
        sections.extend(_with_ids(topic, fresh))
    return sections


def parse_blocks(text: str) -> list[Block]:
    """Read reST that was rendered as plain text; footnotes are left out."""
    return list(_blocks(text.split(_FOOTNOTES)[0].splitlines()))


def as_markdown(lines: Iterable[str]) -> str:
    """Join the lines of a paragraph; what the rendering put in straight quotes is code."""
    joined = _BROKEN_WORD.sub("-", "\n".join(line.strip() for line in lines)).replace("\n", " ")
    joined = re.sub(" {2,}", " ", _FOOTNOTE_MARK.sub("", joined)).strip()
    joined = _NESTED_QUOTES.sub(r'`"\1"`', joined)
    pieces = re.split(r"(`[^`]*`)", joined)
    return "".join(piece if piece[:1] == "`" else _QUOTES.sub(r"`\1`", piece) for piece in pieces)


def _drafts(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of a title and a Markdown body, long bodies in several parts."""
    top = part = signature = ""
    pending: list[Block] = []
    for block in [*parse_blocks(text), Block(kind="heading", text="")]:
        if block.kind not in ("heading", "signature"):
            pending.append(block)
            continue
        title = TITLE_SEPARATOR.join(piece for piece in (top, signature or part) if piece)
        yield from ((title, body) for body in _bodies(pending))
        pending = []
        if block.kind == "signature":
            signature = _short_signature(block.text)
            pending = [Block(kind="code", text=block.text)]
        elif not top:
            top = block.text
        else:
            part, signature = block.text, ""


def _bodies(blocks: list[Block]) -> Iterator[str]:
    """The Markdown of some blocks, cut before it grows too long; a lone signature gives none."""
    if not any(block.kind in ("text", "item") for block in blocks):
        return
    body = ""
    for previous, block in zip([None, *blocks], blocks, strict=False):
        rendered = f"```\n{block.text}\n```" if block.kind == "code" else block.text
        introduced = previous is not None and previous.text.endswith(":")
        if body and len(body) + len(rendered) > _LONGEST_SECTION and not introduced:
            yield body
            body = ""
        tight = previous is not None and previous.kind == block.kind == "item"
        body += (("\n" if tight else "\n\n") if body else "") + rendered
    yield body


def _with_ids(topic: str, drafts: list[tuple[str, str]]) -> Iterator[Section]:
    counts: dict[str, int] = {}
    titles: dict[str, int] = {}
    for title, body in drafts:
        last = title.rsplit(TITLE_SEPARATOR, 1)[-1] if TITLE_SEPARATOR in title else ""
        slug = re.sub(r"[^a-z0-9_]+", "-", last.lower()).strip("-")
        identity = f"{topic}/{slug}" if slug else topic
        counts[identity] = counts.get(identity, 0) + 1
        titles[title] = titles.get(title, 0) + 1
        yield Section(
            id=identity if counts[identity] == 1 else f"{identity}.{counts[identity]}",
            topic=topic,
            title=title if titles[title] == 1 else f"{title} ({titles[title]})",
            text=body,
        )


def _short_signature(signature: str) -> str:
    first = signature.splitlines()[0]
    name = re.sub(r"^(?:class|exception|async) ", "", first)
    if _PDB_COMMAND.match(name):
        return _PDB_COMMAND.sub(r"\1\2", name)
    return re.sub(r"\(.*", "()", name) if re.match(r"[\w.]+\(", name) else name


def _blocks(lines: list[str]) -> Iterator[Block]:
    index = 0
    while index < len(lines):
        line = lines[index]
        if not line.strip():
            index += 1
        elif _is_heading(lines, index):
            yield Block(kind="heading", text=re.sub(r'["*]', "", line).strip())
            index += 2
        elif line.startswith(("+-", "+=", "|")):
            end = _end_of_paragraph(lines, index)
            yield Block(kind="code", text="\n".join(lines[index:end]))
            index = end
        elif _indent(line) > 0:
            end = _end_of_indented(lines, index)
            yield from _indented(_dedent(lines[index:end]))
            index = end
        elif marker := _ITEM.match(line):
            end = _end_of_indented(lines, index + 1)
            yield from _item(marker, lines[index:end])
            index = end
        else:
            end = _end_of_flush(lines, index)
            body_end = _end_of_indented(lines, end)
            kind = _kind_of_paragraph(lines[index:end], lines[end:body_end])
            if kind == "plain":
                yield Block(kind="text", text=as_markdown(lines[index:end]))
                index = end
            else:
                body = list(_blocks(_dedent(lines[end:body_end])))
                yield from _with_body(kind, lines[index:end], body)
                index = body_end


def _with_body(kind: str, head: list[str], body: list[Block]) -> Iterator[Block]:
    """A signature, an admonition or an entry of a definition list, with what belongs to it."""
    if kind == "signature":
        yield Block(kind="signature", text="\n".join(head))
        yield from body
        return
    if kind == "definition" and _is_entry(head[0], body):
        yield Block(kind="heading", text=as_markdown(head))
        yield from body
        return
    first, rest = (body[0].text, body[1:]) if body and body[0].kind == "text" else ("", body)
    label = as_markdown(head).replace("**", "").rstrip(":")
    yield Block(kind="text", text=f"**{label}:** {first}".rstrip())
    yield from rest


def _is_entry(name: str, body: list[Block]) -> bool:
    """Whether a definition says enough to stand alone; some releases have headings there."""
    said = sum(len(block.text) for block in body)
    return said >= _SHORTEST_ENTRY and _ENTRY_NAME.fullmatch(name) is not None


def _kind_of_paragraph(head: list[str], below: list[str]) -> str:
    if not any(line.strip() for line in below):
        return "plain"
    if len(head) == 1 and _ADMONITION.match(head[0]):
        return "admonition"
    if below[0].strip():
        return "definition" if len(head) == 1 else "plain"
    if all(_SIGNATURE.match(line) for line in head):
        return "signature"
    free = len(head) == 1 and head[0][-1] not in ".:,;)" and not _SENTENCE_TAIL.search(head[0])
    return "signature" if free else "plain"


def _item(marker: re.Match[str], lines: list[str]) -> Iterator[Block]:
    width = marker.end()
    first = " " * width + lines[0][width:]
    inner = list(_blocks(_dedent([first, *lines[1:]])))
    sign = marker.group(1) if marker.group(1)[0].isdigit() else "-"
    if inner and inner[0].kind == "text":
        yield Block(kind="item", text=f"{sign} {inner[0].text}")
        inner = inner[1:]
    yield from inner


def _indented(lines: list[str]) -> Iterator[Block]:
    """An indented block without a head: prose or a list that was set off, else code."""
    if _ITEM.match(lines[0]) or _looks_like_prose(lines):
        yield from _blocks(lines)
    else:
        yield Block(kind="code", text="\n".join(lines).rstrip())


def _looks_like_prose(lines: list[str]) -> bool:
    text = " ".join(line.strip() for line in lines).strip()
    return text[:1].isupper() and text[-1:] in ".:" and not re.search(r"::=|>>>|[=(]\w|\w\(", text)


def _is_heading(lines: list[str], index: int) -> bool:
    if index + 1 >= len(lines) or _indent(lines[index]):
        return False
    return _UNDERLINE.match(lines[index + 1].strip()) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _dedent(lines: list[str]) -> list[str]:
    margin = min((_indent(line) for line in lines if line.strip()), default=0)
    return [line[margin:] for line in lines]


def _end_of_paragraph(lines: list[str], start: int) -> int:
    end = start
    while end < len(lines) and lines[end].strip():
        end += 1
    return end


def _end_of_flush(lines: list[str], start: int) -> int:
    end = start + 1
    while end < len(lines) and lines[end].strip() and not _indent(lines[end]):
        end += 1
    return end


def _end_of_indented(lines: list[str], start: int) -> int:
    """Where the lines that are blank or indented end; blank lines at the end are not taken."""
    end = position = start
    while position < len(lines) and (not lines[position].strip() or _indent(lines[position])):
        position += 1
        if lines[position - 1].strip():
            end = position
    return end
