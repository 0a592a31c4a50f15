"""The data directory's lock across a kill, and the ways in which a server is stopped in order."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.crash.aftermath import findings_after
from tests.crash.disk import AgentKey
from tests.crash.page import Page
from tests.crash.victim import COMMAND, Victim
from tests.crash.watching import Question, watch_turn
from tests.support.server import ROOT, command_line, environment, free_port, kill, running, start

KEY: AgentKey = (("ChatAgent", "a"),)

pytestmark = pytest.mark.kill


def test_a_second_server_on_the_same_data_says_so_in_one_sentence(fresh: Victim) -> None:
    fresh.start()
    second = _second_server(fresh)
    assert second.returncode == 1
    assert second.stdout == ""
    assert re.fullmatch(
        rf"Error: The data directory {re.escape(str(fresh.data))} is in use by another process"
        r"( \(pid \d+\))?; stop it or choose another directory\n",
        second.stderr,
    )
    assert fresh.alive


def test_the_lock_is_free_once_the_server_was_killed(tmp_path: Path) -> None:
    server = start(*COMMAND, folder=tmp_path)
    kill(server)
    with running(*COMMAND, folder=tmp_path) as second:
        assert second.process.poll() is None


@pytest.mark.behaviour("D18")
async def test_sigterm_lets_a_running_turn_end_before_the_sockets_close(fresh: Victim) -> None:
    async def terminate(page: Page) -> None:
        await page.until(lambda: len(page.seen.chunks.get("request", [])) >= 5)
        fresh.terminate()

    fresh.start()
    watch = await watch_turn(fresh, KEY, Question(request_id="request", text="say 60 5"), terminate)
    assert fresh.await_death() == 0
    for seen in watch.views[KEY]:
        assert seen.outcome("request") == "completed"
        assert len(seen.chunks["request"]) >= 60
    disk = fresh.disk()
    fresh.start()
    assert not await findings_after(fresh.address, watch.views, disk)


@pytest.mark.behaviour("D18")
async def test_a_second_signal_stops_at_once_and_loses_nothing(fresh: Victim) -> None:
    async def terminate(page: Page) -> None:
        await page.until(lambda: len(page.seen.chunks.get("request", [])) >= 5)
        fresh.terminate()
        await page.until(lambda: len(page.seen.chunks.get("request", [])) >= 15)
        fresh.terminate()

    fresh.start()
    watch = await watch_turn(
        fresh, KEY, Question(request_id="request", text="say 4000 10"), terminate
    )
    assert fresh.await_death() == -signal.SIGTERM
    disk = fresh.disk()
    fresh.start()
    assert not await findings_after(fresh.address, watch.views, disk)


def _second_server(victim: Victim) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command_line(*COMMAND, folder=victim.data.parent, port=free_port()),
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
