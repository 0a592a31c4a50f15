"""Durable agents that use other agents as tools."""

from importlib import import_module

_HOMES = {
    "ramet.agent.agent": ("Agent",),
    "ramet.agent_tools.detached_options": ("Detached", "Milestones", "Notify"),
    "ramet.agent_tools.records": (
        "ChildRun",
        "DetachedRun",
        "Inspection",
        "Milestone",
        "Progress",
        "RunInfo",
        "RunInspection",
        "RunResult",
        "StoredChunk",
    ),
    "ramet.app.app": ("App",),
    "ramet.chat.chat_agent": ("AIChatAgent",),
    "ramet.chat.concurrency": ("Debounce",),
    "ramet.chat.openai_source": ("chunks_from_openai",),
    "ramet.chat.recovery_options": (
        "ChatRecovery",
        "ChatRecoveryContext",
        "ChatRecoveryDecision",
        "ChatRecoveryExhausted",
    ),
    "ramet.chat.turn": ("ChatErrorContext", "ChatResult", "Turn", "TurnResult"),
    "ramet.chat.ui_stream_source": ("chunks_from_ui_message_stream",),
    "ramet.connections.connection": ("Connection",),
    "ramet.connections.rpc": ("RpcStream", "rpc"),
    "ramet.core.http": ("Request", "Response", "Target"),
    "ramet.core.options": ("AgentOptions", "HostOptions", "RetryOptions"),
    "ramet.core.paths": ("AgentPath",),
    "ramet.core.signals": ("AbortController", "AbortSignal"),
    "ramet.errors": ("RametError",),
    "ramet.fibers.records": (
        "FiberContext",
        "FiberInspection",
        "FiberResult",
        "InterruptedFiber",
        "StartedFiber",
    ),
    "ramet.queue.records": ("QueueItem",),
    "ramet.schedules.records": ("Schedule",),
    "ramet.think": ("from_thread",),
    "ramet.think.agent_source": ("chunks_from_pydantic_ai", "chunks_from_text"),
    "ramet.think.agent_tool": ("agent_tool",),
    "ramet.think.idempotent": ("idempotent",),
    "ramet.think.submission_records": ("Submission",),
    "ramet.think.hooks": ("StepResult", "ToolCallInfo", "ToolCallResult"),
    "ramet.think.think": ("Think",),
    "ramet.think.turn_modes": ("TurnCallback",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AIChatAgent",
    "AbortController",
    "AbortSignal",
    "Agent",
    "AgentOptions",
    "AgentPath",
    "App",
    "ChatErrorContext",
    "ChatRecovery",
    "ChatRecoveryContext",
    "ChatRecoveryDecision",
    "ChatRecoveryExhausted",
    "ChatResult",
    "ChildRun",
    "Connection",
    "Debounce",
    "Detached",
    "DetachedRun",
    "FiberContext",
    "FiberInspection",
    "FiberResult",
    "HostOptions",
    "Inspection",
    "InterruptedFiber",
    "Milestone",
    "Milestones",
    "Notify",
    "Progress",
    "QueueItem",
    "RametError",
    "Request",
    "Response",
    "RetryOptions",
    "RpcStream",
    "RunInfo",
    "RunInspection",
    "RunResult",
    "Schedule",
    "StartedFiber",
    "StepResult",
    "StoredChunk",
    "Submission",
    "Target",
    "Think",
    "ToolCallInfo",
    "ToolCallResult",
    "Turn",
    "TurnCallback",
    "TurnResult",
    "agent_tool",
    "chunks_from_openai",
    "chunks_from_pydantic_ai",
    "chunks_from_text",
    "chunks_from_ui_message_stream",
    "from_thread",
    "idempotent",
    "rpc",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import ramet` stays light."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'ramet' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
