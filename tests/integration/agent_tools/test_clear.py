"""Clearing runs, and what may be asked about them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ramet.core.http import Request, Response
from tests.integration.agent_tools.children import HandChild, OtherChild, events
from tests.integration.agent_tools.conftest import Stage


async def ended(stage: Stage, run_id: str, status: str = "completed") -> None:
    """A run that has ended."""
    await stage.dispatch(run_id=run_id)
    (await stage.child(run_id)).end(status)
    await stage.settle()


@pytest.mark.behaviour("AT-325", "AT-330", "AT-332", "AT-063")
async def test_clearing_removes_runs_with_their_children(stage: Stage) -> None:
    parent = await stage.parent()
    await ended(stage, "r")
    assert parent.has_agent_tool_run(HandChild, "r")

    assert await parent.clear_agent_tool_runs() == 1

    assert stage.rows() == []
    assert not parent.has_agent_tool_run(HandChild, "r")
    assert not parent.has_sub_agent(HandChild, "r")
    assert events((await stage.client()).frames) == []
    assert stage.harness.rows(stage.root, "p", "SELECT * FROM cf_agent_tool_frames") == []
    await stage.dispatch(run_id="r", input="anew")
    assert (await stage.child("r")).inputs == ["anew"]


@pytest.mark.behaviour("AT-326", "AT-329", "D34")
async def test_clearing_can_be_limited(stage: Stage) -> None:
    parent = await stage.parent()
    await ended(stage, "old")
    await stage.harness.advance(60)
    border = datetime.fromtimestamp(stage.harness.clock.now_ms() / 1000, UTC)
    await ended(stage, "failed", "error")
    await ended(stage, "new")

    assert await parent.clear_agent_tool_runs(older_than=timedelta(seconds=60)) == 0
    assert await parent.clear_agent_tool_runs(older_than=border, status="error") == 0
    assert await parent.clear_agent_tool_runs(older_than=border) == 1
    assert await parent.clear_agent_tool_runs(status=["error", "aborted"]) == 1
    assert [row["run_id"] for row in stage.rows()] == ["new"]


@pytest.mark.behaviour("D34")
@pytest.mark.parametrize("bare", [60, 60.0, datetime(2026, 1, 1)])  # noqa: DTZ001 - the point
async def test_a_time_without_a_unit_or_a_zone_is_refused(stage: Stage, bare: Any) -> None:
    await ended(stage, "r")

    with pytest.raises((TypeError, ValueError), match="older_than"):
        await (await stage.parent()).clear_agent_tool_runs(older_than=bare)
    assert len(stage.rows()) == 1


@pytest.mark.behaviour("AT-327")
async def test_a_run_under_way_is_cancelled_before_it_is_cleared(stage: Stage) -> None:
    client = await stage.client()
    caller = await stage.dispatch(run_id="r")
    child = await stage.child("r")

    await (await stage.parent()).clear_agent_tool_runs()
    await stage.settle()

    result = await caller
    assert (result.status, result.error) == ("aborted", "The run was cleared.")
    assert child.cancel_reasons == ["The run was cleared."]
    assert stage.rows() == []
    assert events(client.frames)[-1]["sequence"] == 1


@pytest.mark.behaviour("AT-328")
async def test_a_child_that_cannot_be_reached_does_not_keep_its_row(stage: Stage) -> None:
    await ended(stage, "r")
    parent = await stage.parent()
    await parent.delete_sub_agent(HandChild, "r")

    await parent.clear_agent_tool_runs()
    await parent.clear_agent_tool_runs()

    assert stage.rows() == []


@pytest.mark.behaviour("AT-334")
async def test_class_and_id_must_both_match(stage: Stage) -> None:
    parent = await stage.parent()
    await ended(stage, "r")

    assert parent.has_agent_tool_run("HandChild", "r")
    assert not parent.has_agent_tool_run(OtherChild, "r")
    assert not parent.has_agent_tool_run(HandChild, "s")
    assert not parent.has_agent_tool_run("Nobody", "r")


async def test_runs_can_be_listed(stage: Stage) -> None:
    parent = await stage.parent()
    await ended(stage, "r", "error")
    await stage.dispatch(OtherChild, run_id="s", parent_tool_call_id="call")

    def listed(**filters: Any) -> list[str]:
        return [run.run_id for run in parent.list_agent_tool_runs(**filters)]

    assert listed() == ["r", "s"]
    assert listed(cls=OtherChild) == listed(parent_tool_call_id="call") == ["s"]
    assert listed(status="error") == listed(status=["error", "aborted"]) == ["r"]


async def test_where_a_run_is_can_be_asked(stage: Stage) -> None:
    parent = await stage.parent()
    await stage.dispatch(run_id="r")

    found = await parent.inspect_agent_tool("r")
    assert found is not None
    assert (found.run.status, found.result) == ("running", None)
    assert found.child is not None
    assert found.child.status == "running"

    (await stage.child("r")).end(summary="s")
    await stage.settle()
    HandChild.fails_on["inspect"] = ValueError("busy")
    found = await parent.inspect_agent_tool("r")
    assert found is not None
    assert found.result is not None
    assert (found.result.summary, found.child, found.child_error) == ("s", None, "busy")
    assert await parent.inspect_agent_tool("unknown") is None


@pytest.mark.behaviour("AT-333", "AT-335", "AT-336", "D19")
async def test_only_the_children_of_runs_are_behind_the_gate(stage: Stage) -> None:
    await stage.dispatch(run_id="r")

    async def admitted(cls: type, run_id: str) -> Request | Response:
        path = stage.harness.path(stage.root, "p", [(cls, run_id)])
        return await stage.harness.host.admit(path, Request(path="/"))

    assert isinstance(await admitted(HandChild, "r"), Request)
    refused = await admitted(HandChild, "s")
    assert isinstance(refused, Response)
    assert refused.status == 404
    wrong_class = await admitted(OtherChild, "r")
    assert isinstance(wrong_class, Response)
    assert wrong_class.status == 404


@pytest.mark.behaviour("AT-212")
async def test_an_agent_that_is_no_chat_agent_only_warns_of_progress(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    parent = await stage.parent()
    for fraction in (0.5, 1):
        assert await parent.report_progress(fraction=fraction) == "inactive"
    assert caplog.text.count("report_progress does nothing") == 1
