"""The window of a limited metric reaches back by the metric's own values, whatever the verdicts are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidejudge.monitor.alerting.details import WatchedWindow
from sidejudge.monitor.alerting.limited_windows import LimitedWindows
from sidejudge.monitor.alerting.metric_watch import MetricWatch
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.scoring.alerts.condition import Observed
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.quantile import Measured
from sidejudge.scoring.status.hysteresis import Hysteresis
from sidejudge.scoring.status.metric_status import MetricLimit, MetricStatus, metric_estimate
from sidejudge.scoring.status.status import Policy, Status

MINUTE_NS = 60 * 10**9
HOUR_NS = 60 * MINUTE_NS
GRADE = MetricLimit(
    name="relevance_mean", measure="relevance", rubric="qa", warning=0.7, below=True, bounds=(0.0, 1.0), unit="ratio"
)
DECLARED = Declaration(
    policy=Policy(mode="adaptive"), metrics=(GRADE,),
    hysteresis=Hysteresis(needed=1, looks=1, recovery_margin=0.02, hold_ns=0),
)  # fmt: skip
KEY = Key("shop", "prod", "qa")


class Graded:
    """A service with a verdict a minute, of which every tenth has a grade."""

    def __init__(self, declared: Declaration = DECLARED) -> None:
        self.declared = declared
        self.now_ns, self.count = 10**18, 0
        self.seen: list[Observation] = []
        self.begin()

    def begin(self) -> None:
        self.windows: LimitedWindows = LimitedWindows(self.declared)
        metrics = MetricWatch(self.declared, windows=self.windows, figures=LimitedWindows(self.declared))
        self.watch = Watch(self.declared, self.windows, {"qa": WatchedWindow()}, metrics=metrics)
        self.events: list[tuple[str, str]] = []

    def hours(
        self, hours: float, grade: float | None, *, every: int = 10, passed: bool | None = True, cluster: int = 1
    ) -> None:
        for _ in range(round(hours * 60)):
            self.now_ns += MINUTE_NS
            self.count += 1
            graded = grade is not None and self.count % every == 0
            # Two values of equal distance from the mean, so that a grade varies.
            value = {"relevance": grade + (0.1 if self.count // every % 2 else -0.1)} if graded else {}
            self.take(
                Observation(
                    identity=str(self.count), at_ns=self.now_ns, passed=passed, metrics={**value, "other": 1.0},
                    cluster=str(self.count // every // cluster) if cluster > 1 else None,
                )
            )  # fmt: skip
            if self.count % 10 == 0:
                self.look()

    def take(self, seen: Observation) -> None:
        self.seen.append(seen)
        self.windows.add(KEY, seen)
        self.watch.learn(KEY, seen)

    def look(self) -> None:
        events = self.watch.look(Observed(now_ns=self.now_ns), {}, {}, self.watch.metrics.measured(self.now_ns)())
        self.events += [(each.condition, each.transition.value) for each in events]

    @property
    def grade(self) -> MetricStatus:
        (found,) = self.watch.metrics.statuses()
        return found


def test_a_metric_of_a_tenth_of_the_verdicts_has_a_status_and_its_alert_ends_with_its_recovery():
    service = Graded()
    service.hours(6, 0.85)
    assert (service.grade.appraisal.status, service.grade.estimate.n) == (Status.HEALTHY, 30)
    service.hours(6, 0.4)
    assert service.grade.appraisal.status is Status.WARNING
    service.hours(7, 0.9)
    assert (service.grade.appraisal.status, service.grade.estimate.n) == (Status.HEALTHY, 30)
    assert service.events == [("metric_warning", "firing"), ("metric_warning", "resolved")]


def test_verdicts_that_neither_pass_nor_fail_do_not_lengthen_the_window_of_a_metric_that_they_have():
    service = Graded()
    service.hours(10, 0.4, every=1, passed=None)
    service.hours(1, 0.85, every=1, passed=None)
    assert service.grade.estimate.n == 60
    assert service.grade.estimate.value == pytest.approx(0.85)


def test_a_window_reaches_back_a_day_at_most_and_each_limit_by_what_it_needs():
    share = replace(GRADE, name="relevance_p95", quantile=0.95)
    service = Graded(replace(DECLARED, metrics=(GRADE, share)))
    service.hours(40, 0.85)
    found = {each.limit.name: each.estimate.n for each in service.watch.metrics.statuses()}
    assert found == {"relevance_mean": 30, "relevance_p95": 60}
    service.hours(40, 0.85, every=100)
    assert {each.estimate.n for each in service.watch.metrics.statuses()} == {15}


def test_values_that_usually_come_often_are_not_replaced_by_older_ones_when_they_stop():
    service = Graded()
    service.hours(6, 0.85, every=1)
    service.hours(1, None)
    assert (service.grade.appraisal.status, service.grade.estimate) == (Status.INSUFFICIENT_DATA, None)
    assert service.grade.appraisal.reason == "no value of relevance in the window"


def test_values_that_no_longer_come_are_silent_and_their_alert_is_neither_over_nor_sent_again():
    service = Graded()
    service.hours(8, 0.9)
    service.hours(8, 0.4)
    assert service.grade.appraisal.status is Status.WARNING
    service.hours(2, None)
    assert service.grade.appraisal.status is Status.WARNING, "two hours without a value are usual at six an hour"
    service.hours(4, None)
    assert (service.grade.appraisal.status, service.grade.estimate) == (Status.INSUFFICIENT_DATA, None)
    service.hours(8, 0.4)
    assert service.grade.appraisal.status is Status.WARNING
    assert [turn for _, turn in service.events] == ["firing", "unknown", "firing"]


def test_values_that_no_longer_come_are_silent_after_a_clock_that_was_hours_ahead_was_set_back():
    service = Graded()
    service.hours(8, 0.9)
    service.now_ns += 48 * HOUR_NS
    service.hours(1 / 6, 0.9)
    service.now_ns -= 48 * HOUR_NS
    service.hours(8, 0.9)
    service.hours(6, None)
    assert (service.grade.appraisal.status, service.grade.estimate) == (Status.INSUFFICIENT_DATA, None)


def test_in_mode_bound_the_window_of_a_metric_is_that_of_its_verdicts():
    service = Graded(replace(DECLARED, policy=Policy(mode="bound")))
    service.hours(6, 0.85)
    assert service.grade.estimate.n == 6


def test_a_revision_replaces_its_value_or_takes_it_out_and_a_withdrawn_verdict_has_none():
    service = Graded()
    service.hours(5, 0.85)
    service.look()
    first = next(each for each in service.seen if "relevance" in each.metrics)
    service.windows.add(KEY, replace(first, revision=2, metrics={"relevance": 0.0}))
    service.look()
    assert service.grade.estimate.value == pytest.approx(0.85 - 0.95 / 30)
    service.windows.add(KEY, replace(first, revision=3, metrics={}))
    service.look()
    assert service.grade.estimate.n == 29
    service.windows.withdraw(next(each for each in service.seen[20:] if "relevance" in each.metrics).identity, "qa")
    service.look()
    assert service.grade.estimate.n == 28
    service.windows.forget("qa")
    service.look()
    assert service.grade.estimate is None


def test_a_restart_fills_the_window_of_a_metric_as_far_back_as_its_clusters_make_necessary():
    service = Graded()
    service.hours(20, 0.85, cluster=3)
    service.hours(3, 0.4, cluster=3)
    before = service.grade
    assert before.estimate.n > 40
    kept = service.watch.to_memory()
    service.begin()
    service.watch.restore(kept)
    for each in service.seen:
        service.windows.add(KEY, each)
    service.look()
    assert service.grade.estimate.effective_n >= 30


def test_no_status_contradicts_the_interval_that_is_shown_beside_it():
    service = Graded()
    found = []
    for hours, grade in (
        (6, 0.85),
        (1, 0.4),
        (0.5, 0.85),
        (2, 0.2),
        (4, 0.9),
        (3, 0.68),
        (4, 0.72),
        (0.5, 0.4),
        (3, 0.8),
    ):
        for _ in range(round(hours * 6)):
            service.hours(1 / 6, grade, every=1)
            shown = service.grade.estimate
            found.append((service.grade.appraisal.status, shown.lower > 0.7, shown.upper < 0.7))
    statuses = {status for status, _, _ in found}
    assert statuses >= {Status.HEALTHY, Status.WARNING}
    assert not [each for each in found if each[0] is Status.WARNING and each[1]]
    assert not [each for each in found if each[0] is Status.HEALTHY and each[2]]


def test_a_fall_within_a_busy_window_is_noticed_and_shown_by_the_values_since():
    service = Graded()
    service.hours(6, 0.9, every=1)
    minutes = 0
    while service.grade.appraisal.status is Status.HEALTHY:
        service.hours(1 / 6, 0.2, every=1)
        minutes += 10
    assert minutes <= 40
    assert service.grade.appraisal.status is Status.WARNING
    assert (service.grade.estimate.n, service.grade.estimate.value) == (minutes, pytest.approx(0.2))
    values = [Measured(each.metrics["relevance"], 1.0, None) for each in service.seen[-minutes:]]
    plain = metric_estimate(GRADE, values, largest=1.0)
    assert service.grade.estimate.upper > plain.upper, "the beginning was chosen, because it looks bad"
