"""Options: resolved per key through the classes, refused when they make no sense."""

import math

import pytest

from ramet.core.options import AgentOptions, HostOptions, RetryOptions, resolve_options
from ramet.errors import InvalidOptions


class Base:
    options = AgentOptions(name="Base1", keep_alive_interval=5.0, clear_runs_with_chat=True)


class Derived(Base):
    options = AgentOptions(max_concurrent_agent_tools=2, clear_runs_with_chat=False)


class Plain(Derived):
    pass


@pytest.mark.behaviour("AT-022", "D16")
def test_options_are_resolved_per_key_and_names_are_not_inherited() -> None:
    resolved = resolve_options(Plain)
    assert resolved.keep_alive_interval == 5.0
    assert resolved.max_concurrent_agent_tools == 2
    assert resolved.clear_runs_with_chat is False
    assert resolved.name is None
    assert resolve_options(Base).name == "Base1"


@pytest.mark.behaviour("AT-014", "AT-016", "AT-017", "AT-021")
def test_the_defaults() -> None:
    options = AgentOptions()
    assert options.max_concurrent_agent_tools == math.inf
    assert options.agent_tool_reattach_no_progress_timeout == 120.0
    assert options.agent_tool_reattach_max_window == math.inf
    assert options.detached_max_budget == 86_400.0
    assert options.detached_no_progress_budget == 3_600.0
    assert options.send_identity_on_connect is True
    assert options.hung_schedule_timeout == 30.0
    assert options.keep_alive_interval == 30.0
    assert options.retry == RetryOptions(max_attempts=3, base_delay=0.1, max_delay=3.0)
    assert options.fiber_recovery_hook_timeout == 10.0
    assert options.fiber_recovery_scan_deadline == 10.0
    assert options.fiber_recovery_max_age == 86_400.0


@pytest.mark.behaviour("D31")
def test_a_cap_below_one_is_refused_when_the_options_are_built() -> None:
    with pytest.raises(InvalidOptions, match="max_concurrent_agent_tools must be 1 or more"):
        AgentOptions(max_concurrent_agent_tools=0)


@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_a_duration_that_makes_no_sense_is_refused(value: float) -> None:
    with pytest.raises(InvalidOptions, match="detached_max_budget must be zero or more"):
        AgentOptions(detached_max_budget=value)


def test_host_options_refuse_sizes_below_one() -> None:
    with pytest.raises(InvalidOptions, match="outbox_bytes must be 1 or more, not 0"):
        HostOptions(outbox_bytes=0)


@pytest.mark.behaviour("RT-004")
def test_retry_options_refuse_a_base_above_the_maximum() -> None:
    with pytest.raises(InvalidOptions, match=r"base_delay 5\.0 is above max_delay 3\.0"):
        RetryOptions(base_delay=5.0)


def test_options_that_are_a_dict_are_refused_by_the_name_of_their_class() -> None:
    class Careless(Base):
        options = {"name": "Other"}  # type: ignore[assignment] # as a user may write it

    with pytest.raises(InvalidOptions, match=r"options of Careless is a dict: write options = Ag"):
        resolve_options(Careless)
