"""Makes the fixture of the version at hand: `python -m tests.histories.make`, once at a release.

What a killed process leaves is copied while everything is still open, write-ahead logs included.
"""

import asyncio
import shutil
import sys
import tempfile
import zipfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from ramet.testing import Harness
from tests.histories.desk import Desk, Held, Helper, Leaf, Steady

FOLDER = Path(__file__).resolve().parent
MOST_BYTES = 200 * 1024
_SAME_MOMENT = (2026, 1, 1, 0, 0, 0)
_NOT_DATA = ("*-shm", "ramet.lock")


def desk_harness(data: Path, *, seed: int = 2) -> Harness:
    """The program of the fixtures, on a data directory; each seed makes other ids."""
    classes = [Helper, Steady, Leaf]
    return Harness(agents=[Desk], sub_agents=classes, data_dir=data, seed=seed)


async def play(data: Path, left: Path) -> None:
    """Run the program, crash it once, and copy what it has left before it ends."""
    harness = desk_harness(data, seed=1)
    await harness.host.start()
    desk = await harness.agent(Desk, "main")
    desk.set_state({"topic": "bees"})
    desk.note("made")
    await desk.submit_messages("hello", submission_id="sub-hello")
    await desk.submit_messages("a first one", submission_id="sub-done")
    await harness.settle()
    stub = harness.stub(Desk, "main")
    assert await stub.ask("trees") == "completed"
    Held.on = True
    await _begin_and_crash(harness)
    await _begin_the_rest(harness)
    shutil.copytree(data, left, ignore=shutil.ignore_patterns(*_NOT_DATA))
    await harness.crash()


async def _begin_and_crash(harness: Harness) -> None:
    """Leave a run that nobody takes up again."""
    asking = asyncio.create_task(harness.stub(Desk, "main").ask("rocks"))
    await harness.settle()
    await harness.crash()
    await asyncio.gather(asking, return_exceptions=True)
    await harness.restart()
    await harness.agent(Desk, "main")
    await harness.advance(10)


async def _begin_the_rest(harness: Harness) -> None:
    """Leave one of each kind unfinished."""
    desk = await harness.agent(Desk, "main")
    helper = await desk.sub_agent(Helper, "below")
    await helper.begin()
    await desk.schedule(3600, desk.called, "delayed")
    await desk.schedule(datetime(2030, 1, 1, tzinfo=UTC), desk.called, "dated")
    await desk.schedule("0 12 * * *", desk.called, "daily")
    await desk.schedule_every(1800, desk.called, "interval")
    await desk.queue(desk.called, "queued first")
    await desk.queue(desk.called, "queued second")
    await desk.start_fiber("managed", desk.work, fiber_id="f-managed", metadata={"of": "desk"})
    assert await desk.let_go("moss") == "running"
    client = await harness.connect(Desk, "main")
    await client.send(_question("look up bees"))
    await desk.submit_messages("one that waits", submission_id="sub-waiting", metadata={"n": 1})
    await harness.settle()


def _question(text: str) -> str:
    """The frame of a chat request, as text: its form is part of the history too."""
    message = f'{{"id":"u-look","role":"user","parts":[{{"type":"text","text":"{text}"}}]}}'
    body = f'{{"messages":[{message}]}}'.replace('"', '\\"')
    init = f'{{"method":"POST","body":"{body}"}}'
    return f'{{"type":"cf_agent_use_chat_request","id":"request-look","init":{init}}}'


def pack(left: Path, archive: Path) -> None:
    """Pack a data directory; the same files give the same bytes."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for file in sorted(path for path in left.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(str(file.relative_to(left)), _SAME_MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, file.read_bytes())


def main() -> None:
    """Make `VERSION.zip` in this folder."""
    archive = FOLDER / f"{version('ramet')}.zip"
    with tempfile.TemporaryDirectory() as folder:
        left = Path(folder) / "left"
        asyncio.run(play(Path(folder) / "data", left))
        pack(left, archive)
    size = archive.stat().st_size
    assert size < MOST_BYTES, f"{archive} has {size} bytes, at most {MOST_BYTES} are checked in"
    sys.stdout.write(f"{archive}: {size} bytes\n")


if __name__ == "__main__":
    main()
