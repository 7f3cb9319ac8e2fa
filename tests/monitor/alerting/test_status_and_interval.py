"""No status says what its own interval rules out: the real watch over real windows, look by look, on whatever comes."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from sidejudge.monitor.alerting.limited_windows import LimitedWindows
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.scoring.alerts.condition import Observed
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.status import Mode, Policy, Status

KEY, MINUTE_NS = Key("shop", "prod", "qa"), 60 * 10**9
COURSES = {
    "just below the threshold": [(1_500, 0.84)],
    "an outage": [(300, 0.96), (40, 0.0), (400, 0.97)],
    "a drop, long and then over": [(300, 0.97), (500, 0.6), (400, 0.99)],
    "worse and worse": [(200, 0.95 - 0.05 * step) for step in range(8)],
    "to and fro": [(60, ratio) for ratio in (0.95, 0.5) * 12],
    "always failing": [(200, 0.0), (200, 1.0)],
}
TRAFFIC = [{"per_minute": 1.0}, {"per_minute": 0.1}, {"per_minute": 2.0, "size": 5}]


def looks(
    course,
    *,
    per_minute: float,
    size: int = 1,
    weight: float = 1.0,
    seed: int = 1,
    mode: Mode = "adaptive",
    every: int = 1,
):
    """The service's status after each look, one ``every`` so many minutes."""
    declared, chance = Declaration(policy=Policy(mode=mode)), random.Random(seed)
    windows = LimitedWindows(declared)
    watch, now_ns, number = Watch(declared, windows), 10**18, 0
    for minutes, ratio in course:
        for minute in range(minutes):
            now_ns += MINUTE_NS
            while ratio is not None and chance.random() < per_minute / size / (1 + per_minute / size):
                passed = chance.random() < ratio
                for _ in range(size):
                    number += 1
                    seen = Observation(identity=str(number), at_ns=now_ns, passed=passed, weight=weight)
                    windows.add(KEY, seen)
                    watch.learn(KEY, seen)
            if minute % every:
                continue
            watch.look(Observed(now_ns=now_ns), {}, {})
            yield from watch.service_statuses(now_ns)


def drawn(seed: int) -> tuple[list[tuple[int, float | None]], dict[str, float]]:
    """A course of any levels, falls, slides and silences, and traffic of any rate, clusters and weights."""
    chance = random.Random(seed)
    course: list[tuple[int, float | None]] = []
    while sum(minutes for minutes, _ in course) < 700:
        level = chance.choice([0.75, 0.82, 0.84, 0.85, 0.87, 0.96, chance.random(), None])
        course.append((chance.choice([5, 30, 120, 240]), level))
        if level is not None and chance.random() < 0.3:  # a slide
            course += [(20, max(0.0, level - 0.02 * step)) for step in range(8)]
    return course, {
        "per_minute": chance.choice([0.1, 0.5, 2.0]), "size": chance.choice([1, 1, 5]),
        "weight": chance.choice([1.0, 20.0]), "seed": seed,
    }  # fmt: skip


def held(each) -> Status:
    """The status, which its own interval does not rule out."""
    status, found, bounds, reason = each.appraisal.status, each.estimate, each.thresholds, each.appraisal.reason
    if each.silence is not None:
        assert status is Status.NO_DATA
    if found is None:
        assert status not in (Status.HEALTHY, Status.WARNING, Status.CRITICAL)
    elif status is Status.HEALTHY:
        assert found.upper >= bounds.warning
        assert f"{found.lower:.2f}" in reason
    elif status in (Status.WARNING, Status.CRITICAL):
        assert found.lower <= (bounds.critical if status is Status.CRITICAL else bounds.warning)
    return status


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_no_status_in_force_says_what_its_own_interval_rules_out(seed):
    course, traffic = drawn(seed)
    assert {held(each) for each in looks(course, every=2, **traffic)}


@pytest.mark.parametrize(("course", "traffic"), list(zip(COURSES.values(), TRAFFIC * 2, strict=True)), ids=COURSES)
def test_no_status_in_force_says_what_its_own_interval_rules_out(course, traffic):
    assert {held(each) for each in looks(course, every=6, **traffic)}


