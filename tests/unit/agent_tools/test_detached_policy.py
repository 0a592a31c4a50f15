"""What is decided about detached runs: budgets, cadence, and what is stored of them."""

import math
from datetime import timedelta
from typing import Any

import pytest

from ramet.agent_tools.detached.policy import (
    claimable,
    class_stays_away,
    is_ahead,
    last_signal,
    next_index,
    next_tick_ms,
    only_sign_is_to_come,
    over_budget,
    was_never_begun,
)
from ramet.agent_tools.detached_options import Detached, Milestones, Notify
from ramet.agent_tools.detached_terms import DetachedTerms, checked_terms
from ramet.agent_tools.detachment import Detachment, MilestoneWishes, Slot, detachment_of
from ramet.agent_tools.records import Inspection, Milestone, Progress
from ramet.agent_tools.stored_run import StoredRun
from ramet.core.options import AgentOptions
from ramet.errors import InvalidArguments
from ramet.protocol.run_events import RunStatus


def run(status: RunStatus = "running", *, started_at: int = 0, **terms: object) -> StoredRun:
    return StoredRun(
        run_id="r",
        agent_type="A",
        status=status,
        started_at=started_at,
        detachment=Detachment(**terms),  # type: ignore[arg-type] # named by each test
    )


def inspection(*, progress: int | None = None, milestones: tuple[int, ...] = ()) -> Inspection:
    return Inspection(
        run_id="r",
        status="running",
        started_at=0,
        progress=None if progress is None else Progress(at=progress),
        milestones=[Milestone(name="m", sequence=n, at=at) for n, at in enumerate(milestones)],
    )


def terms_of(asked: object, options: AgentOptions | None = None) -> DetachedTerms:
    return checked_terms(asked, options or AgentOptions(), callback=str, in_chat=True)


@pytest.mark.behaviour("AT-239", "AT-020")
def test_the_pauses_between_ticks_grow_up_to_the_longest() -> None:
    assert [next_index(n) for n in (-1, 0, 1, 2, 3, 9)] == [1, 1, 2, 3, 3, 3]


@pytest.mark.behaviour("AT-257")
def test_the_latest_sign_of_all_counts() -> None:
    assert last_signal(run(), None, now=9) is None
    assert last_signal(run(), inspection(), now=9) is None
    noted = run(last_progress_at=5)
    assert last_signal(noted, None, now=9) == 5
    assert last_signal(noted, inspection(progress=7), now=9) == 7
    assert last_signal(noted, inspection(progress=7, milestones=(1, 9)), now=9) == 9


def test_a_sign_that_is_still_to_come_does_not_count() -> None:
    heard = inspection(progress=7, milestones=(1, 9))
    assert last_signal(run(last_progress_at=5), heard, now=6) == 5
    assert last_signal(run(last_progress_at=10), heard, now=8) == 7
    assert last_signal(run(last_progress_at=5), None, now=4) is None
    assert only_sign_is_to_come(run(), heard, now=0)
    assert not only_sign_is_to_come(run(), heard, now=1)
    assert not only_sign_is_to_come(run(last_progress_at=0), heard, now=0)
    assert not only_sign_is_to_come(run(), inspection(), now=0)
    assert not only_sign_is_to_come(run(), None, now=0)


@pytest.mark.parametrize(
    "ahead",
    [
        {"last_progress_at": 6},
        {"class_gone_since": 6},
        {"finish": Slot(claimed_at=6)},
        {"give_up": Slot(claimed_at=6)},
        {"started_at": 6},
    ],
)
def test_a_row_is_ahead_that_tells_of_something_later_than_now(ahead: dict[str, Any]) -> None:
    assert is_ahead(run(**ahead), now=5)
    assert not is_ahead(run(**ahead), now=6)
    assert not is_ahead(run(max_budget_at=10), now=5)


@pytest.mark.behaviour("AT-254", "AT-255", "AT-256", "AT-258", "AT-260", "AT-261")
def test_which_budget_is_over() -> None:
    heard = inspection(progress=1_000)
    assert over_budget(run(max_budget_at=10), None, now=9) is None
    assert over_budget(run(max_budget_at=10), None, now=10) == "budget-exceeded"
    assert over_budget(run(max_budget_at=None), None, now=10**15) is None
    assert over_budget(run(no_progress_ms=500), heard, now=1_499) is None
    assert over_budget(run(no_progress_ms=500), heard, now=1_500) == "no-progress"
    assert over_budget(run(no_progress_ms=500), None, now=10**15) is None
    assert over_budget(run(no_progress_ms=0), heard, now=10**15) is None
    assert over_budget(run(no_progress_ms=None), heard, now=10**15) is None
    both = run(max_budget_at=10, no_progress_ms=1)
    assert over_budget(both, heard, now=10**6) == "budget-exceeded"


@pytest.mark.behaviour("AT-246")
def test_a_delivery_can_be_taken_on_when_nobody_is_at_it() -> None:
    assert claimable(Slot(), now=0)
    assert not claimable(Slot(claimed_at=0), now=59_999)
    assert claimable(Slot(claimed_at=0), now=60_000)
    assert not claimable(Slot(claimed_at=0, delivered_at=1), now=10**9)


def test_the_next_tick_is_hastened_by_what_ends_sooner_but_not_below_the_first_pause() -> None:
    assert next_tick_ms([run()], index=3, now=0) == 120_000
    assert next_tick_ms([run(max_budget_at=50_000)], index=3, now=0) == 50_000
    assert next_tick_ms([run(max_budget_at=100)], index=3, now=0) == 5_000
    silent = run(last_progress_at=1_000, no_progress_ms=9_000)
    assert next_tick_ms([silent], index=3, now=0) == 10_000
    failed = run("completed", finish=Slot(claimed_at=0), max_budget_at=20_000)
    assert next_tick_ms([failed], index=3, now=0) == 60_000
    past = run(max_budget_at=10)
    assert next_tick_ms([past], index=3, now=20) == 120_020


