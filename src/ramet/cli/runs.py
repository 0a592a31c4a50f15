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
    limit_option,
    objects,
    part,
    say_if_nobody_works,
    say_what_is_missing,
    show,
    skip_option,
)
from ramet.cli.tables import NOTHING, fields, moment, span, table, text
from ramet.control.requests import (
    FINISHED,
    STATUSES,
    UNDER_WAY,
    CancelRun,
    ClearRuns,
    CountClearable,
    ListRuns,
    ShowRun,
)
from ramet.core.json import JsonObject, JsonValue
from ramet.protocol.run_events import RunStatus

_NAME_WIDTH: Final = 30
_RESULT_WIDTH: Final = 60


@click.group()
def runs() -> None:
    """See, end and clear the runs of agents."""


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
@limit_option
@skip_option
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
    """List runs, the newest first.

    They are those of one agent, or of all in the data directory.
    """
    request = ListRuns(agent=agent, statuses=list(statuses) or None, limit=limit, skip=skip)
    answer = answer_to(request, data=data)
    show(answer, _as_table, as_json=as_json)
    say_what_is_missing(answer)
    if as_json:
        return
    if answer["more"]:
        click.echo(f"There are older ones: --skip {skip + limit} shows the next.", err=True)
    if not answer["server_running"] and any(map(_under_way, objects(answer["runs"]))):
        say_if_nobody_works(data)


@runs.command("show")
@click.argument("run_id")
@data_option
@agent_option
@json_option
def show_run(*, run_id: str, data: Path | None, agent: str | None, as_json: bool) -> None:
    """Show where a run is.

    That is what is stored of RUN_ID, and what its child says of it.
    """
    answer = answer_to(ShowRun(run_id=run_id, agent=agent), data=data)
    show(answer, _as_detail, as_json=as_json)
    if not (as_json or answer["server_running"]) and _under_way(part(answer, "run")):
        say_if_nobody_works(data)


@runs.command("cancel")
@click.argument("run_id")
@data_option
@agent_option
@click.option("--reason", help="What its agent is told.")
@json_option
def cancel_run(
    *, run_id: str, data: Path | None, agent: str | None, reason: str | None, as_json: bool
) -> None:
    """End a run early.

    The server of RUN_ID has to be running.
    """
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
@click.option("--dry-run", is_flag=True, help="Only say how many would be removed.")
@json_option
def clear_runs(
    *,
    data: Path | None,
    agent: str,
    statuses: Sequence[TerminalStatus],
    started_before: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove finished runs.

    All that their agents stored goes with them. The server has to be running, but not for
    --dry-run.
    """
    which = CountClearable if dry_run else ClearRuns
    request = which(agent=agent, statuses=list(statuses) or None, started_before=started_before)
    answer = answer_to(request, data=data)
    show(answer, _as_clearable if dry_run else _as_cleared, as_json=as_json)


def _as_table(answer: JsonObject) -> str:
    found = objects(answer["runs"])
    if not found:
        return "There are no such runs."
    return table(
        ("RUN", "NAME", "AGENT", "CHILD", "STATUS", "STARTED", "TOOK", "RESULT"),
        [
            (
                text(run["run_id"]),
                text(part(run, "display").get("name"), _NAME_WIDTH),
                text(run["agent"]),
                text(run["agent_type"]),
                text(run["status"]),
                moment(run["started_at"]),
                _took(run, answer),
                text(_result(run), _RESULT_WIDTH),
            )
            for run in found
        ],
    )


def _under_way(run: JsonObject) -> bool:
    return run["status"] in UNDER_WAY


def _took(run: JsonObject, answer: JsonObject) -> str:
    """How long a run took, or has been at work by now; not known when nobody works for it."""
    at_work = _under_way(run) and answer["server_running"]
    return span(run["started_at"], CLOCK.now_ms() if at_work else run["completed_at"])


def _result(run: JsonObject) -> JsonValue:
    """How a run ended, or how far it is."""
    ended = run["error"] or run["reason"] or run["summary"]
    return ended or _progress(part(run, "progress"))


def _as_detail(answer: JsonObject) -> str:
    run, child = part(answer, "run"), part(answer, "child")
    shown = [
        ("run", text(run["run_id"])),
        ("name", text(part(run, "display").get("name"))),
        ("of", text(run["agent"])),
        ("status", _status(run)),
        ("detached", "yes" if run["detached"] else "no"),
        ("started", moment(run["started_at"])),
        ("took", _took(run, answer)),
        ("tool call", text(run["parent_tool_call_id"])),
        ("input", text(run["input_preview"])),
        ("output", text(answer["output"])),
        ("summary", text(run["summary"])),
        ("error", text(run["error"])),
        ("child", text(answer["child_agent"])),
        ("in memory", _presence(answer)),
        ("child says", text(child.get("status") or answer["child_error"] or "nothing yet")),
        ("progress", _progress_since(part(child, "progress"))),
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
    fraction = progress.get("fraction")
    share = f"{fraction:.0%}" if isinstance(fraction, int | float) else None
    words = (progress.get(key) for key in ("phase", "message"))
    return " ".join(each for each in (share, *(text(word) for word in words if word)) if each)


def _progress_since(progress: JsonObject) -> str:
    return f"{_progress(progress)} at {moment(progress['at'])}" if progress else NOTHING


def _as_cancelled(answer: JsonObject) -> str:
    run = part(answer, "run")
    name, status = text(run["run_id"]), text(run["status"])
    if not answer["asked"]:
        return f"The run {name} had ended already: {status}."
    if _under_way(run):
        see = f"see `ramet runs show {name}`"
        return f"The run {name} was told to stop and has not ended yet; {see}."
    return f"The run {name} was told to stop and has ended: {status}."


def _as_cleared(answer: JsonObject) -> str:
    return f"Removed {_runs(answer['removed'])} of {text(answer['agent'])}."


def _as_clearable(answer: JsonObject) -> str:
    return f"Would remove {_runs(answer['would_remove'])} of {text(answer['agent'])}."


def _runs(number: JsonValue) -> str:
    return "1 run" if number == 1 else f"{text(number)} runs"
