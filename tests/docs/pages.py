"""The pages that users read, and the code blocks and links in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>.*)$")
_TITLE = re.compile(r'title="(?P<title>[^"]+)"')
_NOT_RUN = re.compile(r"^\s*<!-- not run: (?P<reason>.+) -->\s*$")
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(?P<text>.+?)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of code."""

    page: "Page"
    line: int
    """The line that its first line of code stands on."""
    language: str
    title: str | None
    """The file that it is; None for code that only shows something."""
    not_run: str | None
    """Why it is not run, from the comment right above it."""
    code: str

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page."""

    file: Path

    @property
    def name(self) -> str:
        """Its path from the root of the repository."""
        return self.file.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        """All of it."""
        return self.file.read_text(encoding="utf-8")

    def blocks(self) -> Iterator[Block]:
        """Its fenced blocks in order.

        Raises:
            ValueError: A fence is never closed.
        """
        lines = self.text.splitlines()
        number = 0
        while number < len(lines):
            opening = _FENCE.match(lines[number])
            number += 1
            if opening is None:
                continue
            begin = number
            while number < len(lines) and lines[number].strip() != "```":
                number += 1
            if number == len(lines):
                raise ValueError(f"{self.name}:{begin} opens a block that is never closed")
            yield self._block(opening, lines, begin=begin, end=number)
            number += 1

    def prose(self) -> str:
        """Its text without the fenced blocks."""
        return re.sub(r"^ *```.*?^ *```$", "", self.text, flags=re.DOTALL | re.MULTILINE)

    def links(self) -> Iterator[str]:
        """The targets of its links and pictures."""
        return (match["target"] for match in _LINK.finditer(self.prose()))

    def anchors(self) -> set[str]:
        """The names under which its headings can be linked to."""
        headings = (_HEADING.match(line) for line in self.prose().splitlines())
        return {_anchor(heading["text"]) for heading in headings if heading is not None}

    def _block(self, opening: re.Match[str], lines: list[str], *, begin: int, end: int) -> Block:
        indent, info = len(opening["indent"]), opening["info"].strip()
        above = lines[begin - 2] if begin >= 2 else ""
        title, not_run = _TITLE.search(info), _NOT_RUN.match(above)
        return Block(
            page=self,
            line=begin + 1,
            language=info.partition(" ")[0],
            title=title["title"] if title else None,
            not_run=not_run["reason"] if not_run else None,
            code="".join(f"{line[indent:]}\n" for line in lines[begin:end]),
        )


def _anchor(heading: str) -> str:
    """A heading's anchor as GitHub makes it."""
    kept = "".join(char for char in heading.lower() if char.isalnum() or char in " -_")
    return kept.replace(" ", "-")


PAGES = tuple(
    Page(file=file) for file in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if file.exists()
)
