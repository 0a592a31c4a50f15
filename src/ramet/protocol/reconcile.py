"""Matches the transcript a client sends to the stored one, so that neither loses to the other."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ramet.core.json import JsonObject, JsonValue, dumps
from ramet.protocol import tool_parts
from ramet.protocol.messages import normalise_tool_inputs, parts_of, with_parts
from ramet.protocol.ui_message import UIMessage

_Keys: TypeAlias = Callable[[UIMessage], Iterable[Hashable]]

_STEP_START: Final = "step-start"
_SHOWN_ONLY: Final = frozenset({"state", "providerMetadata"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """A client's transcript as it is to be stored.

    Attributes:
        messages: All of it, in the client's order, under the server's ids.
        changed: Those of them that are new or differ from what is stored.
        absent_ids: Stored messages that the client no longer has.
    """

    messages: list[UIMessage]
    changed: list[UIMessage]
    absent_ids: list[str]


def reconcile(incoming: Sequence[UIMessage], stored: Sequence[UIMessage]) -> Reconciled:
    """Match incoming messages to stored ones, each stored one at most once.

    An assistant message is matched by id, else by a tool call (id, tool and input agree), else by
    content, and takes the stored id. A stored tool call that has come further than the client's
    copy stands, above all a settled one; and so does the whole stored message where the client's
    copy was cut off while it streamed. An assistant message that only repeats calls settled
    elsewhere in the same transcript is dropped, unless it is the last. Tool inputs become objects.
    Neither list is changed, and doing it again changes nothing.
    """
    wanted = [normalise_tool_inputs(message) for message in _last_of_each_id(incoming)]
    held = [normalise_tool_inputs(message) for message in stored]
    matches = _matches(wanted, held)
    merged = [
        _merged(message, held[matches[place]]) if place in matches else message
        for place, message in enumerate(wanted)
    ]
    settled = {call for message in merged for call in _settled_calls(message)}
    last = len(merged) - 1
    messages = [
        message
        for place, message in enumerate(merged)
        if place in matches or place == last or not _only_repeats(message, settled)
    ]
    known = {str(message.get("id")): message for message in stored}
    ids = {str(message.get("id")) for message in messages}
    return Reconciled(
        messages=messages,
        changed=[one for one in messages if known.get(str(one.get("id"))) != one],
        absent_ids=[stored_id for stored_id in known if stored_id not in ids],
    )


def _last_of_each_id(messages: Iterable[UIMessage]) -> list[UIMessage]:
    return list({str(message.get("id")): message for message in messages}.values())


def _matches(incoming: Sequence[UIMessage], stored: Sequence[UIMessage]) -> dict[int, int]:
    """Pair places in both lists: all equal ids first, then tool calls, then content."""
    matches: dict[int, int] = {}
    for keys in (_id_keys, _call_keys, _content_keys):
        taken = set(matches.values())
        places = _places(stored, keys, taken)
        for place, message in enumerate(incoming):
            if place in matches:
                continue
            candidates = [at for key in keys(message) for at in places.get(key, ())]
            free = [at for at in candidates if at not in taken]
            if free:
                matches[place] = free[0]
                taken.add(free[0])
    return matches


def _places(stored: Sequence[UIMessage], keys: _Keys, taken: set[int]) -> dict[Hashable, list[int]]:
    places: dict[Hashable, list[int]] = {}
    for at, message in enumerate(stored):
        for key in keys(message) if at not in taken else ():
            places.setdefault(key, []).append(at)
    return places


def _id_keys(message: UIMessage) -> Iterable[Hashable]:
    return [str(message.get("id"))]


def _call_keys(message: UIMessage) -> Iterable[Hashable]:
    if message.get("role") != "assistant":
        return []
    calls = [(tool_parts.tool_call_id(part), part) for part in parts_of(message)]
    return [
        (call_id, tool_parts.tool_name(part), _canonical(part.get("input")))
        for call_id, part in calls
        if call_id is not None
    ]


def _content_keys(message: UIMessage) -> Iterable[Hashable]:
    if message.get("role") != "assistant":
        return []
    content = [_content(part) for part in parts_of(message) if part.get("type") != _STEP_START]
    return [tuple(content)] if content else []


def _content(part: JsonObject) -> str:
    return _canonical({key: value for key, value in part.items() if key not in _SHOWN_ONLY})


def _canonical(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{dumps(k)}:{_canonical(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return dumps(value)


def _merged(message: UIMessage, stored: UIMessage) -> UIMessage:
    if message.get("role") != "assistant" or stored.get("role") != "assistant":
        return message
    calls = {tool_parts.tool_call_id(part): part for part in parts_of(stored)}
    parts = parts_of(message)
    kept = [_further(part, calls.get(tool_parts.tool_call_id(part))) for part in parts]
    if _was_cut(parts, kept):
        return stored
    changed = any(new is not old for new, old in zip(kept, parts, strict=True))
    merged = with_parts(message, kept) if changed else message
    return {**merged, "id": stored["id"]}


def _was_cut(parts: Sequence[JsonObject], kept: Sequence[JsonObject]) -> bool:
    """Whether a client took its copy before the message was complete.

    A connection that drops in the middle leaves text that is streaming, or an open call at the
    end of which the server knows more.
    """
    if any(part.get("state") == "streaming" for part in parts):
        return True
    return bool(parts) and tool_parts.progress_of(parts[-1]) < tool_parts.progress_of(kept[-1])


def _further(part: JsonObject, stored: JsonObject | None) -> JsonObject:
    if stored is None or tool_parts.tool_call_id(part) is None:
        return part
    if tool_parts.is_settled(stored):
        return stored
    ahead = tool_parts.progress_of(stored) > tool_parts.progress_of(part)
    return stored if ahead else part


def _settled_calls(message: UIMessage) -> list[str]:
    calls = [(tool_parts.tool_call_id(part), part) for part in parts_of(message)]
    return [call for call, part in calls if call is not None and tool_parts.is_settled(part)]


def _only_repeats(message: UIMessage, settled: set[str]) -> bool:
    if message.get("role") != "assistant":
        return False
    parts = [part for part in parts_of(message) if part.get("type") != _STEP_START]
    return bool(parts) and all(
        tool_parts.tool_call_id(part) in settled and not tool_parts.is_settled(part)
        for part in parts
    )
