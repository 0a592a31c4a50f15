"""`ramet demo`: serves the example with a page, a real corpus and a model that needs no key."""

import os
from pathlib import Path

import click

from ramet.demo.corpus import language_reference
from ramet.demo.folder import Folder
from ramet.demo.model_choice import FORMS, choose_model
from ramet.demo.site import demo_site
from ramet.demo.stage import Stage
from ramet.demo.tasks import tasks_for
from ramet.web.server import ServeOptions, serve

OFFLINE_LABEL = "offline rules (no language model)"


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8000, show_default=True, help="The port; 0 takes a free one.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=Path(".ramet/demo"),
    show_default=True,
    help="Where the agents are stored.",
)
@click.option("--model", default="offline", show_default=True, help=f"One of: {FORMS}.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path(),
    help="The project that planners read and builds run in; this folder by default.",
)
def demo(host: str, port: int, data: Path, model: str, folder: Path) -> None:  # noqa: PLR0917 - click's way
    """Serve the example: an assistant that uses other agents as tools."""
    offline = model == "offline"
    project = Folder(folder)
    stage = Stage(
        model=choose_model(model, os.environ),
        model_label=OFFLINE_LABEL if offline else model,
        offline=offline,
        corpus=language_reference(),
        folder=project,
        tasks=tasks_for(project.root),
    )
    site = demo_site(stage, data)
    serve(site, ServeOptions(host=host, port=port, on_ready=_announce))


def _announce(url: str) -> None:
    click.echo(f"The demo is at {url} (stop with Ctrl-C)")
