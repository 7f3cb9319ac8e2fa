from __future__ import annotations

import math
import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.scoring.statistics.estimate import estimate
from sidejudge.scoring.status.service_status import OTHER
from sidejudge.scoring.status.snapshots import CascadeSnapshot
from sidejudge.scoring.status.status import Policy, Status
from sidejudge.scoring.verdict.escalation import Escalation, EscalationCause
from tests.linear_time import steps
from tests.seed_policy import SEED, estimate_of

KEY = Key("shop", "prod", "qa")
WINDOW = 100


def seen(identity, at, passed=True, **more):  # noqa: FBT002 - most of them pass
    return Observation(identity=identity, at_ns=at, passed=passed, **more)


def test_a_verdict_counts_until_the_window_has_passed_and_not_a_nanosecond_longer():
    windows = Windows(WINDOW)
    windows.add(KEY, seen("a", 1000))
    assert estimate_of(windows, KEY, 1099).n == 1
    assert estimate_of(windows, KEY, 1100) is None


@pytest.mark.parametrize("longest", [0, 5 * WINDOW])
def test_what_a_clock_dated_ahead_does_not_count_for_hours_after_it_was_set_back(longest):
    windows, ahead = Windows(WINDOW, longest_ns=longest, enough=4.0 if longest else 0.0), 8 * WINDOW
    for number in range(10):
        windows.add(KEY, seen(f"ahead {number}", 1000 + ahead + number, passed=False))
    assert estimate_of(windows, KEY, 1010 + ahead).failures == 10
    for number in range(10):
        windows.add(KEY, seen(str(number), 1010 + number))
    found = estimate_of(windows, KEY, 1020)
    assert (found.n, found.failures, len(windows)) == (10, 0, 10)
    assert windows.pace(KEY) == 10, "the pace is that of the clock in force"
    assert [held.passed for held in windows.members(KEY, 1020)] == [True] * 10


def test_a_clock_that_is_set_back_by_no_more_than_a_window_takes_nothing_out():
    windows = Windows(WINDOW)
    windows.add(KEY, seen("a", 1000))
    assert [estimate_of(windows, KEY, at).n for at in (1000, 1000 - WINDOW, 1000 + WINDOW - 1)] == [1, 1, 1]
    assert estimate_of(windows, KEY, 1000 + WINDOW) is None


def test_an_empty_window_keeps_its_key_and_is_insufficient_data():
    windows = Windows(WINDOW)
    windows.add(KEY, seen("a", 1000))
    (standing,) = [windows.status(key, 5000, SEED) for key in windows.keys()]  # noqa: SIM118  # Windows is no mapping
    assert standing.appraisal.status is Status.INSUFFICIENT_DATA
    assert (standing.estimate, standing.composite_mean, standing.metric_means) == (None, None, {})
    assert len(windows) == 0


def test_a_revision_replaces_what_it_revises():
    windows = Windows(WINDOW)
    windows.add(KEY, seen("a", 1000, passed=False, metrics={"m": 0.2}))
    windows.add(KEY, seen("a", 1010, passed=True, revision=2, metrics={"m": 0.8}))
    assert (estimate_of(windows, KEY, 1020).n, estimate_of(windows, KEY, 1020).failures) == (1, 0)
    assert windows.status(KEY, 1020, SEED).metric_means == {"m": 0.8}


def test_verdicts_of_two_rubrics_on_one_trace_are_counted_together():
    windows, other = Windows(WINDOW), Key("shop", "prod", "reported")
    for identity, ours, theirs in (("a", True, True), ("b", True, False), ("c", False, False), ("d", None, True)):
        windows.add(KEY, seen(identity, 1000, passed=ours))
        windows.add(other, seen(identity, 1000, passed=theirs))
    windows.add(other, seen("alone", 1000))
    windows.add(other, seen("a", 1001, passed=False, revision=2))
    assert windows.both(other, KEY, 1020).counts == ((1, 2), (0, 0))
    assert windows.both(other, KEY, 1100).n == 0, "what left one window counts in neither"
    assert windows.both(other, Key("shop", "test", "qa"), 1020).n == 0


