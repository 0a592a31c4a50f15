"""Agent URLs: encoded path segments, the `/sub/` boundary between agents, and legal names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

SUB = "sub"
MAX_NAME_BYTES = 1024

# What encodeURIComponent leaves alone besides letters and digits.
_UNESCAPED = "-_.!~*'()"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAddress:
    """One step down from an agent to a sub-agent: kebab-case class and decoded name."""

    cls_segment: str
    name: str

    @property
    def path(self) -> str:
        """The step as it stands in a URL, without a leading slash."""
        return f"{SUB}/{encode_segment(self.cls_segment)}/{encode_segment(self.name)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubMatch:
    """The first boundary in a path, found by `find_sub`.

    Attributes:
        class_name: What `known` gave for the class segment.
        name: The sub-agent's decoded name.
        index: Where the `sub` segment stands.
        tail: The still encoded segments after the name, for the sub-agent to scan again.
    """

    class_name: str
    name: str
    index: int
    tail: tuple[str, ...]


def split_raw_path(raw_path: bytes | str) -> list[str]:
    """Split an undecoded path into its segments, still encoded; empty ones are dropped.

    Splitting comes before decoding, so that a `%2F` inside a name stays inside it. Bytes that are
    not UTF-8 are kept as surrogates, which `check_agent_name` refuses.
    """
    path = raw_path if isinstance(raw_path, str) else raw_path.decode("utf-8", "surrogateescape")
    return [segment for segment in path.partition("?")[0].split("/") if segment]


def decode_segment(segment: str) -> str:
    """Decode one segment's percent escapes; a `%` that starts none stands for itself."""
    return unquote(segment, errors="surrogateescape")


def encode_segment(text: str) -> str:
    """Encode a class segment or a name the way the browser clients do."""
    return quote(text, safe=_UNESCAPED)


def find_sub(segments: Sequence[str], known: Callable[[str], str | None]) -> SubMatch | None:
    """Find the first `sub`, known class, name among encoded segments; None without one.

    A `sub` that is not followed by a known class and a name is an ordinary segment, so an agent
    may be named `sub`.

    Args:
        segments: The path below the agent that asks, still encoded.
        known: Gives the class name for a decoded class segment, None when there is none.
    """
    for index in range(len(segments) - 2):
        if segments[index] != SUB:
            continue
        class_name = known(decode_segment(segments[index + 1]))
        if class_name is not None:
            return SubMatch(
                class_name=class_name,
                name=decode_segment(segments[index + 2]),
                index=index,
                tail=tuple(segments[index + 3 :]),
            )
    return None


def check_agent_name(name: str) -> str | None:
    """Say why an agent cannot have this name; None when it can (D28)."""
    if not name:
        return "An agent name must not be empty."
    if name in {".", ".."}:
        return f"An agent cannot be named {name!r}: a URL cannot carry it."
    if "\0" in name:
        return "An agent name must not contain NUL."
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "An agent name must be valid UTF-8."
    if size > MAX_NAME_BYTES:
        return f"An agent name has at most {MAX_NAME_BYTES} bytes in UTF-8; this one has {size}."
    return None
