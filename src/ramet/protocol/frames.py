"""Builders for the frames a server sends, except run events: each gives the JSON text to send."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from ramet.core.json import JsonObject, dumps
from ramet.protocol import types

Outcome: TypeAlias = Literal["completed", "error", "aborted", "skipped", "recovering"]
NothingReason: TypeAlias = Literal["idle", "continuation-owned"]

_CHAT_RESPONSE_HEAD = f'{{"type":"{types.CHAT_RESPONSE}","id":'
_MCP_SERVERS = dumps(
    {
        "type": types.MCP_SERVERS,
        "mcp": {"servers": {}, "tools": [], "prompts": [], "resources": []},
    }
)


def identity(name: str, agent: str, *, state_follows: bool) -> str:
    """Say who the connection has reached.

    Args:
        name: The leaf's decoded instance name.
        agent: The leaf's class name in kebab case.
        state_follows: Promises that the very next frame is the state; a client waits for it.
    """
    frame: JsonObject = {"type": types.IDENTITY, "name": name, "agent": agent}
    if state_follows:
        frame["stateFollows"] = True
    return dumps(frame)


def state(value: object) -> str:
    """Carry the whole state; raises NotJson when JSON cannot carry it."""
    return dumps({"type": types.STATE, "state": value})


def state_error(text: str) -> str:
    """Tell one client why its state was not taken."""
    return dumps({"type": types.STATE_ERROR, "error": text})


def mcp_servers() -> str:
    """Say that there are no MCP servers."""
    return _MCP_SERVERS


def rpc_result(id: str, result: object, *, done: bool) -> str:
    """Answer a call, or carry one item of a stream when not done; raises NotJson."""
    return dumps({"type": types.RPC, "id": id, "success": True, "done": done, "result": result})


def rpc_error(id: str, error: str) -> str:
    """Fail a call."""
    return dumps({"type": types.RPC, "id": id, "success": False, "error": error})


def chat_response(  # noqa: PLR0913 - one argument for each key the frame can have
    id: str,
    *,
    body: str,
    done: bool,
    error: bool = False,
    continuation: bool = False,
    replay: bool = False,
    replay_complete: bool = False,
    seq: int | None = None,
    message_ids: Sequence[str] | None = None,
    outcome: Outcome | None = None,
) -> str:
    """Carry one chunk of a turn, or end it.

    Args:
        id: The request that the turn answers.
        body: The encoded chunk; empty on control frames; plain text with `error`.
        done: Marks the one final frame of the request.
        error: The turn failed; `body` is the text to show.
        continuation: The turn extends the last assistant message.
        replay: Sent again from storage.
        replay_complete: Ends the stored part of a stream that is still live.
        seq: The chunk's index in its stream; None for a chunk that is not stored.
        message_ids: The user messages the turn answers, on a final frame.
        outcome: How the turn ended, on a final frame.
    """
    frame = f'{_CHAT_RESPONSE_HEAD}{dumps(id)},"body":{dumps(body)},"done":'
    frame += "true" if done else "false"
    if error or continuation or replay or replay_complete:
        flags = {
            "error": error,
            "continuation": continuation,
            "replay": replay,
            "replayComplete": replay_complete,
        }
        frame += "".join(f',"{key}":true' for key, is_set in flags.items() if is_set)
    if seq is not None:
        frame += f',"seq":{seq}'
    if message_ids is not None:
        frame += f',"messageIds":{dumps(message_ids)}'
    if outcome is not None:
        frame += f',"outcome":"{outcome}"'
    return frame + "}"


class ChatChunkEnvelope:
    """Frames the chunks of one turn by putting text around the encoded body."""

    __slots__ = ("_head", "_tail")

    def __init__(self, id: str, *, continuation: bool = False, replay: bool = False) -> None:
        self._head = f'{_CHAT_RESPONSE_HEAD}{dumps(id)},"body":'
        self._tail = ',"done":false'
        self._tail += ',"continuation":true' if continuation else ""
        self._tail += ',"replay":true' if replay else ""
        self._tail += ',"seq":'

    def frame(self, seq: int, body: str) -> str:
        """Frame one encoded chunk under its index; the same text as `chat_response` gives."""
        return f"{self._head}{dumps(body)}{self._tail}{seq}}}"


def chat_messages(messages: Sequence[Mapping[str, object]], *, connect: bool = False) -> str:
    """Carry the whole transcript; `connect` only in the greeting of a new connection."""
    frame: dict[str, object] = {"type": types.CHAT_MESSAGES, "messages": messages}
    if connect:
        frame["connect"] = True
    return dumps(frame)


def transcript(messages: str, *, connect: bool = False) -> str:
    """Carry the whole transcript like `chat_messages`, from the JSON text of its messages."""
    tail = ',"connect":true' if connect else ""
    return f'{{"type":"{types.CHAT_MESSAGES}","messages":{messages}{tail}}}'


def chat_clear() -> str:
    """Say that the chat was cleared."""
    return dumps({"type": types.CHAT_CLEAR})


def stream_resuming(
    id: str, *, probe_id: str | None = None, goes_on_for: Sequence[str] = ()
) -> str:
    """Offer a stream; the client answers with an ACK. With a probe id, answers that probe.

    Args:
        id: The request whose answer it is.
        probe_id: The probe that this answers, if it answers one.
        goes_on_for: The requests whose turns were lost, and that this one goes on for.
    """
    lost = [*goes_on_for] or None
    return _chat_frame(types.STREAM_RESUMING, id=id, probeId=probe_id, goesOnFor=lost)


def stream_pending(id: str | None = None, *, probe_id: str | None = None) -> str:
    """Say that a turn is accepted and has not begun to stream."""
    return _chat_frame(types.STREAM_PENDING, id=id, probeId=probe_id)


def stream_resume_none(*, reason: NothingReason | None = None, probe_id: str | None = None) -> str:
    """Say that there is nothing to resume."""
    return _chat_frame(types.STREAM_RESUME_NONE, reason=reason, probeId=probe_id)


def message_updated(message: Mapping[str, object]) -> str:
    """Replace one message of the transcript."""
    return dumps({"type": types.MESSAGE_UPDATED, "message": message})


def chat_recovering(
    recovering: bool,  # noqa: FBT001 - it is what the frame says
    *,
    id: str | None = None,
) -> str:
    """Say that an interrupted turn will go on, or that it no longer will."""
    return _chat_frame(types.CHAT_RECOVERING, recovering=recovering, id=id)


def ramet_error(text: str) -> str:
    """Tell a client what was wrong with a frame that has no error frame of its own (D25)."""
    return dumps({"type": types.RAMET_ERROR, "error": text})


def _chat_frame(frame_type: str, **fields: str | bool | Sequence[str] | None) -> str:
    present = {key: value for key, value in fields.items() if value is not None}
    return dumps({"type": frame_type, **present})
