"""The command `ramet`."""

import importlib
import logging
import os
from pathlib import Path

import click

from ramet.app.app import DATA_VARIABLE, App
from ramet.cli.target import load_application
from ramet.errors import RametError
from ramet.web.server import SOCKET_FRAME_BYTES, ServeOptions, serve

_ELSEWHERE = {
    "demo": "ramet.demo.command",
    "inspect": "ramet.cli.inspecting",
    "runs": "ramet.cli.runs",
}
"""Commands that bring modules of their own, which are loaded only for them."""

LOG_LEVELS = ("debug", "info", "warning", "error", "critical")


class Commands(click.Group):
    """The subcommands; what ramet itself raises is one sentence on stderr and exit code 1."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except RametError as error:
            raise click.ClickException(str(error)) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted([*super().list_commands(ctx), *_ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name."""
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        command = getattr(importlib.import_module(_ELSEWHERE[cmd_name]), cmd_name)
        return command if isinstance(command, click.Command) else None


@click.group(cls=Commands)
@click.version_option(package_name="ramet", prog_name="ramet")
def main() -> None:
    """Durable agents that use other agents as tools."""
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


@main.command("serve")
@click.argument("target", metavar="MODULE:APP")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8000, show_default=True, help="The port; 0 takes a free one.")
@click.option("--data", type=click.Path(path_type=Path), help="Where the agents are stored.")
@click.option(
    "--log-level",
    type=click.Choice(LOG_LEVELS, case_sensitive=False),
    default="warning",
    show_default=True,
    help="From where on records are logged, to standard error.",
)
def serve_command(  # noqa: PLR0917 - click's way
    target: str, host: str, port: int, data: Path | None, log_level: str
) -> None:
    """Serve an application.

    It is APP of MODULE, and is served until SIGTERM: running turns get the app's grace period
    before the sockets close, and a second signal stops it at once.
    """
    logging.getLogger().setLevel(log_level.upper())
    if data is not None:
        os.environ[DATA_VARIABLE] = str(data)
    app = load_application(target)
    largest = SOCKET_FRAME_BYTES
    if isinstance(app, App):
        app.data_dir = data or app.data_dir
        largest = max(largest, app.options.max_frame_bytes * 4 // 3)
    serve(app, ServeOptions(host=host, port=port, max_frame_bytes=largest, on_ready=_announce))


def _announce(url: str) -> None:
    click.echo(f"Serving at {url} (stop with Ctrl-C)", err=True)
