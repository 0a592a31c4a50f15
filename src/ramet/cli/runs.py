"""`ramet runs`: shows the runs of agents as tools, ends them and clears them away."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ramet.agent_tools.records import TerminalStatus
from ramet.cli.asking import (
    CLOCK,
    Age,
    agent_option,
    answer_to,
    data_option,
    json_option,
    objects,
    part,
    show,
)
from ramet.cli.tables import NOTHING, fields, moment, span, table, text
from ramet.control.requests import (
    FINISHED,
    MOST_LISTED,
    MOST_SKIPPED,
    STATUSES,
    CancelRun,
    ClearRuns,
    ListRuns,
    ShowRun,
)
from ramet.core.json import JsonObject
from ramet.protocol.run_events import RunStatus

_RESULT_WIDTH: Final = 60


@click.group()
def runs() -> None:
    """See the runs of agents as tools, end them, and clear them away."""


@runs.command("list")
@data_option
@agent_option
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES),
    help="Only these; may be repeated.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_LISTED),
    default=50,
    show_default=True,
    help="How many are shown.",
)
@click.option(
    "--skip",
    type=click.IntRange(0, MOST_SKIPPED),
    default=0,
    show_default=True,
    help="How many of the newest are left out.",
)
@json_option
def list_runs(
    *,
    data: Path | None,
    agent: str | None,
    statuses: Sequence[RunStatus],
    limit: int,
    skip: int,
    as_json: bool,
) -> None:
    """List runs, the newest first: those of one agent, or of all in the data directory."""
    request = ListRuns(agent=agent, statuses=list(statuses) or None, limit=limit, skip=skip)
    answer = answer_to(request, data=data)
    show(answer, _as_table, as_json=as_json)
    for reason in answer["unreadable"] if isinstance(answer["unreadable"], list) else ():
        click.echo(f"Left out: {text(reason)}", err=True)
    if answer["more"] and not as_json:
        click.echo(f"There are older ones: --skip {skip + limit} shows the next.", err=True)


@runs.command("show")
@click.argument("run_id")
@data_option
@agent_option
@json_option
def show_run(*, run_id: str, data: Path | None, agent: str | None, as_json: bool) -> None:
    """Show where the run RUN_ID is: its row, and what its child says of it."""
    answer = answer_to(ShowRun(run_id=run_id, agent=agent), data=data)
    show(answer, _as_detail, as_json=as_json)


@runs.command("cancel")
@click.argument("run_id")
@data_option
@agent_option
@click.option("--reason", help="What its agent is told.")
@json_option
def cancel_run(
    *, run_id: str, data: Path | None, agent: str | None, reason: str | None, as_json: bool
) -> None:
    """End the run RUN_ID early; its server has to be running."""
    answer = answer_to(CancelRun(run_id=run_id, agent=agent, reason=reason), data=data)
    show(answer, _as_cancelled, as_json=as_json)


@runs.command("clear")
@data_option
@click.option(
    "--agent",
    metavar="CLASS/NAME",
    required=True,
    help="Whose: CLASS/NAME, or CLASS/NAME/sub/CLASS/NAME.",
)
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(FINISHED),
    help="Only those that ended so; may be repeated.",
)
@click.option(
    "--older-than",
    "started_before",
    type=Age(),
    help="Only those started longer ago, such as 12h or 30d, or before a date and time.",
)
@json_option
def clear_runs(
    *,
    data: Path | None,
    agent: str,
    statuses: Sequence[TerminalStatus],
    started_before: int | None,
    as_json: bool,
) -> None:
    """Remove finished runs with all that their agents stored; the server has to be running."""
    request = ClearRuns(agent=agent, statuses=list(statuses) or None, started_before=started_before)
    answer = answer_to(request, data=data)
    show(answer, _as_cleared, as_json=as_json)


def _as_table(answer: JsonObject) -> str:
    found = objects(answer["runs"])
    if not found:
        return "There are no such runs."
    now = CLOCK.now_ms()
    return table(
        ("RUN", "AGENT", "CHILD", "STATUS", "STARTED", "TOOK", "RESULT"),
        [
            (
                text(run["run_id"]),
                text(run["agent"]),
                text(run["agent_type"]),
                text(run["status"]),
                moment(run["started_at"]),
                span(run["started_at"], run["completed_at"] or now),
                text(run["error"] or run["reason"] or run["summary"], _RESULT_WIDTH),
            )
            for run in found
        ],
    )


def _as_detail(answer: JsonObject) -> str:
    run, child = part(answer, "run"), part(answer, "child")
    shown = [
        ("run", text(run["run_id"])),
        ("of", text(run["agent"])),
        ("status", _status(run)),
        ("detached", "yes" if run["detached"] else "no"),
        ("started", moment(run["started_at"])),
        ("took", span(run["started_at"], run["completed_at"] or CLOCK.now_ms())),
        ("tool call", text(run["parent_tool_call_id"])),
        ("input", text(run["input_preview"])),
        ("output", text(answer["output"])),
        ("summary", text(run["summary"])),
        ("error", text(run["error"])),
        ("child", text(answer["child_agent"])),
        ("in memory", _presence(answer)),
        ("child says", text(child.get("status") or answer["child_error"] or "nothing yet")),
        ("progress", _progress(part(child, "progress"))),
    ]
    milestones = [
        (f"milestone {text(each['name'])}", f"{moment(each['at'])}  {text(each['message'])}")
        for each in objects(child.get("milestones"))
    ]
    told = [(name, value) for name, value in shown if value != NOTHING]
    return fields([*told, *milestones])


def _status(run: JsonObject) -> str:
    status, reason = text(run["status"]), run["reason"]
    still = ", its child is still at work" if run["child_still_running"] else ""
    return f"{status} ({text(reason)}{still})" if reason else status


def _presence(answer: JsonObject) -> str:
    if not answer["child_open"]:
        return "no"
    return f"yes: {text(answer['child_busy'])}" if answer["child_busy"] else "yes, idle"


def _progress(progress: JsonObject) -> str:
    if not progress:
        return NOTHING
    fraction = progress["fraction"]
    share = f"{fraction:.0%}" if isinstance(fraction, int | float) else None
    known = [share, *(text(progress[key]) for key in ("phase", "message") if progress[key])]
    return f"{' '.join(each for each in known if each)} at {moment(progress['at'])}"


def _as_cancelled(answer: JsonObject) -> str:
    run = part(answer, "run")
    name, status = text(run["run_id"]), text(run["status"])
    if not answer["asked"]:
        return f"The run {name} had ended already: {status}."
    return f"The run {name} was told to stop; it is {status} now."


def _as_cleared(answer: JsonObject) -> str:
    return f"Removed {answer['removed']} runs of {text(answer['agent'])}."
