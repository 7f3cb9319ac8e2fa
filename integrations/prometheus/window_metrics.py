"""Gauges of windows: estimate, status, watch, corrected share and cascade, alerts, limited metrics and agreement.

A continuous metric with a limit also has counters of which PromQL makes the same share. Agreement is how far verdicts
agree with people's, and the pass ratio that people would have found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from sidejudge.scoring.alerts.condition import PLACE, Condition, Labels
from sidejudge.scoring.alerts.lifecycle import Posted, Stage
from sidejudge.scoring.alerts.quality import place
from sidejudge.scoring.calibration.calibrated import Calibrated, ErrorRate
from sidejudge.scoring.lexical.shown_text import clean, label_of
from sidejudge.scoring.statistics.agreement import Kappa
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot
from sidejudge.scoring.status.metric_status import Level, MetricLimit, MetricStatus
from sidejudge.scoring.status.service_status import UNKNOWN_SERVICE, ServiceStatus, SliceStatus
from sidejudge.scoring.status.status import WORST_FIRST, Status

from . import families as f
from .collect import MetricValues, Series, known


class LimitMetrics:
    """Counts, for each limit, how far the values of all traffic keep to it."""

    def __init__(
        self, counted: MetricValues, limits: Sequence[MetricLimit],
        bounded: Callable[[str | None, str | None], tuple[str, str]],
    ) -> None:  # fmt: skip
        self._counter, self._zeros, self._limits, self._bounded = counted.counter, counted.zeros, limits, bounded

    def zeros(self, service: str, environment: str) -> None:
        """Let the counters of a place that is new begin at 0."""
        for limit in self._limits:
            if limit.concerns(service):
                who = [service], [environment], [limit.rubric], [limit.name]
                kept = f.LIMITED_KEPT_WEIGHT, *who, [level for level, _ in limit.levels]
                self._zeros((f.LIMITED_WEIGHT, *who), (f.LIMITED_WEIGHT_SQUARED, *who), kept)

    def values(
        self, service: str | None, environment: str | None, rubric: str, values: Mapping[str, float], weight: float
    ) -> None:
        """Count the values of a first verdict, or of a trace's figures (``rubric`` is then empty).

        Limits of one metric share its series: where several concern a service, what keeps to all of them is kept.
        """
        found: dict[str, dict[Level, float]] = {}
        for limit in self._limits:
            value = values.get(limit.measure)
            if value is None or limit.rubric != rubric or not limit.concerns(service or UNKNOWN_SERVICE):
                continue
            kept = found.setdefault(limit.name, {})
            for level, bound in limit.levels:
                kept[level] = min(kept.get(level, 1.0), limit.kept(value, bound))
        for name, kept in found.items():
            who = (*self._bounded(service, environment), rubric, name)
            self._counter(f.LIMITED_WEIGHT, *who).inc(weight)
            self._counter(f.LIMITED_WEIGHT_SQUARED, *who).inc(weight * weight)
            for level, share in kept.items():
                self._counter(f.LIMITED_KEPT_WEIGHT, *who, level).inc(weight * share)


def limit_gauges(
    statuses: Iterable[MetricStatus], limits: Iterable[MetricLimit],
    bounded: Callable[[str | None, str | None], tuple[str, str]],
) -> Iterator[Series]:  # fmt: skip
    """The statuses of the last look, and the limits in force: of several limits of one metric the strictest.

    Of several statuses that share their label values the worst is shown.
    """
    strictest: dict[tuple[str, str, Level], tuple[float, float, float]] = {}
    for limit in limits:
        for level, bound in limit.levels:
            of, strict = (limit.rubric, limit.name, level), (limit.threshold(bound), bound if limit.below else -bound)
            strictest[of] = max(strictest.get(of, (*strict, bound)), (*strict, bound))
    for of, (threshold, _, bound) in strictest.items():
        yield f.LIMITED_LIMIT, of, bound
        yield f.LIMITED_THRESHOLD, of, threshold
    shown: set[tuple[str, ...]] = set()
    placed = [(bounded(each.service, each.environment), each) for each in statuses]
    for where, each in sorted(placed, key=lambda each: WORST_FIRST.index(each[1].appraisal.status)):
        who = (*where, each.limit.rubric, each.limit.name)
        if who in shown:
            continue
        shown.add(who)
        for status in (each for each in Status if each is not Status.NO_DATA):
            yield f.LIMITED_STATUS, (*who, status.value), float(status is each.appraisal.status)
        if (found := each.estimate) is not None:
            yield from known(
                who, (f.LIMITED_VALUE, found.value), (f.LIMITED_EFFECTIVE, found.effective_n),
                (f.LIMITED_LOWER, found.lower), (f.LIMITED_UPPER, found.upper),
            )  # fmt: skip


_RATES = {
    "raw_agreement": f.AGREEMENT_RAW,
    "true_positive_rate": f.AGREEMENT_TRUE_POSITIVE,
    "true_negative_rate": f.AGREEMENT_TRUE_NEGATIVE,
}


def agreement_gauges(agreement: AgreementSnapshot) -> Iterator[Series]:
    """The figures that labels give; what is not defined has no series. Rubrics and metrics are the configuration's."""
    for found in agreement.measured:
        yield from _figures(found)
    for family, counts in (
        (f.LABELS_PASSED_OVER, agreement.passed_over), (f.LABELS_CORRECTIONS, agreement.corrections),
        (f.LABELS_CORRECTED_PASSES, agreement.corrected_passes),
    ):  # fmt: skip
        for label, count in counts.items():
            yield family, (label,), count
    yield from known((), (f.LABELS_READ, agreement.read_s))


