"""What users can name is documented: public names, hooks, options, errors, the command line."""

import dataclasses
import inspect
import json
import re
from collections.abc import Iterator

import click
import pytest

import ramet
from ramet import errors, observability, testing
from ramet.cli.main import main
from tests.architecture.source import MODULES
from tests.docs.pages import DOCS, PAGES, ROOT, Page

_CODE = re.compile(r"`([^`\n]+)`")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_EFFECT = "nothing uses them yet"

OPTIONS = (ramet.AgentOptions, ramet.HostOptions, ramet.RetryOptions)
AGENTS = (ramet.Agent, ramet.AIChatAgent, ramet.Think)
RECORDS = (
    ramet.RunInfo,
    ramet.RunResult,
    ramet.Detached,
    ramet.DetachedRun,
    ramet.Milestones,
    ramet.Notify,
    ramet.RunInspection,
    ramet.Inspection,
    ramet.StoredChunk,
    ramet.Progress,
    ramet.Milestone,
    ramet.ChildRun,
    ramet.Turn,
    ramet.TurnResult,
    ramet.ChatResult,
    ramet.ChatErrorContext,
    ramet.ToolCallInfo,
    ramet.ToolCallResult,
    ramet.StepResult,
    ramet.Schedule,
    ramet.QueueItem,
    ramet.FiberContext,
    ramet.FiberInspection,
    ramet.FiberResult,
    ramet.InterruptedFiber,
    ramet.StartedFiber,
    ramet.Submission,
    ramet.ChatRecovery,
    ramet.ChatRecoveryContext,
    ramet.ChatRecoveryDecision,
    ramet.ChatRecoveryExhausted,
    ramet.Debounce,
    ramet.TurnCallback,
)


def page(name: str) -> Page:
    return Page(file=DOCS / name)


