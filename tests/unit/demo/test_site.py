"""What the page is told of the server."""

from pathlib import Path

import httpx

from ramet.demo.folder import Folder
from ramet.demo.offline_model import OfflineModel
from ramet.demo.site import demo_site
from ramet.demo.stage import Stage
from ramet.demo.tasks import tasks_for
from tests.unit.demo.rig import no_sleep, write_project
from tests.unit.demo.small_reference import small_reference


async def test_the_page_learns_which_model_answers_and_what_can_be_run(tmp_path: Path) -> None:
    root = write_project(tmp_path / "kettle")
    stage = Stage(
        model=OfflineModel(sleep=no_sleep),
        model_label="offline rules",
        offline=True,
        corpus=small_reference(),
        folder=Folder(root),
        tasks=tasks_for(root),
    )
    transport = httpx.ASGITransport(app=demo_site(stage, tmp_path / "data"))
    async with httpx.AsyncClient(transport=transport, base_url="http://demo") as client:
        response = await client.get("/demo/info")
    assert response.json() == {
        "model": "offline rules",
        "offline": True,
        "folder": "kettle",
        "tasks": [
            {"name": "tests", "title": "The tests"},
            {"name": "syntax", "title": "The syntax check"},
        ],
    }