def test_a_revision_replaces_across_services_and_leaves_other_rubrics_alone():
    windows = Windows(WINDOW)
    windows.add(Key("unknown", "prod", "qa"), seen("a", 1000, passed=False))
    windows.add(Key("unknown", "prod", "workflow"), seen("a", 1000, passed=False))
    windows.add(KEY, seen("a", 1010, revision=2))
    assert estimate_of(windows, Key("unknown", "prod", "qa"), 1020) is None
    assert estimate_of(windows, Key("unknown", "prod", "workflow"), 1020).failures == 1
    assert estimate_of(windows, KEY, 1020).n == 1


def test_an_older_revision_that_arrives_late_changes_nothing():
    windows = Windows(WINDOW)
    assert windows.add(KEY, seen("a", 1010, passed=True, revision=2))
    assert not windows.add(KEY, seen("a", 1000, passed=False, revision=1))
    assert estimate_of(windows, KEY, 1020).failures == 0


def test_what_is_withdrawn_no_longer_counts():
    windows = Windows(WINDOW)
    windows.add(KEY, seen("a", 1000, passed=False))
    windows.add(KEY, seen("b", 1000))
    assert windows.withdraw("a", "qa")
    assert not windows.withdraw("a", "qa")
    assert not windows.withdraw("b", "workflow")
    assert (estimate_of(windows, KEY, 1010).n, estimate_of(windows, KEY, 1010).failures) == (1, 0)


def test_an_incomplete_verdict_neither_passes_nor_fails_and_takes_back_what_it_revises():
    windows = Windows(WINDOW)
    windows.add(KEY, seen("a", 1000))
    windows.add(KEY, seen("b", 1000))
    windows.add(KEY, seen("b", 1001, passed=None, revision=2, metrics={"m": 0.5}))
    standing = windows.status(KEY, 1020, SEED)
    assert (standing.estimate.n, standing.incomplete) == (1, 1)
    assert standing.metric_means == {"m": 0.5}


def test_means_are_weighted_as_the_estimate_is():
    windows = Windows(WINDOW)
    windows.add(KEY, seen("a", 1000, weight=20.0, composite=0.9, metrics={"m": 1.0}))
    windows.add(KEY, seen("b", 1000, passed=False, selection="forced", composite=0.2, metrics={"m": 0.0, "k": 3.0}))
    windows.add(KEY, seen("c", 1000, passed=False))
    standing = windows.status(KEY, 1020, SEED)
    assert standing.composite_mean == pytest.approx((20 * 0.9 + 0.2) / 21)
    assert standing.metric_means == pytest.approx({"m": 20 / 21, "k": 3.0})
    assert (standing.forced, standing.estimate.n) == (1, 3)


def test_a_window_that_reaches_back_to_a_moment_holds_what_came_since_with_an_interval_for_any_such_moment():
    windows, policy = Windows(WINDOW), Policy()
    for number in range(60):
        windows.add(KEY, seen(str(number), 1000 + number, passed=number < 40 or number % 2 == 0, composite=number / 60))
    whole, cut = windows.status(KEY, 1060, policy), windows.status(KEY, 1060, policy, since_ns=1040)
    assert (cut.estimate.n, cut.estimate.failures, cut.estimate.pass_ratio, cut.reach_ns) == (20, 10, 0.5, 20)
    assert cut.composite_mean == pytest.approx(sum(range(40, 60)) / 20 / 60)
    alone = estimate((number % 2 == 0, 1.0) for number in range(20))
    assert cut.estimate.lower < alone.lower < alone.upper < cut.estimate.upper, "the moment was chosen among failures"
    assert windows.status(KEY, 1060, policy, since_ns=900) == whole, "it began before the window"


