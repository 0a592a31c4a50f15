"""Finds out from the path of a URL which agent it means, if any."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from ramet.core.paths import AgentPath, PathStep
from ramet.protocol.url import (
    SUB,
    check_agent_name,
    decode_segment,
    find_sub,
    split_raw_path,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The agent that is meant, and the decoded rest of the path for it ("/" when there is none)."""

    path: AgentPath
    rest: str


@dataclass(frozen=True, slots=True)
class NotOurs:
    """Not the URL of an agent at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownAgent:
    """The URL of an agent whose class is not a registered root."""

    segment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownSub:
    """A sub-agent is asked for, but no such class is registered, or its name is missing (D19)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadName:
    """A name on the way is one that no agent can have."""

    reason: str


Unresolved: TypeAlias = NotOurs | UnknownAgent | UnknownSub | BadName
Resolved: TypeAlias = Address | Unresolved


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressing:
    """How the URLs of one application are read."""

    prefix: tuple[str, ...]
    """The decoded segments before the class of the root agent."""
    root_class: Callable[[str], str | None]
    """Gives the name of a root class for its URL form."""
    sub_class: Callable[[str], str | None]
    """Gives the name of any class that can stand below a parent for its URL form."""

    def resolve(self, raw_path: bytes | str, *, root_path: str = "") -> Resolved:
        """Say what an undecoded path means.

        `root_path` is where the application is mounted: it is taken off the path when it is there,
        and not missed when a server left it out (D28).
        """
        segments = split_raw_path(raw_path)
        mount = [segment for segment in root_path.split("/") if segment]
        found = self._below(segments, [*mount, *self.prefix])
        if isinstance(found, NotOurs) and mount:
            return self._below(segments, list(self.prefix))
        return found

    def _below(self, segments: list[str], before: list[str]) -> Resolved:
        head, tail = segments[: len(before)], segments[len(before) :]
        if [decode_segment(segment) for segment in head] != before or len(tail) < 2:
            return NotOurs()
        class_name = self.root_class(decode_segment(tail[0]))
        if class_name is None:
            return UnknownAgent(segment=tail[0])
        return self._descend(PathStep(class_name, decode_segment(tail[1])), tail[2:])

    def _descend(self, root: PathStep, segments: list[str]) -> Resolved:
        steps = [root]
        while (match := find_sub(segments, self.sub_class)) is not None:
            steps.append(PathStep(match.class_name, match.name))
            segments = list(match.tail)
        for step in steps:
            reason = check_agent_name(step.name)
            if reason is not None:
                return BadName(reason=reason)
        if segments and segments[0] == SUB:
            return UnknownSub()
        rest = "/" + "/".join(decode_segment(segment) for segment in segments)
        return Address(path=AgentPath(tuple(steps)), rest=rest)


def prefix_segments(prefix: str) -> tuple[str, ...]:
    """The segments of a prefix as it is configured: "agents", "/api/agents/"."""
    return tuple(segment for segment in prefix.split("/") if segment)


def raw_path_of(scope: Mapping[str, object]) -> bytes | str:
    """The undecoded path of an ASGI scope; encoded anew when the server does not give it."""
    raw_path = scope.get("raw_path")
    if isinstance(raw_path, bytes) and raw_path:
        return raw_path
    return quote(str(scope.get("path", "/")))