def corrected_gauges(who: tuple[str, str, str], service: ServiceStatus) -> Iterator[Series]:
    """The corrected pass ratio of one window, where labels determine it."""
    for found, ratio, lower, upper in (
        (service.corrected, f.PASS_CORRECTED_RATIO, f.PASS_CORRECTED_LOWER_RATIO, f.PASS_CORRECTED_UPPER_RATIO),
        (service.rectified, f.PASS_RECTIFIED_RATIO, f.PASS_RECTIFIED_LOWER_RATIO, f.PASS_RECTIFIED_UPPER_RATIO),
    ):
        if found is not None:
            yield from known(who, (ratio, found.rate), (lower, found.lower), (upper, found.upper))


def _figures(found: Calibrated) -> Iterator[Series]:
    of = (found.rubric, found.metric)
    yield f.AGREEMENT_PAIRS, of, found.n
    for name, family in _RATES.items():
        rate = found.figures.get(name)
        if isinstance(rate, ErrorRate):
            yield family, of, rate.value
    kappa, ac1 = found.figures["kappa"], found.figures["ac1"]
    if isinstance(kappa, Kappa):
        yield f.AGREEMENT_KAPPA, of, kappa.value
        yield f.AGREEMENT_KAPPA_LOWER, of, kappa.lower
        yield f.AGREEMENT_KAPPA_UPPER, of, kappa.upper
    if isinstance(ac1, float):
        yield f.AGREEMENT_AC1, of, ac1


_WORSE = (Status.WARNING, Status.CRITICAL)


def window_gauges(who: tuple[str, str, str], service_status: ServiceStatus, *, full: bool = True) -> Iterator[Series]:
    """All gauges of the window with these label values; without ``full``, only the necessary ones."""
    return chain(
        _gauges(who, service_status, full=full), _statuses(who, service_status, full=full),
        watch_gauges(who, service_status, full=full), corrected_gauges(who, service_status),
        _cascade_gauges(who, service_status),
    )  # fmt: skip


def _statuses(who: tuple[str, str, str], service_status: ServiceStatus, *, full: bool) -> Iterator[Series]:
    """1 for the status in force. Others are 0 if ``full``; beside a bad one the main ones, which older rules need."""
    now = service_status.appraisal.status
    for status in Status if full else (Status.HEALTHY, *_WORSE) if now in _WORSE else (now,):
        yield f.STATUS, (*who, status.value), float(status is now)


def _cascade_gauges(who: tuple[str, str, str], service_status: ServiceStatus) -> Iterator[Series]:
    if (cascade := service_status.cascade) is None:
        return
    for cause, count in cascade.verdicts.items():
        yield f.CASCADE_VERDICTS, (*who, cause), count
    for cause, count in cascade.changed.items():
        yield f.CASCADE_CHANGED, (*who, cause), count
    yield f.CASCADE_DELIVERED_RATIO, who, cascade.as_delivered


