"""The states that were recorded with the frames of runs are those of the published hook."""

import json

import pytest

from tests.support.recorded_runs import RECORDED, SCENES, reduced_by_npm

pytestmark = pytest.mark.browser


@pytest.mark.behaviour("D27")
@pytest.mark.parametrize("name", SCENES)
def test_the_published_hook_still_makes_the_recorded_state_of_the_frames(name: str) -> None:
    recorded = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))

    assert reduced_by_npm(recorded["frames"]) == recorded["state"]
