"""Talks to agents that run elsewhere: state, calls, chat and runs over one WebSocket."""

from ramet.client.client import AgentClient
from ramet.client.options import ClientOptions
from ramet.client.receiver import Identity
from ramet.client.reply import ChatOutcome, ChatReply
from ramet.client.runs import AgentToolEvents
from ramet.client.streaming import StreamingCall

__all__ = [
    "AgentClient",
    "AgentToolEvents",
    "ChatOutcome",
    "ChatReply",
    "ClientOptions",
    "Identity",
    "StreamingCall",
]