def _gauges(who: tuple[str, str, str], service_status: ServiceStatus, *, full: bool) -> Iterator[Series]:
    estimate = service_status.estimate
    yield f.EFFECTIVE_SAMPLES, who, estimate.effective_n if estimate else 0.0
    if estimate:
        if full or estimate.design_effect != 1:  # for the rules a process that exports none has 1
            yield f.DESIGN_EFFECT, who, estimate.design_effect
        yield f.PASS_RATIO, who, estimate.pass_ratio
        if full or service_status.appraisal.status in _WORSE:  # alerts state them
            yield f.PASS_LOWER_RATIO, who, estimate.lower
            yield f.PASS_UPPER_RATIO, who, estimate.upper
    decided = estimate.n if estimate else 0
    if decided + service_status.incomplete:
        yield f.VERDICTS_JUDGE_FAILED, who, service_status.judge_failed / (decided + service_status.incomplete)
    yield from known(who, (f.COMPOSITE_MEAN, service_status.composite_mean))
    for metric, mean in service_status.metric_means.items():
        yield f.METRIC_MEAN, (*who, metric), mean


def alert_gauges(conditions: Iterable[Condition], posted: Iterable[Posted]) -> Iterator[Series]:
    """How many alerts there are of each condition, zeros included, and where each condition begins."""
    counted = Counter((each.condition.id, each.alert.stage) for each in posted)
    for condition in conditions:
        for stage in Stage:
            labels = (condition.id, condition.severity.value, stage.value)
            yield f.ALERTS, labels, float(counted[condition.id, stage])
        yield from known((condition.id,), (f.ALERT_LIMIT, condition.limit))


def reported_gauges(
    posted: Iterable[Posted], placed: Iterable[tuple[tuple[str, str, str], ServiceStatus]]
) -> Iterator[Series]:
    """Whether each alert on a window was sent, with the label values of the window."""
    shown: dict[Labels, tuple[str, str, str]] = {}
    for who, service_status in placed:
        where = place(service_status)
        shown |= {where: who, where[:2]: (*who[:2], "")}  # a figure of the application has no rubric
    found: dict[tuple[str, ...], float] = {}
    for each in posted:
        labels = dict(each.alert.labels)
        known_as = shown.get(tuple((name, labels[name]) for name in PLACE if name in labels))
        if each.alert.stage is not Stage.PENDING and known_as is not None:
            of = (each.condition.id, *known_as, *(clean(labels.get(name, "")) for name in ("slice", "value", "metric")))
            found[of] = max(found.get(of, 0.0), float(not each.unsent))
    for of, sent in found.items():
        yield f.ALERT_REPORTED, of, sent


def watch_gauges(who: tuple[str, str, str], service: ServiceStatus, *, full: bool = True) -> Iterator[Series]:
    """The watch's state of one window; unless ``full`` without what says nothing beside the others.

    That is a worst case that is the pass ratio, the last verdict while verdicts come, a change detector without
    evidence, and slices that are not worse than the rest.
    """
    missing = service.missing
    if missing is not None and (full or (service.estimate is not None and missing.worst != missing.best)):
        yield f.PASS_WORST_RATIO, who, missing.worst
        yield f.PASS_BEST_RATIO, who, missing.best
    if service.last_ns is not None and (full or service.appraisal.status is Status.NO_DATA):
        yield f.LAST_VERDICT, who, service.last_ns / 1e9
    if service.reach_ns is not None:
        yield f.WINDOW_REACH, who, service.reach_ns / 1e9
    if service.since_ns is not None:
        yield f.STATUS_SINCE, who, service.since_ns / 1e9
    yield from _slice_gauges(who, [each for each in service.slices if full or each.worse])
    for change, score, since in (
        (service.change, f.CHANGE_SCORE, f.CHANGE_SINCE),
        (service.drift, f.DRIFT_SCORE, f.DRIFT_SINCE),
    ):
        if change is not None:
            if full or change.share:
                yield score, who, change.share
            if change.alarmed and change.since_ns is not None:
                yield since, who, change.since_ns / 1e9


def _slice_gauges(who: tuple[str, str, str], slices: Iterable[SliceStatus]) -> Iterator[Series]:
    seen = set()
    for each in slices:
        labels = (*who, each.by, clean(label_of(each.value)))  # as its alert names it
        if labels in seen:  # two values that only differ in what no label may hold
            continue
        seen.add(labels)
        if each.estimate is not None:
            yield f.SLICE_PASS_RATIO, labels, each.estimate.pass_ratio
        if each.others is not None:
            yield f.SLICE_OTHERS_PASS_RATIO, labels, each.others.pass_ratio
        if each.worse and each.since_ns is not None:
            yield f.SLICE_WORSE_SINCE, labels, each.since_ns / 1e9
