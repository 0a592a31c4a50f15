"""Ends tool calls that were approved and will never run: the conversation has gone on without."""

from typing import Final

from ramet.chat.transcript import Transcript
from ramet.protocol import chunks, tool_parts
from ramet.protocol.messages import parts_of, with_parts
from ramet.protocol.parts import apply_chunk_to_parts
from ramet.protocol.ui_message import UIMessage

LAPSED: Final = "The conversation has gone on, so the approved tool was not run. Ask for it again."


def has_gone_on(transcript: Transcript, message: UIMessage) -> bool:
    """Whether something stands behind an answer."""
    last = transcript.last()
    return last is not None and last["id"] != message["id"]


def lapse(transcript: Transcript, message_id: str) -> UIMessage | None:
    """End the approved calls of an answer that has something behind it, in a transaction.

    Returns:
        The answer as it is then; None when nothing has changed.
    """
    for message in transcript.some([message_id]):
        parts = parts_of(message)
        approved = [part for part in parts if tool_parts.is_approved(part)]
        if not approved or not has_gone_on(transcript, message):
            return None
        for part in approved:
            ended = chunks.tool_output_error(str(part["toolCallId"]), LAPSED)
            parts = apply_chunk_to_parts(parts, ended)
        changed = with_parts(message, parts)
        transcript.put(changed)
        return changed
    return None
