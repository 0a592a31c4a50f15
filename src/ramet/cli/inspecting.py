"""`ramet inspect`: shows what one agent is, has and waits for, all agents, or the host."""

from pathlib import Path

import click

from ramet.cli.asking import (
    CLOCK,
    answer_to,
    data_option,
    json_option,
    limit_option,
    objects,
    part,
    say_what_is_missing,
    show,
    skip_option,
)
from ramet.cli.tables import NOTHING, fields, moment, size, span, table, text
from ramet.control.requests import InspectAgent, InspectHost, ListAgents
from ramet.core.json import JsonObject, JsonValue


@click.command("inspect")
@click.argument("agent", required=False, metavar="[CLASS/NAME]")
@click.option("--all", "every", is_flag=True, help="List all agents.")
@limit_option
@skip_option
@data_option
@json_option
def inspect(
    *, agent: str | None, every: bool, limit: int, skip: int, data: Path | None, as_json: bool
) -> None:
    """Show one agent, all, or the server.

    Without an agent it is the server, and how much is in its data directory; with --all the
    agents by their addresses, in pages of --limit. A sub-agent is written
    CLASS/NAME/sub/CLASS/NAME. No agent is opened for it.
    """
    if every:
        if agent is not None:
            raise click.UsageError("Name an agent or write --all, not both.")
        answer = answer_to(ListAgents(limit=limit, skip=skip), data=data)
        show(answer, _all, as_json=as_json)
        say_what_is_missing(answer)
        if answer["more"] and not as_json:
            click.echo(f"There are more: --skip {skip + limit} shows the next.", err=True)
    elif agent is None:
        show(answer_to(InspectHost(), data=data), _host, as_json=as_json)
    else:
        show(answer_to(InspectAgent(agent=agent), data=data), _agent, as_json=as_json)


def _all(answer: JsonObject) -> str:
    found = objects(answer["agents"])
    if not found:
        return "There are no such agents."
    return table(
        ("AGENT", "IN MEMORY", "BUSY", "CLIENTS", "SIZE", "RUNS UNDER WAY"),
        [
            (
                text(agent["agent"]),
                "yes" if agent["open"] else "no",
                text(agent["busy"]),
                text(agent["clients"]),
                size(agent["bytes"]),
                text(agent["runs_under_way"]),
            )
            for agent in found
        ],
    )


def _host(answer: JsonObject) -> str:
    running = bool(answer["running"])
    server = [
        ("pid", text(answer["pid"])),
        ("up", span(answer["started_at"], CLOCK.now_ms())),
        ("open", f"{answer['agents_open']} agents, {answer['agents_busy']} of them busy"),
    ]
    return fields(
        [
            ("server", "running" if running else "none runs"),
            ("data", text(answer["data"])),
            ("version", text(answer["version"])),
            *(server if running else ()),
            ("on disk", f"{answer['root_agents']} agents, {answer['sub_agents']} sub-agents"),
            ("to be woken", f"{answer['wakeups_due']} now, next {moment(answer['next_wakeup'])}"),
        ]
    )


def _agent(answer: JsonObject) -> str:
    schema = part(answer, "schema")
    versions = ", ".join(f"{name} {number}" for name, number in sorted(schema.items()))
    statuses = part(answer, "runs")
    runs = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
    kinds = ("schedules", "queue", "fibers", "submissions", "sub_agents")
    return fields(
        [
            ("agent", text(answer["agent"])),
            ("class", text(answer["class_name"])),
            ("name", text(answer["name"])),
            ("in memory", _presence(answer)),
            ("file", text(answer["file"])),
            ("size", size(answer["bytes"])),
            ("schema", versions),
            ("next wake-up", moment(answer["next_wakeup"])),
            ("runs", _unless_old(answer["runs"], runs or "none")),
            *(line for kind in kinds for line in _lines(kind, answer[kind])),
        ]
    )


def _presence(answer: JsonObject) -> str:
    if not answer["open"]:
        return "no"
    return f"yes, {answer['clients']} clients, {text(answer['busy'] or 'idle')}"


def _lines(kind: str, some: JsonValue) -> list[tuple[str, str]]:
    name = kind.replace("_", "-")
    if not isinstance(some, dict):
        return [] if kind == "submissions" else [(name, _unless_old(some, NOTHING))]
    first = objects(some["first"])
    return [(name, text(some["count"])), *(("", _line(each)) for each in first)]


def _line(item: JsonObject) -> str:
    words = [_word(key, value) for key, value in item.items() if not isinstance(value, bool)]
    return " ".join([*words, *(["running"] if item.get("running") else [])])


def _word(key: str, value: JsonValue) -> str:
    if not key.endswith("_at"):
        return text(value)
    return f"due {moment(value)}" if key == "due_at" else f"since {moment(value)}"


def _unless_old(value: JsonValue, shown: str) -> str:
    return "of an older version: open the agent once to update it" if value is None else shown