def test_sums_do_not_drift_over_a_long_life():
    windows, chance, living = Windows(WINDOW), random.Random(5), []
    for now in range(20_000):
        observation = seen(str(now), now, chance.random() < 0.8, weight=1 / chance.choice([1e-9, 0.3, 0.07, 1.0]))
        windows.add(KEY, observation)
        living.append(observation)
        estimate_of(windows, KEY, now)
    living = [o for o in living if o.at_ns > now - WINDOW]
    assert estimate_of(windows, KEY, now) == estimate([(o.passed, o.weight) for o in living])


def test_memory_is_bounded_and_the_fullest_window_pays():
    windows = Windows(10**9, max_verdicts=100)
    windows.add(Key("quiet", "prod", "qa"), seen("first", 0))
    for at in range(1000):
        windows.add(KEY, seen(str(at), at))
    assert len(windows) == 100
    assert windows.shortened == 901
    assert estimate_of(windows, KEY, 1000).n == 99
    assert estimate_of(windows, Key("quiet", "prod", "qa"), 1000).n == 1


def test_a_verdict_beyond_what_is_held_costs_the_same_whatever_the_number_of_services():
    def a_verdict(services: int) -> int:
        windows = Windows(WINDOW, max_verdicts=3 * services, max_keys=services)
        for number in range(3 * services):
            windows.add(Key(f"shop {number % services}", "prod", "qa"), seen(str(number), 1000))
        found = steps(lambda: windows.add(KEY._replace(service="shop 1"), seen("more", 1000)))
        return found + steps(lambda: windows.add(KEY._replace(service="of no room"), seen("another", 1000)))

    assert a_verdict(400) <= a_verdict(25) + 40


def test_revising_one_verdict_forever_needs_no_more_memory():
    windows = Windows(10**9)
    for at in range(10_000):
        windows.add(KEY, seen("same", at, revision=at))
    assert len(windows) == 1
    assert len(windows._windows[KEY].expiry) < 100


def test_keys_are_bounded_silent_ones_make_room_and_busy_ones_share():
    windows = Windows(WINDOW, max_keys=2)
    windows.add(Key("a", "prod", "qa"), seen("1", 1000))
    windows.add(Key("b", "prod", "qa"), seen("2", 1150))
    estimate_of(windows, Key("a", "prod", "qa"), 1150)
    windows.add(Key("c", "prod", "qa"), seen("3", 1160))
    assert windows.keys() == [Key("b", "prod", "qa"), Key("c", "prod", "qa")]
    windows.add(Key("d", "prod", "qa"), seen("4", 1160))
    assert windows.keys()[0] == Key(OTHER, OTHER, "qa")


