"""The demo as one web application: the agents, the page, and a line about the model."""

import mimetypes
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ramet.app.app import App
from ramet.demo.assistant import Assistant
from ramet.demo.build_runner import BuildRunner
from ramet.demo.planner import Planner
from ramet.demo.researcher import Researcher
from ramet.demo.stage import Stage, Staged

NO_PAGE = (
    "The page is not built. In a checkout run scripts/demo, "
    "which builds it; an installed ramet has it already."
)


def demo_site(stage: Stage, data_dir: Path) -> ASGIApp:
    """The whole demo; its agents are stored in `data_dir`."""
    Staged.set_stage(stage)
    children = [Researcher, Planner, BuildRunner]
    app = App(agents=[Assistant], sub_agents=children, data_dir=data_dir)
    pages = _pages(stage)

    async def site(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and not scope["path"].startswith("/agents/")
        await (pages if is_page else app)(scope, receive, send)

    return site


def _pages(stage: Stage) -> Starlette:
    folder = Path(str(files("ramet.demo") / "page"))

    async def info(_: Request) -> Response:
        return JSONResponse(
            {
                "model": stage.model_label,
                "offline": stage.offline,
                "folder": stage.folder.root.name,
                "tasks": [task.to_json() for task in stage.tasks.values()],
            }
        )

    async def page(request: Request) -> Response:
        wanted = (folder / request.path_params["path"]).resolve()
        if not wanted.is_relative_to(folder) or not wanted.is_file():
            wanted = folder / "index.html"
        if not wanted.is_file():
            return PlainTextResponse(NO_PAGE, status_code=503)
        kind = mimetypes.guess_type(wanted.name)[0]
        return FileResponse(wanted, media_type=kind)

    return Starlette(routes=[Route("/demo/info", info), Route("/{path:path}", page)])
