"""What the benchmarks share: a server of their own, interleaved rounds, and one line of JSON."""

import contextlib
import json
import multiprocessing
import multiprocessing.connection
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from starlette.types import ASGIApp

from ramet.web.server import ServeOptions, serve

MakeApp = Callable[[Path], ASGIApp]


@contextlib.contextmanager
def server(make_app: MakeApp) -> Iterator[tuple[str, int]]:
    """Serve an application from a process of its own, as `ramet serve` does: host and port."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    with tempfile.TemporaryDirectory() as data:
        process = context.Process(target=_serve, args=(make_app, Path(data), there))
        process.start()
        try:
            host, _, port = str(here.recv()).removeprefix("http://").partition(":")
            yield host, int(port)
        finally:
            process.terminate()
            process.join()


def _serve(make_app: MakeApp, data: Path, ready: multiprocessing.connection.Connection) -> None:
    serve(make_app(data), ServeOptions(port=0, on_ready=ready.send))


def interleaved(
    sides: Mapping[str, Callable[[], float]], *, rounds: int, warm_up: int = 1
) -> dict[str, list[float]]:
    """Measure the sides in turn, A B A B, so that what slows the machine down hits all of them."""
    results: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(warm_up + rounds):
        for name, measure in sides.items():
            result = measure()
            if number >= warm_up:
                results[name].append(result)
    return results


def medians(results: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in results.items()}


def report(name: str, figures: Mapping[str, float | bool]) -> None:
    """Print the last line, which a machine reads."""
    rounded = {
        key: round(value, 3) if isinstance(value, float) else value
        for key, value in figures.items()
    }
    print(json.dumps({"benchmark": name, **rounded}))


def say(text: str) -> None:
    print(text)
    sys.stdout.flush()