def test_only_a_run_that_has_not_begun_for_long_was_never_begun() -> None:
    assert was_never_begun(run("starting"), None, now=120_000)
    assert not was_never_begun(run("starting"), None, now=119_999)
    assert was_never_begun(run("interrupted"), None, now=120_000)
    assert not was_never_begun(run("running"), None, now=120_000)
    assert not was_never_begun(run("starting"), inspection(), now=120_000)


def test_a_class_that_is_gone_is_waited_for_ten_minutes() -> None:
    assert not class_stays_away(run(), now=10**9)
    assert not class_stays_away(run(class_gone_since=1), now=600_000)
    assert class_stays_away(run(class_gone_since=1), now=600_001)
    assert next_tick_ms([run(class_gone_since=1)], index=3, now=550_000) == 600_001
    assert next_tick_ms([run(class_gone_since=1)], index=3, now=700_000) == 820_000


@pytest.mark.behaviour("AT-019", "AT-232")
def test_true_and_an_empty_detached_are_the_same() -> None:
    assert terms_of(True) == terms_of(Detached())
    assert terms_of(True).on_finish is None


@pytest.mark.behaviour("AT-017", "AT-230", "D31", "D33")
def test_budgets_are_whole_milliseconds_and_infinity_is_none() -> None:
    options = AgentOptions(detached_max_budget=10, detached_no_progress_budget=math.inf)
    assert terms_of(True, options).max_budget_ms == 10_000
    assert terms_of(True, options).no_progress_ms is None
    asked = Detached(max_budget=timedelta(minutes=1), no_progress_budget=0.0001)
    assert terms_of(asked).max_budget_ms == 60_000
    assert terms_of(asked).no_progress_ms == 1
    huge = terms_of(Detached(max_budget=1e300))
    assert huge.max_budget_ms is None
    assert huge.begun(5).max_budget_at is None
    assert terms_of(asked).begun(5).max_budget_at == 60_005
    assert terms_of(True).begun(5).max_budget_at == 86_400_005


@pytest.mark.behaviour("AT-233")
def test_an_explicit_callback_wins_over_a_notice() -> None:
    both = terms_of(Detached(on_finish="done", notify=Notify(source="s")))
    assert (both.on_finish, both.notify_source) == ("done", "s")
    assert terms_of(Detached(notify=True)).on_finish == "_cfDetachedNotifyFinish"


@pytest.mark.behaviour("AT-233", "AT-279")
@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (Detached(notify=True), "notify"),
        (Detached(notify=Notify(source="s")), "notify"),
        (Detached(on_finish="done", on_milestones=["a"]), "on_milestones"),
    ],
)
def test_what_only_a_chat_can_be_told_is_refused_elsewhere(asked: Detached, what: str) -> None:
    with pytest.raises(InvalidArguments, match=f"^{what} has a chat told, and this agent has none"):
        checked_terms(asked, AgentOptions(), callback=str, in_chat=False)


@pytest.mark.behaviour("AT-233")
def test_the_source_of_a_notice_goes_with_a_callback_without_a_chat() -> None:
    asked = Detached(on_finish="done", notify=Notify(source="s"))
    terms = checked_terms(asked, AgentOptions(), callback=str, in_chat=False)
    assert (terms.on_finish, terms.notify_source) == ("done", "s")


@pytest.mark.behaviour("AT-235", "AT-031", "AT-277")
def test_wishes_for_milestones_as_they_are_asked_for_and_stored() -> None:
    assert terms_of(Detached(on_milestones=[])).milestones is None
    assert terms_of(Detached(on_milestones=Milestones([]))).milestones is None
    wishes = terms_of(Detached(on_milestones=Milestones(["a", "b"], mode="react"))).milestones
    assert wishes == MilestoneWishes(names=("a", "b"), mode="react")
    assert wishes.text() == '{"names":["a","b"],"mode":"react"}'
    told = wishes.without("a")
    assert (told.waits_for("a"), told.waits_for("b"), told.waits_for("c")) == (False, True, False)
    assert told.text() == '{"names":["a","b"],"mode":"react","noticed":["a"]}'


@pytest.mark.behaviour("AT-031")
@pytest.mark.parametrize(
    ("stored", "wishes"),
    [
        ('["a","b"]', MilestoneWishes(names=("a", "b"))),
        ('{"names":["a"]}', MilestoneWishes(names=("a",))),
        ('{"names":["a"],"mode":"react"}', MilestoneWishes(names=("a",), mode="react")),
        (
            '{"names":["a"],"mode":"narrate","noticed":["a"]}',
            MilestoneWishes(names=("a",), noticed=("a",)),
        ),
        ('{"names":[]}', None),
        ("not json", None),
        (None, None),
    ],
)
def test_wishes_are_read_in_whatever_form_they_stand(
    stored: str | None, wishes: MilestoneWishes | None
) -> None:
    columns = (
        "detached_on_finish detached_notify_source detached_max_budget_at last_progress_at "
        "detached_no_progress_budget_ms finish_claimed_at finish_delivered_at "
        "give_up_claimed_at give_up_delivered_at class_gone_since"
    ).split()
    row = dict.fromkeys(columns) | {"detached_on_milestones": stored}
    assert detachment_of(row).milestones == wishes  # type: ignore[arg-type] # rows are read by name
