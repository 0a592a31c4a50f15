"""How the end of a run in the background is told by default."""

import pytest

import ramet
from ramet.chat.notices import completion_text
from ramet.core.json import JsonValue


@pytest.mark.behaviour("AT-270")
@pytest.mark.parametrize(
    ("display", "label"),
    [
        ({"name": "Import orders", "icon": "📥"}, "Import orders (OrderImporter, r)"),
        ({"name": "Order importer"}, "OrderImporter (r)"),  # the class's own name, in words
        ({"name": " "}, "OrderImporter (r)"),
        ({"icon": "📥"}, "OrderImporter (r)"),
        (None, "OrderImporter (r)"),
    ],
)
def test_a_notice_names_the_run_as_pages_do(display: JsonValue, label: str) -> None:
    run = ramet.RunInfo(
        run_id="r", agent_type="OrderImporter", status="completed", started_at=1, display=display
    )
    result: ramet.RunResult[object] = ramet.RunResult(
        run_id="r", agent_type="OrderImporter", status="completed"
    )
    assert completion_text(run, result) == f"Background run {label} finished successfully."