def words_in_code(text: str) -> set[str]:
    """Every name that stands in backticks."""
    return {word for code in _CODE.findall(text) for word in _WORD.findall(code)}


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every table row that begins with code."""
    for line in text.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def section(text: str, heading: str) -> str:
    """What stands under a heading of the second level."""
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


DOCUMENTED = set().union(*(words_in_code(page.prose()) for page in PAGES))
OPTIONS_PAGE = page("reference/options.md").prose()


def methods(cls: type) -> set[str]:
    """What a user calls on an agent, sets or overrides."""
    names = {name for base in cls.__mro__[:-1] for name in (*vars(base), *annotations(base))}
    return {name for name in names if not name.startswith("_")} - INTERNAL


def annotations(cls: type) -> dict[str, object]:
    return inspect.get_annotations(cls)


INTERNAL = {"ramet_schema", "read_stored_run"}
"""Public for the framework itself."""


@pytest.mark.parametrize("name", dir(ramet))
def test_a_public_name_is_in_the_reference(name: str) -> None:
    assert name in words_in_code(page("reference/names.md").prose())


@pytest.mark.parametrize("name", [*testing.__all__, *observability.__all__])
def test_a_name_of_the_kits_is_in_the_reference(name: str) -> None:
    assert name in words_in_code(page("reference/names.md").prose())


@pytest.mark.parametrize("cls", AGENTS, ids=lambda cls: cls.__name__)
def test_every_method_and_hook_of_an_agent_is_documented(cls: type) -> None:
    assert methods(cls) - DOCUMENTED == set()


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
def test_every_field_of_a_record_is_in_the_reference(cls: type) -> None:
    known = words_in_code(page("reference/names.md").prose() + page("recovery.md").prose())
    assert {field.name for field in dataclasses.fields(cls)} - known == set()


@pytest.mark.parametrize("cls", OPTIONS, ids=lambda cls: cls.__name__)
def test_every_option_is_documented_with_its_default(cls: type) -> None:
    documented = {
        cells[0].strip("`"): cells[1].strip("`")
        for cells in rows(section(OPTIONS_PAGE, cls.__name__))
    }
    assert documented == {name: shown(value) for name, value in defaults(cls).items()}


def defaults(cls: type) -> dict[str, object]:
    fields = dataclasses.fields(cls)
    return {field.name: getattr(cls(), field.name) for field in fields if field.init}


def shown(value: object) -> str:
    """A default as the page writes it."""
    if isinstance(value, ramet.RetryOptions):
        return "RetryOptions()"
    return f'"{value}"' if isinstance(value, str) else str(value)


def unused_options() -> set[str]:
    """The options that the page says have no effect: those in the tables below such a sentence."""
    unused = set[str]()
    for cls in OPTIONS:
        tables = section(OPTIONS_PAGE, cls.__name__).partition(_NO_EFFECT)[2]
        unused |= {cells[0].strip("`") for cells in rows(tables)}
    return unused


@pytest.mark.parametrize("cls", OPTIONS, ids=lambda cls: cls.__name__)
def test_an_option_is_said_to_have_no_effect_exactly_when_nothing_reads_it(cls: type) -> None:
    code = "\n".join(module.text for module in MODULES if module.path != "core/options.py")
    unread = {name for name in defaults(cls) if not re.search(rf"\.{name}\b", code)}
    # Names that are words of other things too: they are read as options only where it says so.
    unread |= {name for name in defaults(cls) if name in {"retry"} and "options.retry" not in code}
    assert unread == unused_options() & defaults(cls).keys()


def test_every_error_is_documented() -> None:
    known = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.RametError)
    }
    listed = {cells[0].strip("`"): cells[-1] for cells in rows(page("reference/errors.md").prose())}
    assert set(listed) == known
    told = {name: "yes" if getattr(errors, name).public else "no" for name in known}
    assert listed == told


def leaves(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by the words that are typed in for it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {below}", each) for below, each in leaves(command))
        elif command is not None:
            yield name, command


def commands() -> dict[str, click.Command]:
    return dict(leaves(main))


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_of_a_command_is_documented(name: str) -> None:
    told = {
        cells[0].strip("`")
        for cells in rows(section(page("reference/cli.md").prose(), f"ramet {name}"))
    }
    options = [each for each in commands()[name].params if isinstance(each, click.Option)]
    assert told == {opt for option in options for opt in option.opts}


def test_the_reference_has_no_command_that_is_not_there() -> None:
    told = re.findall(r"^## ramet ([\w ]+)$", page("reference/cli.md").prose(), re.MULTILINE)
    assert sorted(told) == sorted(commands())


def console_lines() -> list[tuple[str, str]]:
    return [
        (block.place, line.removeprefix("$ "))
        for each in PAGES
        for block in each.blocks()
        if block.language == "console"
        for line in block.code.splitlines()
        if line.startswith("$ ")
    ]


def test_the_commands_in_the_docs_can_be_typed_in() -> None:
    known = commands()
    for place, line in console_lines():
        words = line.rstrip(" &").split()
        if words[0] != "ramet" or words[1].startswith("-"):
            continue
        name = " ".join(words[1:3])
        command = known[name] if name in known else known[words[1]]
        options = {opt for param in command.params for opt in param.opts}
        unknown = [word for word in words[2:] if word.startswith("-") and word not in options]
        assert not unknown, f"{place}: {line}"


def test_the_versions_of_the_npm_packages_are_those_that_are_tested() -> None:
    tested = json.loads((ROOT / "tests/browser/package.json").read_text())["dependencies"]
    told = {
        name.strip("`"): cells[1]
        for cells in rows(section(page("clients.md").prose(), "Versions"))
        for name in cells[0].split(", ")
    }
    assert told == {name: tested[name] for name in told}
    assert {"agents", "@cloudflare/ai-chat", "ai", "react"} <= told.keys()


def internals() -> list[Page]:
    return [each for each in PAGES if each.file.parent == DOCS / "internals"]


@pytest.mark.parametrize("each", internals(), ids=lambda each: each.name)
def test_a_page_on_the_inside_ends_with_files_that_are_there(each: Page) -> None:
    _, found, files = each.prose().partition("\n## Files\n")
    assert found
    assert "\n## " not in files
    paths = [cells[0].strip("`") for cells in rows(files)]
    assert paths
    assert [path for path in paths if not (ROOT / "src/ramet" / path).exists()] == []
