"""Reading the files of one folder, and nothing outside it; nothing is ever changed."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path, PurePosixPath

from ramet.core.json import JsonObject, JsonValue
from ramet.demo.errors import FolderRefused

_SKIPPED = frozenset(
    {"node_modules", "venv", "env", "__pycache__", "site-packages", "dist", "build", "target"}
)
_LARGEST_READ = 1_000_000
_LONGEST_LINE = 400
_LONGEST_SEARCHED = 1_000
_MOST_OF_ONE_FILE = 12
_MOST_FILES = 20_000
_PROBE = 4_096
_LANGUAGES = {
    ".py": "Python", ".pyi": "Python", ".ts": "TypeScript", ".tsx": "TypeScript",
    ".js": "JavaScript", ".jsx": "JavaScript", ".mjs": "JavaScript", ".md": "Markdown",
    ".rst": "reStructuredText", ".html": "HTML", ".css": "CSS", ".json": "JSON", ".toml": "TOML",
    ".yaml": "YAML", ".yml": "YAML", ".sh": "Shell", ".go": "Go", ".rs": "Rust", ".c": "C",
    ".h": "C", ".cpp": "C++", ".java": "Java", ".rb": "Ruby", ".sql": "SQL", ".txt": "text",
    ".cfg": "configuration", ".ini": "configuration",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file of the folder."""

    path: str
    """Relative to the folder, with slashes."""
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """Some lines of a file."""

    path: str
    start_line: int
    """The number of the first line, from 1."""
    end_line: int
    """The number of the last line; one less than the first when there is none."""
    total_lines: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A line with one or more of the words that were searched for."""

    path: str
    line: int
    text: str
    words: tuple[str, ...]
    """Those of the words that the line has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a folder holds, in numbers."""

    name: str
    files: int
    bytes: int
    languages: dict[str, int]
    """The number of files of each language, the most common first."""
    largest: tuple[FileEntry, ...]
    paths: tuple[str, ...]
    """The files nearest to the top of the folder, at most 200."""

    def to_json(self) -> JsonObject:
        """The description as a tool returns it."""
        languages: JsonObject = dict(self.languages)
        largest: list[JsonValue] = [{"path": one.path, "size": one.size} for one in self.largest]
        return {
            "name": self.name,
            "files": self.files,
            "bytes": self.bytes,
            "languages": languages,
            "largest": largest,
            "paths": list(self.paths),
        }


class Folder:
    """A folder whose files can be listed, read and searched.

    Hidden files, version control, virtual environments and what was installed or built are left
    out.
    A path that leads out of the folder, by `..` or by a link, is refused.

    Raises:
        FolderRefused: At construction, when there is no such folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        if not self.root.is_dir():
            raise FolderRefused(
                f"There is no folder {str(root)!r}; give the path of one that exists."
            )

    def list_files(self, pattern: str = "**/*", limit: int = 200) -> list[FileEntry]:
        """The files whose path fits a pattern such as `src/**/*.py`, by name, at most `limit`."""
        fits = _pattern(pattern)
        entries = (entry for entry in self._entries() if fits.fullmatch(entry.path))
        return sorted(entries, key=lambda entry: entry.path)[: max(limit, 0)]

    def read_text(self, path: str, start_line: int = 1, max_lines: int = 200) -> FileText:
        """Some lines of a text file, from `start_line` on.

        Raises:
            FolderRefused: The path leads out, is no file, or the file is binary or too large.
        """
        lines = self._lines(self._confined(path), path)
        start = max(start_line, 1)
        chosen = lines[start - 1 : start - 1 + max(max_lines, 0)]
        return FileText(
            path=path,
            start_line=start,
            end_line=start + len(chosen) - 1,
            total_lines=len(lines),
            text="\n".join(line[:_LONGEST_LINE] for line in chosen),
        )

    def search_text(self, words: str, limit: int = 40) -> list[Match]:
        """The lines in which any of the words begins a word.

        Those with the most words come first, words in the path count too; so that no file hides the
        others, three lines of each are given before more of any, and at most 12. Case does not
        matter, and `model` is found in `OfflineModel` too. Binary and very large files and very
        long lines are passed over.
        """
        names = dict.fromkeys(re.findall(r"\w+", words.lower()))
        wanted = {name: _begins_word(name) for name in names}
        if not wanted or limit < 1:
            return []
        ranked = []
        for entry in self._entries():
            in_path = sum(1 for begins in wanted.values() if begins.search(entry.path))
            for place, match in enumerate(self._best_of(entry, wanted)):
                rank = (-len(match.words) - in_path, place // 3, match.path, match.line)
                ranked.append((rank, match))
        return [match for _, match in sorted(ranked, key=itemgetter(0))[:limit]]

    def describe(self) -> Description:
        """What the folder holds: languages, counts and the largest files."""
        entries = sorted(self._entries(), key=lambda one: (one.path.count("/"), one.path))
        languages = Counter(language_of(one.path) for one in entries)
        return Description(
            name=self.root.name,
            files=len(entries),
            bytes=sum(one.size for one in entries),
            languages=dict(languages.most_common()),
            largest=tuple(sorted(entries, key=lambda one: (-one.size, one.path))[:5]),
            paths=tuple(one.path for one in entries[:200]),
        )

    def _entries(self) -> Iterator[FileEntry]:
        count = 0
        for folder, names, files in os.walk(self.root):
            names[:] = sorted(name for name in names if not _is_skipped(name))
            for name in sorted(files):
                path = Path(folder, name)
                if _is_skipped(name) or not self._is_inside(path) or not path.is_file():
                    continue
                count += 1
                if count > _MOST_FILES:
                    return
                relative = path.relative_to(self.root).as_posix()
                yield FileEntry(path=relative, size=path.stat().st_size)

    def _confined(self, path: str) -> Path:
        if "\0" in path:
            raise FolderRefused(f"{path!r} is not a path.")
        asked = PurePosixPath(path.replace("\\", "/"))
        if asked.is_absolute() or ".." in asked.parts:
            raise FolderRefused(
                f"{path!r} leads out of the folder; give a path inside it, without '..'."
            )
        if any(_is_skipped(part) for part in asked.parts):
            raise FolderRefused(f"{path!r} is hidden or installed; such files are not read here.")
        full = self.root / asked
        if not self._is_inside(full):
            raise FolderRefused(
                f"{path!r} is a link that leads out of the folder; it is not followed."
            )
        if not full.is_file():
            raise FolderRefused(
                f"There is no file {path!r} in the folder; list the files to see them."
            )
        return full

    def _is_inside(self, path: Path) -> bool:
        try:
            inside = path.resolve().relative_to(self.root)
        except (ValueError, OSError, RuntimeError):
            return False
        return not any(_is_skipped(part) for part in inside.parts)

    def _lines(self, full: Path, path: str) -> list[str]:
        try:
            size = full.stat().st_size
            if size > _LARGEST_READ:
                raise FolderRefused(
                    f"{path!r} has {size:,} bytes and is not read; the limit is {_LARGEST_READ:,}."
                )
            content = full.read_bytes()
        except OSError as error:
            raise FolderRefused(f"{path!r} cannot be read: {error.strerror}.") from error
        if b"\0" in content[:_PROBE]:
            raise FolderRefused(f"{path!r} is a binary file of {size:,} bytes; it is not read.")
        return content.decode(errors="replace").splitlines()

    def _best_of(self, entry: FileEntry, wanted: Mapping[str, re.Pattern[str]]) -> list[Match]:
        try:
            lines = self._lines(self.root / entry.path, entry.path)
        except FolderRefused:
            return []
        matches = [
            Match(path=entry.path, line=number, text=line.strip()[:_LONGEST_LINE], words=found)
            for number, line in enumerate(lines, start=1)
            if len(line) <= _LONGEST_SEARCHED
            and (found := tuple(word for word, begins in wanted.items() if begins.search(line)))
        ]
        return sorted(matches, key=lambda one: (-len(one.words), one.line))[:_MOST_OF_ONE_FILE]


def language_of(path: str) -> str:
    """The language of a file by its name."""
    suffix = PurePosixPath(path).suffix.lower()
    return _LANGUAGES.get(suffix, suffix.lstrip(".") or "other")


def _begins_word(word: str) -> re.Pattern[str]:
    """Finds a word where a word begins, be it a hump of camel case."""
    hump = re.escape(word.capitalize())
    return re.compile(rf"(?<![A-Za-z])(?i:{re.escape(word)})|{hump}")


def _is_skipped(name: str) -> bool:
    return name in _SKIPPED or (name.startswith(".") and name not in (".", ".."))


def _pattern(pattern: str) -> re.Pattern[str]:
    """A shell pattern as a regular expression; `**/` stands for any number of folders, or none."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    signs = {"**/": r"(?:[^/]+/)*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    return re.compile("".join(signs.get(piece, re.escape(piece)) for piece in pieces))
