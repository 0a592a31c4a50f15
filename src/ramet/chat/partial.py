"""What is stored of an answer that was cut off: its chunks, and the message they make."""

from collections.abc import Iterator

from ramet.agent_tools.records import StoredChunk
from ramet.chat.answer import Answer
from ramet.chat.ports import ChatPorts
from ramet.chat.recovery_policy import awaits_client, tool_names
from ramet.chat.settling import settled_part
from ramet.chat.stream_log import StoredStream
from ramet.chat.stream_reader import StreamReader
from ramet.chat.turn_store import StoredTurn
from ramet.core.json import JsonObject, loads_object
from ramet.protocol import tool_parts
from ramet.protocol.messages import parts_of, with_parts
from ramet.protocol.ui_message import UIMessage

_UNDER_WAY = frozenset({tool_parts.INPUT_STREAMING, tool_parts.INPUT_AVAILABLE})


def stored_items(ports: ChatPorts, stream: StoredStream) -> Iterator[StoredChunk]:
    """The stored chunks of an answer in order, with the milestones of its run among them."""
    run = ports.runs.of_request(stream.request_id)
    reader = StreamReader(
        lambda after, limit: ports.log.page(stream.stream_id, after=after, limit=limit),
        lambda after: [] if run is None else ports.runs.milestones(run.run_id, after=after),
    )
    while not reader.at_end:
        yield from reader.next_page()


def folded(ports: ChatPorts, stream: StoredStream) -> tuple[Answer, list[JsonObject]]:
    """An answer as far as it is stored, and its chunks; one that extends a message begins there."""
    extended = ports.transcript.some([stream.message_id]) if stream.continuation else []
    answer = Answer(
        stream.message_id,
        continuation=stream.continuation,
        extends=extended[0] if extended else None,
    )
    numbered: list[JsonObject] = []
    for item in stored_items(ports, stream):
        chunk = loads_object(item.body)
        if chunk is not None:
            answer.add(chunk)
            if item.kind == "chunk":
                numbered.append(chunk)
    return answer, numbered


def partial_message(ports: ChatPorts, turn: StoredTurn) -> UIMessage | None:
    """The message of a turn that was cut off, with everything still open; None without content."""
    stream = ports.log.of_turn(turn.turn_id)
    return None if stream is None else folded(ports, stream)[0].message()


def waits_for_client(ports: ChatPorts, turn: StoredTurn, partial: UIMessage | None) -> bool:
    """Whether an answer has stopped for an approval, or for a tool that the browser executes.

    One that was cut in a tool of its own as well has not: it goes on, and asks again after that.
    Nor has one with a call that the page was still to be shown.
    """
    if not awaits_client(partial, _page_tools(ports, turn)):
        return False
    return not any(_goes_on(ports, part) for part in parts_of(partial or {}))


def _goes_on(ports: ChatPorts, part: JsonObject) -> bool:
    """Whether a part is a tool call that the turn which goes on has still to see to."""
    state = part.get("state")
    if state == tool_parts.INPUT_STREAMING and ports.family.resumes_steps:
        return tool_parts.tool_call_id(part) is not None
    return state in _UNDER_WAY and ports.runs_here(str(part.get("toolCallId")))


def parked(ports: ChatPorts, turn: StoredTurn, partial: UIMessage) -> UIMessage:
    """The message with nothing left open but the calls that a person or a browser is to answer."""
    names = _page_tools(ports, turn)

    def is_asked(part: JsonObject) -> bool:
        # What `Think` ran itself would go on: what is open there is a question.
        asked = ports.family.resumes_steps or tool_parts.tool_name(part) in names
        return asked and part.get("state") == tool_parts.INPUT_AVAILABLE

    return with_parts(
        partial,
        [part if is_asked(part) else settled_part(part) for part in parts_of(partial)],
    )


def _page_tools(ports: ChatPorts, turn: StoredTurn) -> set[str]:
    return tool_names(ports.recovery.asked(turn.turn_id).client_tools)
