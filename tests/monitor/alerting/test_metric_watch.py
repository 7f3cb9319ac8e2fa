"""Continuous metrics under limits: values come, looks fall due, statuses follow what is shown and nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from sidejudge.monitor.alerting.details import WatchedWindow
from sidejudge.monitor.alerting.limited_windows import LimitedWindows
from sidejudge.monitor.alerting.metric_watch import MetricWatch
from sidejudge.monitor.alerting.observation import First, Key, Observation, SliceFirst
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.scoring.alerts.condition import Observed
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.status.hysteresis import Hysteresis
from sidejudge.scoring.status.metric_status import MetricLimit, MetricStatus
from sidejudge.scoring.status.status import Policy, Status

MINUTE_NS = 60 * 10**9
LATENCY = MetricLimit(
    name="latency_p95", measure="latency", quantile=0.95, warning=5.0, critical=10.0, unit="seconds"
)  # fmt: skip
GRADE = MetricLimit(
    name="relevance_mean", measure="relevance", rubric="qa", warning=0.7, below=True, bounds=(0.0, 1.0), unit="ratio"
)
RUNS, GRADED = Key("shop", "prod", ""), Key("shop", "prod", "qa")


def slow(rng: random.Random, factor: float = 1.0) -> float:
    """Seconds; with factor 1 the 95th percentile is 3.7."""
    return rng.lognormvariate(0.0, 0.8) * factor


class Played:
    """A watch of two limits that is fed and looked at every ten minutes."""

    def __init__(
        self, mode: str = "adaptive", *, seed: int = 1, per_hour: int = 60, cluster: int = 1,
        limits: tuple[MetricLimit, ...] = (LATENCY, GRADE),
    ) -> None:  # fmt: skip
        self.declared = Declaration(
            policy=Policy(mode=mode), metrics=limits,  # type: ignore[arg-type]  # a mode of the table
            hysteresis=Hysteresis(needed=1, looks=1, recovery_margin=0.02, hold_ns=0),
        )  # fmt: skip
        self.windows = LimitedWindows(self.declared)
        self.figures = LimitedWindows(self.declared)
        metrics = MetricWatch(self.declared, windows=self.windows, figures=self.figures)
        self.watch = Watch(self.declared, self.windows, {}, metrics=metrics)
        self.rng, self.now_ns, self.count = random.Random(seed), 10**18, 0
        self.per_look, self.cluster = per_hour // 6, cluster
        self.events: list[tuple[str, str]] = []

    def hours(
        self, hours: float, *, latency: Callable[[random.Random], float], grade: float = 0.85, sd: float = 0.12
    ) -> None:
        for _ in range(round(hours * 6)):
            for _ in range(self.per_look):
                self.now_ns += 10 * MINUTE_NS // self.per_look
                if self.count % self.cluster == 0:
                    self.took = latency(self.rng)
                self.count += 1
                cluster = str(self.count // self.cluster) if self.cluster > 1 else None
                given = min(1.0, max(0.0, self.rng.gauss(grade, sd)))
                for key, metrics in ((RUNS, {"latency": self.took}), (GRADED, {"relevance": given})):
                    seen = Observation(
                        identity=str(self.count), at_ns=self.now_ns, passed=True, metrics=metrics, cluster=cluster
                    )
                    (self.figures if key is RUNS else self.windows).add(key, seen)
                    self.watch.learn(key, seen) if key is GRADED else self.watch.metrics.learn(key, seen)
            self.look()

    def look(self) -> None:
        measured = self.watch.metrics.measured(self.now_ns)()
        events = self.watch.look(Observed(now_ns=self.now_ns), {}, {}, measured)
        self.events += [(event.condition, event.transition.value) for event in events]

    def of(self, name: str) -> MetricStatus:
        return next(each for each in self.watch.metrics.statuses() if each.limit.name == name)


@pytest.mark.parametrize("mode", ["adaptive", "bound", "point"])
def test_a_rising_percentile_and_a_falling_grade_are_noticed_and_pass_again(mode):
    played = Played(mode)
    played.hours(6, latency=slow)
    assert {each.appraisal.status for each in played.watch.metrics.statuses()} == {Status.HEALTHY}
    played.hours(8, latency=lambda rng: slow(rng, 2.0), grade=0.55)
    assert played.of("latency_p95").appraisal.status is Status.WARNING
    assert played.of("relevance_mean").appraisal.status is Status.WARNING
    assert ("metric_warning", "firing") in played.events
    assert ("metric_critical", "firing") not in played.events
    played.hours(8, latency=lambda rng: slow(rng, 5.0))
    assert played.of("latency_p95").appraisal.status is Status.CRITICAL
    assert played.of("relevance_mean").appraisal.status is Status.HEALTHY


def test_what_lies_between_both_limits_is_no_critical_alert_and_an_outage_is_one():
    """The values since a fall began were selected because they look bad; critical are those that come after."""
    played = Played(limits=(replace(GRADE, critical=0.5),))
    played.hours(60, latency=slow, grade=0.55, sd=1.0)  # as good as 0 or 1 each, half and half
    assert ("metric_warning", "firing") in played.events
    assert ("metric_critical", "firing") not in played.events
    kept = played.watch.to_memory()
    played.hours(1, latency=slow, grade=0.0, sd=0.0)
    assert ("metric_critical", "firing") in played.events
    again = Played(limits=(replace(GRADE, critical=0.5),))
    again.watch.restore(kept)
    assert again.watch.metrics.to_memory() == {name: kept[name] for name in again.watch.metrics.to_memory()}


def test_the_value_has_bounds_around_it_and_says_how_many_it_is_of():
    played = Played()
    played.hours(3, latency=slow)
    found = played.of("latency_p95").estimate
    assert found is not None
    assert found.lower is not None
    assert found.lower < 3.7 < (found.upper or 1e9)
    assert found.n == found.effective_n == 60
    graded = played.of("relevance_mean").estimate
    assert graded is not None
    assert graded.lower < 0.85 < graded.upper


def test_values_that_belong_together_count_for_less():
    alone, together = Played(), Played(cluster=6)
    alone.hours(4, latency=slow)
    together.hours(4, latency=slow)
    by_itself, in_sessions = (each.of("latency_p95").estimate for each in (alone, together))
    assert by_itself.effective_n == by_itself.n == 60
    assert in_sessions.effective_n < 0.5 * in_sessions.n
    assert in_sessions.n > 60, "its window reaches back for them"


def test_too_few_values_are_insufficient_and_a_percentile_needs_more_than_a_mean():
    played = Played(per_hour=6)
    played.hours(6, latency=slow)
    assert played.of("latency_p95").appraisal.status is Status.INSUFFICIENT_DATA
    assert "36 values, 60 are needed" in played.of("latency_p95").appraisal.reason
    assert played.of("relevance_mean").appraisal.status is Status.HEALTHY


def test_a_restart_goes_on_where_it_was():
    played = Played()
    played.hours(3, latency=slow)
    again = Played()
    again.watch.restore(played.watch.to_memory())
    assert again.watch.metrics.to_memory() == played.watch.metrics.to_memory()
    assert again.watch.metrics.series == played.watch.metrics.series == 3


def test_a_limit_that_was_changed_begins_anew():
    played = Played()
    played.hours(3, latency=slow)
    kept = {name: text for name, text in played.watch.to_memory().items() if "latency" in name}
    assert kept
    other = Played()
    other.watch.restore({name.replace("/10.0", "/12.0"): text for name, text in kept.items()})
    assert other.watch.metrics.series == 0


def test_limits_share_the_budget_of_false_alarms_with_pass_rates():
    played = Played()
    played.hours(1, latency=slow)
    # One rubric and three levels of two limits: four series.
    assert played.watch._series == 4


@pytest.mark.parametrize("version", ["qa@1", "qa@2"])
@pytest.mark.parametrize("restarted", [False, True])
def test_another_version_or_judge_of_a_rubric_begins_with_nothing_against_its_limits(restarted, version):
    watched = {"qa": WatchedWindow(version="qa@1")}
    played = Played()
    played.watch = Watch(
        played.declared, played.windows, watched, metrics=played.watch.metrics, judges={"qa": ["small"]}
    )
    judges = {"qa": ["other" if version == "qa@1" else "small"]}
    played.hours(4, latency=lambda rng: slow(rng, 5.0), grade=0.4)
    assert (played.of("relevance_mean").appraisal.status, played.events[-1][1]) == (Status.WARNING, "firing")
    slow_one = played.of("latency_p95")
    begun = len(played.events)
    if restarted:
        kept = played.watch.to_memory()
        played.windows = LimitedWindows(played.declared)
        played.windows.know(GRADED)
        metrics = MetricWatch(played.declared, windows=played.windows, figures=played.figures)
        watched = {"qa": WatchedWindow(version=version)}
        played.watch = Watch(played.declared, played.windows, watched, metrics=metrics, judges=judges)
        played.watch.restore(kept, watched)
    else:
        watched["qa"] = WatchedWindow(version=version)
        played.watch.take_judges(judges)
        played.windows.forget("qa")
        assert [each.limit.name for each in played.watch.metrics.statuses()] == ["latency_p95"]
    played.look()
    assert played.of("relevance_mean").appraisal.status is Status.INSUFFICIENT_DATA
    assert played.of("latency_p95").since_ns == slow_one.since_ns, "the application's figures are of no rubric"
    assert played.events[begun:] == [("metric_warning", "unknown")]
    played.hours(4, latency=lambda rng: slow(rng, 5.0))
    assert played.of("relevance_mean").appraisal.status is Status.HEALTHY
    assert ("metric_warning", "firing") not in played.events[begun:]
    assert ("metric_warning", "resolved") in played.events[begun:]


def test_limits_under_the_same_version_go_on_after_a_restart():
    watched = {"qa": WatchedWindow(version="qa@1")}
    played = Played()
    played.watch = Watch(played.declared, played.windows, watched, metrics=played.watch.metrics)
    played.hours(8, latency=slow, grade=0.4)
    kept = played.watch.metrics.to_memory()
    for stated in (kept, {name: text.replace('"version": "qa@1", ', "") for name, text in kept.items()}):
        metrics = MetricWatch(played.declared, windows=played.windows, figures=played.figures)
        Watch(played.declared, played.windows, watched, metrics=metrics).restore(stated)
        assert metrics.to_memory() == kept, "what an earlier version wrote names none"


def test_limits_of_equal_values_for_different_services_go_on_after_a_restart():
    of_others = replace(LATENCY, services=("desk",))
    played = Played()
    declared = replace(played.declared, metrics=(replace(LATENCY, services=("shop",)), of_others))
    metrics = MetricWatch(declared, windows=played.windows, figures=played.figures)
    played.watch = Watch(declared, played.windows, {}, metrics=metrics)
    played.hours(8, latency=lambda rng: slow(rng, 5.0))
    kept = metrics.to_memory()
    before = played.of("latency_p95")
    assert before.appraisal.status is Status.CRITICAL
    restored = MetricWatch(declared, windows=played.windows, figures=played.figures)
    restored.restore(kept)
    assert restored.to_memory() == kept
    restored.look(restored.measured(played.now_ns)(), played.now_ns)
    (after,) = restored.statuses()
    assert (after.limit, after.since_ns) == (before.limit, before.since_ns)


@pytest.mark.parametrize("broken_first", [False, True])
def test_of_two_limits_that_concern_one_service_the_broken_one_alarms(broken_first):
    lax = replace(LATENCY, warning=500.0, critical=1_000.0, services=("sh*",))
    played = Played("point")
    limits = (LATENCY, lax) if broken_first else (lax, LATENCY)
    metrics = MetricWatch(replace(played.declared, metrics=limits), windows=played.windows, figures=played.figures)
    played.watch = Watch(played.declared, played.windows, {}, metrics=metrics)
    played.hours(6, latency=lambda rng: slow(rng, 10.0))
    assert ("metric_critical", "firing") in played.events


def largest(kept: object) -> Iterator[float]:
    """The weight that every statistic takes for the largest, in what is kept of all of them."""
    if isinstance(kept, dict):
        yield from [kept["largest"]] if "even" in kept else []
        kept = list(kept.values())
    for each in kept if isinstance(kept, list) else ():
        yield from largest(each)


@pytest.mark.parametrize("together", [False, True])
def test_a_sampling_rate_of_before_does_not_make_every_detector_slow_for_good(together):
    """One trace in a hundred was drawn, and for two weeks every one is: a verdict is worth one again."""
    metric = RUBRICS["workflow"].criteria[0].metric.id
    limit = replace(GRADE, name="own_mean", measure=metric, rubric="workflow", critical=0.5)
    key, windows = Key("shop", "prod", "workflow"), LimitedWindows(Declaration(metrics=(limit,)))
    declared = Declaration(metrics=(limit,), slices=("version", "name"))
    metrics = MetricWatch(declared, windows=windows, figures=windows)
    watch, now_ns, hours = Watch(declared, windows, metrics=metrics), 10**18, 14 * 24 + 2
    for hour in range(hours):
        weight = 1.0 if hour else 100.0
        for number in range(16):
            now_ns += 3 * MINUTE_NS
            seen = Observation(
                identity=f"{hour} {number}", at_ns=now_ns, passed=number > 0, weight=weight,
                slices={"version": str(number % 2), "name": str(number % 2)}, metrics={metric: 0.5 + number / 40},
                blockers=(metric,) if number == 0 else (),
            )  # fmt: skip
            windows.add(key, seen)
            if together:
                watch.metrics.learn(key, seen)
                watch.learn_slices(key, {SliceFirst("version", str(number % 2), number > 0, weight): 1}, now_ns)
                watch.learn_together(key, {First(number > 0, weight, True, None): 1}, now_ns, now_ns)
            else:
                watch.learn(key, seen)
        now_ns += 12 * MINUTE_NS
        watch.look(Observed(now_ns=now_ns), {}, {})
        if hour in (0, hours - 1):
            kept = [json.loads(each) for name, each in watch.to_memory().items() if name != "cursor"]
            assert {each for each in largest(kept) if each} == {weight}


@pytest.mark.parametrize("mode", ["adaptive", "bound", "point"])
def test_a_limit_neither_begins_an_alert_nor_ends_one_by_what_needed_no_answer(mode: str) -> None:
    played, waiting = Played(mode, limits=(GRADE,), per_hour=120), [0.0]
    played.watch.awaited = lambda key, now_ns: waiting[0] if key == GRADED else 0.0

    def hours(count: int, grade: float, each: float) -> None:
        for _ in range(count * 6):
            waiting[0] += each
            played.hours(1 / 6, latency=slow, grade=grade)

    hours(4, 0.85, 0.0)
    assert played.events == []
    hours(4, 0.3, 100.0)
    assert (played.events, played.of("relevance_mean").appraisal.status) == ([], Status.INSUFFICIENT_DATA)
    waiting[0] = 0.0
    hours(4, 0.3, 0.0)
    assert played.events == [("metric_warning", "firing")]
    hours(4, 0.95, 100.0)
    assert played.events == [("metric_warning", "firing")]
    assert played.of("relevance_mean").appraisal.reason.endswith("; traces without an answer may decide otherwise")
    waiting[0] = 0.0
    hours(4, 0.95, 0.0)
    assert played.events == [("metric_warning", "firing"), ("metric_warning", "resolved")]