def test_critical_is_neither_over_nor_sent_again_while_the_window_hovers_about_its_threshold():
    """The evidence of hours shows that it is critical, and the window rules that out at some looks."""
    declared, chance = Declaration(), random.Random(3)
    windows = LimitedWindows(declared)
    watch, now_ns, turns, statuses = Watch(declared, windows), 10**18, [], []
    for minute in range(420):
        now_ns += MINUTE_NS
        for place in range(4):
            passed = chance.random() < (0.96 if minute < 100 else 0.0 if minute < 200 else 0.74)
            seen = Observation(identity=f"{minute}-{place}", at_ns=now_ns, passed=passed)
            windows.add(KEY, seen)
            watch.learn(KEY, seen)
        events = watch.look(Observed(now_ns=now_ns), {}, {})
        turns += [each.transition.value for each in events if each.condition == "pass_rate_critical"]
        statuses += [each.appraisal.status for each in watch.service_statuses(now_ns)]
    left = [a for a, b in itertools.pairwise(statuses) if a is Status.CRITICAL is not b]
    assert len(left) > 1
    assert turns in (["firing"], ["firing", "resolved"])


def test_between_two_looks_no_status_is_shown_beside_figures_that_rule_it_out():
    declared = Declaration(policy=Policy(mode="bound"))
    windows = LimitedWindows(declared)
    watch, begin_ns = Watch(declared, windows), 10**18
    for number in range(134):
        old = number < 100
        seen = Observation(
            identity=str(number), at_ns=begin_ns + (0 if old else 30 * MINUTE_NS), passed=old or number % 2 == 0
        )
        windows.add(KEY, seen)
    for minute in range(48, 60):
        watch.look(Observed(now_ns=begin_ns + minute * MINUTE_NS), {}, {})
    (before,) = watch.service_statuses(begin_ns + 59 * MINUTE_NS)
    (after,) = watch.service_statuses(begin_ns + 60 * MINUTE_NS + 1)  # a hundred that passed have left the window
    assert before.appraisal.status is Status.HEALTHY
    assert after.estimate.n == 34
    assert after.estimate.upper < 0.85
    assert after.appraisal.status is Status.INSUFFICIENT_DATA


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
def test_healthy_is_never_said_below_the_threshold_in_mode_bound_either(course):
    seen = set()
    for each in looks(course, per_minute=2.0, mode="bound", every=6):
        status, found = each.appraisal.status, each.estimate
        seen.add(status)
        if found is not None and status is Status.HEALTHY:
            assert found.upper >= each.thresholds.warning
        if found is not None and status is Status.WARNING:
            assert found.lower <= each.thresholds.warning
        if found is not None and status is Status.CRITICAL:
            assert found.lower <= each.thresholds.critical
    assert len(seen) > 1


@pytest.mark.parametrize("seed", range(2))
def test_late_verdicts_revisions_huge_weights_a_clock_set_back_and_restarts_do_not_change_that(seed):
    declared, chance = Declaration(), random.Random(seed)
    windows = LimitedWindows(declared)
    watch, now_ns, ratio, past = Watch(declared, windows), 10**18, 0.95, []
    for minute in range(150):
        now_ns += MINUTE_NS - (90 * MINUTE_NS if minute == 110 else 0)
        ratio = chance.choice([0.95, 0.75, 0.5, 0.0, 0.99]) if minute % 40 == 39 else ratio
        for place in range(2):
            late_ns = chance.choice([20, 70]) * MINUTE_NS if chance.random() < 0.1 else 0
            weight = chance.choice([20.0, 1e6]) if chance.random() < 0.05 else 1.0
            seen = Observation(
                identity=f"{minute}-{place}", at_ns=now_ns - late_ns, passed=chance.random() < ratio, weight=weight
            )
            windows.add(KEY, seen)
            watch.learn(KEY, seen)
            past.append(seen)
        for seen in past[-20:] if minute % 10 == 0 else ():
            windows.add(KEY, replace(seen, passed=chance.random() < 0.5, revision=2))
        watch.look(Observed(now_ns=now_ns), {}, {})
        assert {held(each) for each in watch.service_statuses(now_ns)}
        if minute % 50 == 0:
            kept = watch.to_memory()
            watch = Watch(declared, windows)
            watch.restore(kept)
