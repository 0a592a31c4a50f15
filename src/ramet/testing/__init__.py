"""Test kit: a host without sockets, a manual clock, scripted models and children."""

from ramet.testing.client import TestClient
from ramet.testing.conformance import (
    AgentToolConformance,
    CheckResult,
    ConformanceReport,
    assert_agent_tool_child,
    check_agent_tool_child,
)
from ramet.testing.conformance_scenario import ChildScenario
from ramet.testing.harness import Harness
from ramet.testing.manual_clock import ManualClock
from ramet.testing.scripted_child import Cut, Ending, ScriptedChild
from ramet.testing.scripted_model import (
    Answer,
    Delay,
    Gate,
    Reasoning,
    ScriptBroken,
    ScriptedError,
    ScriptedModel,
    ToolCall,
    last_asked,
)

__all__ = [
    "AgentToolConformance",
    "Answer",
    "CheckResult",
    "ChildScenario",
    "ConformanceReport",
    "Cut",
    "Delay",
    "Ending",
    "Gate",
    "Harness",
    "ManualClock",
    "Reasoning",
    "ScriptBroken",
    "ScriptedChild",
    "ScriptedError",
    "ScriptedModel",
    "TestClient",
    "ToolCall",
    "assert_agent_tool_child",
    "check_agent_tool_child",
    "last_asked",
]
