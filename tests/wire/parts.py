"""The chunks of a scripted `AIChatAgent` turn."""

from collections.abc import AsyncIterator

from ramet.core.json import JsonObject, JsonValue


def opening() -> list[JsonObject]:
    """What every turn begins with."""
    return [{"type": "start"}, {"type": "start-step"}]


def closing() -> list[JsonObject]:
    """What every turn that ends well ends with."""
    return [{"type": "finish-step"}, {"type": "finish", "finishReason": "stop"}]


async def spoken(kind: str, id: str, words: AsyncIterator[str]) -> AsyncIterator[JsonObject]:
    """One part of text or reasoning, a delta for each word."""
    yield {"type": f"{kind}-start", "id": id}
    async for word in words:
        yield {"type": f"{kind}-delta", "id": id, "delta": word}
    yield {"type": f"{kind}-end", "id": id}


def called(id: str, name: str, arguments: JsonObject) -> list[JsonObject]:
    """A tool call up to its input."""
    return [
        {"type": "tool-input-start", "toolCallId": id, "toolName": name},
        {"type": "tool-input-available", "toolCallId": id, "toolName": name, "input": arguments},
    ]


def returned(id: str, output: JsonValue) -> list[JsonObject]:
    """The output of a tool call, and the step that answers it."""
    return [
        {"type": "tool-output-available", "toolCallId": id, "output": output},
        {"type": "finish-step"},
        {"type": "start-step"},
    ]
