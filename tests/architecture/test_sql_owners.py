"""Every table has one module that knows it; SQL is written nowhere else."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.architecture.source import MODULES, Module

# Which module owns which tables. A module may be named before it is there.
OWNERS: dict[str, frozenset[str]] = {
    "storage/database.py": frozenset(),
    "storage/migrations.py": frozenset(),
    "storage/key_value.py": frozenset({"cf_agents_state"}),
    "sub_agents/registry.py": frozenset({"cf_agents_sub_agents"}),
    "schedules/store.py": frozenset({"cf_agents_schedules"}),
    "queue/store.py": frozenset({"cf_agents_queues"}),
    "fibers/store.py": frozenset({"cf_agents_runs", "cf_agents_fibers", "cf_agents_facet_runs"}),
    "agent_tools/run_store.py": frozenset({"cf_agent_tool_runs"}),
    "agent_tools/frame_store.py": frozenset({"cf_agent_tool_frames"}),
    "state/store.py": frozenset(),
    "chat/transcript.py": frozenset({"cf_ai_chat_agent_messages"}),
    "chat/stream_log.py": frozenset({"cf_ai_chat_stream_chunks", "cf_ai_chat_stream_metadata"}),
    "chat/turn_store.py": frozenset({"cf_chat_turns"}),
    "chat/recovery_store.py": frozenset({"cf_chat_recovery"}),
    "chat/child_runs.py": frozenset({"cf_agent_tool_child_runs", "cf_agent_tool_milestones"}),
    "think/step_store.py": frozenset({"cf_think_steps"}),
    "think/submission_store.py": frozenset({"cf_think_submissions"}),
    "host/wakeups.py": frozenset({"ramet_wakeups"}),
    "host/pending_deletions.py": frozenset({"ramet_deletions"}),
    "demo/corpus.py": frozenset({"passages"}),
    "testing/scripted_child.py": frozenset({"scripted_items", "scripted_runs"}),
}

# Storage makes its own table before any migration of a feature runs.
MADE_BY_STORAGE = frozenset(
    name for path, owned in OWNERS.items() if path.startswith("storage/") for name in owned
)

# A statement is in one case throughout; a sentence of English is not taken for one.
STATEMENT = re.compile(
    r"""\s*(?:
        select\s.+?\sfrom\s | insert\s+(?:or\s+\w+\s+)?into\s | replace\s+into\s
        | update\s+\w+\s+set\s | delete\s+from\s | with\s+(?:recursive\s+)?\w+[^.]*?\bas\s*\(
        | create\s+(?:\w+\s+){0,2}(?:table|index|view|trigger)\s | alter\s+table\s
        | drop\s+(?:table|index|view|trigger)\s | pragma\s+\w+ | vacuum\b | begin\s+immediate\b
    )""",
    re.VERBOSE | re.DOTALL,
)
TABLE = re.compile(
    r"\b(?:from|join|into|update|table(?:\s+if\s+(?:not\s+)?exists)?|"
    r"index\s+(?:if\s+not\s+exists\s+)?\w+\s+on)\s+(?!select\b|set\b)([a-z_]\w*)"
)
OF_SQLITE = re.compile(r"sqlite_\w+|pragma_\w+|json_each|json_tree")
WITH_NAME = re.compile(r"\b(?:with|recursive|,)\s+(\w+)\s*(?:\([^)]*\)\s*)?as\s*\(")


def as_statement(text: str) -> str | None:
    """The text in lower case when it is SQL, which has its keywords all upper or all lower."""
    shouted = re.match(r"\s*[A-Z]+\b", text) is not None
    lowered = text.lower() if shouted else text
    return lowered if STATEMENT.match(lowered) else None


def statements(module: Module) -> Iterator[tuple[str, int]]:
    for text, line in module.strings():
        statement = as_statement(text)
        if statement is not None:
            yield statement, line


def tables(statement: str) -> set[str]:
    named = set(TABLE.findall(statement)) - set(WITH_NAME.findall(statement))
    return {name for name in named if not OF_SQLITE.fullmatch(name)}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)
def test_sql_is_written_only_by_the_owner_of_a_table(module: Module) -> None:
    owner = module.path in OWNERS or module.path.startswith("storage/")
    assert owner or not [f"{module.path}:{line}" for _, line in statements(module)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)
def test_an_owner_touches_no_table_of_another(module: Module) -> None:
    own = (
        MADE_BY_STORAGE
        if module.path.startswith("storage/")
        else OWNERS.get(module.path, frozenset())
    )
    assert not [
        f"{module.path}:{line} uses {name}"
        for statement, line in statements(module)
        for name in sorted(tables(statement) - own)
    ]


@pytest.mark.parametrize("path", OWNERS)
def test_an_owner_still_uses_what_it_is_said_to_own(path: str) -> None:
    for module in MODULES:
        if module.path == path:
            used = {name for statement, _ in statements(module) for name in tables(statement)}
            assert used >= OWNERS[path]


def test_a_table_has_one_owner() -> None:
    count = Counter(name for owned in OWNERS.values() for name in owned)
    assert not [name for name, owners in count.items() if owners > 1]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("select a from runs where id = ?", {"runs"}),
        ("SELECT a\nFROM runs JOIN frames USING (id)", {"runs", "frames"}),
        ("insert or ignore into runs(id) values (?)", {"runs"}),
        ("create table if not exists runs (id text)", {"runs"}),
        ("create index if not exists by_name on runs (name)", {"runs"}),
        ("create virtual table topics using fts5(body)", {"topics"}),
        ("with recent as (select id from runs) select * from recent", {"runs"}),
        ("update runs set status = ?", {"runs"}),
        ("select name from sqlite_master where type = 'table'", set[str]()),
    ],
)
def test_the_tables_of_a_statement_are_found(text: str, named: set[str]) -> None:
    statement = as_statement(text)
    assert statement is not None
    assert tables(statement) == named


@pytest.mark.parametrize(
    "text",
    ["Select a topic from the list", "Update the plan", "with care", "from runs", "selection"],
)
def test_a_sentence_is_not_taken_for_sql(text: str) -> None:
    assert as_statement(text) is None