@pytest.mark.parametrize("limits", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_limits_that_cannot_be_are_refused(limits):
    window, verdicts, keys = limits
    with pytest.raises(ValueError, match="positive"):
        Windows(window, max_verdicts=verdicts, max_keys=keys)


@pytest.mark.parametrize("weight", [0.0, math.nan, math.inf])
def test_a_weight_that_cannot_be_is_refused_before_anything_changes(weight):
    windows = Windows(WINDOW)
    windows.add(KEY, seen("a", 1000))
    with pytest.raises(ValueError, match="weight"):
        windows.add(KEY, seen("a", 1001, weight=weight, revision=2))
    assert estimate_of(windows, KEY, 1002).n == 1


services = st.sampled_from(["shop", "bank"])
values = st.one_of(st.none(), st.floats(0, 1))


class Recomputation(RuleBasedStateMachine):
    """The windows against a list of everything that ever came, looked through afresh each time."""

    def __init__(self):
        super().__init__()
        self.windows, self.now, self.fell = Windows(WINDOW), 1000, 950
        self.held: dict[tuple[str, str], tuple[Key, Observation]] = {}

    @rule(
        service=services, rubric=st.sampled_from(["qa", "workflow"]), identity=st.sampled_from("abcdef"),
        age=st.integers(0, 120), passed=st.sampled_from([True, False, None]), revision=st.integers(1, 3),
        weight=st.sampled_from([1.0, 1 / 0.3, 1 / 0.07, 2.0**56]), composite=values, metric=values,
    )  # fmt: skip
    def verdict(self, service, rubric, identity, age, passed, revision, weight, composite, metric):
        self.sweep()
        key = Key(service, "prod", rubric)
        observation = seen(
            identity, self.now - age, passed, weight=weight, revision=revision, composite=composite,
            metrics={} if metric is None else {"m": metric},
        )  # fmt: skip
        former = self.held.get((identity, rubric))
        if former is None or former[1].revision <= revision:
            self.held[identity, rubric] = (key, observation)
        self.windows.add(key, observation)

    @rule(age=st.integers(1, 120))
    def falls(self, age):
        self.fell = self.now - age

    @rule(step=st.integers(1, 70))
    def time_passes(self, step):
        self.now += step

    @invariant()
    def sweep(self):
        self.held = {p: (k, o) for p, (k, o) in self.held.items() if o.at_ns > self.now - WINDOW}
        for key in [Key(s, "prod", r) for s in ("shop", "bank") for r in ("qa", "workflow")]:
            mine = [o for k, o in self.held.values() if k == key]
            expected = estimate([(o.passed, o.weight) for o in mine if o.passed is not None])
            assert estimate_of(self.windows, key, self.now) == expected
            since = self.fell if self.fell > self.now - WINDOW else 0
            later = estimate([(o.passed, o.weight) for o in mine if o.passed is not None and o.at_ns >= since])
            shown = self.windows.status(key, self.now, Policy(), since_ns=self.fell).estimate
            assert (shown and (shown.n, shown.pass_ratio)) == (later and (later.n, later.pass_ratio))
            standing = self.windows.status(key, self.now, SEED)
            with_composite = [o for o in mine if o.composite is not None]
            if with_composite:
                mean = math.fsum(o.composite * o.weight for o in with_composite) / math.fsum(
                    o.weight for o in with_composite
                )
                assert standing.composite_mean == mean
            else:
                assert standing.composite_mean is None
            assert set(standing.metric_means) == {m for o in mine for m in o.metrics}
        assert len(self.windows) == len(self.held)


Recomputation.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestAgainstRecomputation = Recomputation.TestCase


def went(cause, before, **more):
    return Escalation(judge="strong", cause=cause, rate=0.1, judge_before="default", passed_before=before, **more)


def test_behind_a_cascade_the_ratio_is_that_of_the_strongest_judge_and_follows_what_leaves():
    windows = Windows(1000)
    for number in range(240):
        windows.add(KEY, seen(f"sure-{number}", at=100, cascade=went(EscalationCause.SURE, None)))
    for number in range(30):
        turned = number < 9
        windows.add(KEY, seen(f"drawn-{number}", at=100, passed=not turned, cascade=went(EscalationCause.DRAWN, True)))
        doubt = went(EscalationCause.DOUBT, True, why="near")
        windows.add(KEY, seen(f"doubt-{number}", at=100, passed=False, cascade=doubt))
    status = windows.status(KEY, 500, Policy())
    # Of the 270 sure ones 3 of 10 are turned, and all 30 in doubt fail: 1 - (270 * 0.3 + 30) / 300.
    assert status.estimate.pass_ratio == pytest.approx(0.63)
    assert status.estimate.lower < 0.63 < status.estimate.upper
    assert status.cascade == CascadeSnapshot(
        verdicts={"sure": 240, "doubt": 30, "drawn": 30}, changed={"doubt": 30, "drawn": 9}, unanswered=0,
        as_delivered=pytest.approx(0.87), corrected=True,
    )  # fmt: skip
    windows.withdraw("drawn-0", KEY.rubric)
    status = windows.status(KEY, 500, Policy())
    assert status.estimate.pass_ratio == pytest.approx(261 / 299), "with fewer than 30 it is as delivered"
    assert not status.cascade.corrected


def test_a_window_with_little_traffic_reaches_back_until_it_holds_enough_and_never_further_than_it_may():
    windows = Windows(WINDOW, longest_ns=1000, enough=5)
    for number in range(8):
        windows.add(KEY, seen(str(number), 100 * number))
    assert estimate_of(windows, KEY, 750).n == 5
    assert windows.pace(KEY) == pytest.approx(5 * 100 / 450)
    assert estimate_of(windows, KEY, 1650).n == 1, "older than the longest is gone, enough or not"
    assert estimate_of(windows, KEY, 1700) is None


def test_a_window_with_much_traffic_is_as_short_as_it_is_declared_and_weights_count_as_they_do_in_the_estimate():
    windows = Windows(WINDOW, longest_ns=1000, enough=5)
    for number in range(40):
        windows.add(KEY, seen(str(number), 10 * number, weight=1.0 if number % 2 else 100.0))
    assert estimate_of(windows, KEY, 390).effective_n >= 5
    assert estimate_of(windows, KEY, 390).n == 10
    short = Windows(WINDOW)
    for number in range(40):
        short.add(KEY, seen(str(number), 10 * number, weight=1.0 if number % 2 else 100.0))
    assert estimate_of(short, KEY, 390).n == 10


def test_clusters_are_counted_and_divide_the_effective_sample():
    windows = Windows(WINDOW)
    for number in range(20):
        windows.add(KEY, seen(str(number), number, cluster=str(number // 5) if number < 15 else None))
    windows.design[KEY] = 4.0
    found = estimate_of(windows, KEY, 20)
    assert (found.n, found.clusters, found.effective_n) == (20, 8, 5.0)
    windows.add(KEY, seen("0", 30, revision=2, passed=None, cluster="0"))
    assert estimate_of(windows, KEY, 30).clusters == 8
    assert estimate_of(windows, KEY, 104).clusters == 2 + 5
    assert estimate_of(windows, KEY, 109).clusters == 1 + 5


@pytest.mark.parametrize("seed", range(20))
def test_what_a_start_leaves_out_would_have_left_its_window_at_once(seed):
    chance, now, weights = random.Random(seed), 100_000, [1.0] if seed % 2 else [1.0, 1.0, 1.0, 20.0]
    busy, quiet = Key("busy", "prod", "qa"), Key("quiet", "prod", "qa")
    rows = []
    for key in [busy] * 3_000 + [quiet] * 40:
        at, passed = chance.randrange(now - 30 * WINDOW, now), chance.choice([True, False, None])
        rows.append((key, seen(str(len(rows)), at, passed, weight=chance.choice(weights))))
    rows.sort(key=lambda row: row[1].at_ns)

    def filled(needed) -> Windows:
        windows = Windows(WINDOW, longest_ns=24 * WINDOW, enough=20.0, max_verdicts=2_000)
        windows.design[busy] = 1.5
        for key, each in rows:
            if needed(key, each.at_ns):
                windows.add(key, each)
        return windows

    begins = filled(lambda *_: False).begins(
        [(key, each.at_ns, None if each.passed is None else each.weight) for key, each in reversed(rows)], now
    )
    whole, part = filled(lambda _, at: at > now - 24 * WINDOW), filled(lambda key, at: at >= begins[key])
    for key in (busy, quiet):
        assert part.members(key, now) == whole.members(key, now)
    assert sum(at >= begins[key] for key, at in ((key, each.at_ns) for key, each in rows)) < 300


def test_a_start_needs_no_more_verdicts_than_windows_may_hold_and_the_fullest_pays():
    windows, other = Windows(WINDOW, max_verdicts=30), Key("other", "prod", "qa")
    rows = [(KEY, 1_000 - number, 1.0) for number in range(90)] + [(other, 990 - number, 1.0) for number in range(5)]
    assert windows.begins(rows, 1_001) == {KEY: 1_000 - 24, other: 986}
