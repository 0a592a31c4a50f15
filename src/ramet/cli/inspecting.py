"""`ramet inspect`: shows what one agent is, has and waits for, or the host and its directory."""

from pathlib import Path

import click

from ramet.cli.asking import CLOCK, answer_to, data_option, json_option, objects, part, show
from ramet.cli.tables import NOTHING, fields, moment, size, span, text
from ramet.control.requests import InspectAgent, InspectHost
from ramet.core.json import JsonObject, JsonValue


@click.command("inspect")
@click.argument("agent", required=False, metavar="[CLASS/NAME]")
@data_option
@json_option
def inspect(*, agent: str | None, data: Path | None, as_json: bool) -> None:
    """Show an agent, or without one the host and how much is in its data directory.

    A sub-agent is written CLASS/NAME/sub/CLASS/NAME. Nothing is opened for it.
    """
    if agent is None:
        show(answer_to(InspectHost(), data=data), _host, as_json=as_json)
    else:
        show(answer_to(InspectAgent(agent=agent), data=data), _agent, as_json=as_json)


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
