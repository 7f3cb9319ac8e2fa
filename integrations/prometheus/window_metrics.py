"""The gauges of one window: its estimate, status, watch, corrected share and cascade; and those of alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from sidejudge.scoring.alerts.board import Posted
from sidejudge.scoring.alerts.condition import Condition
from sidejudge.scoring.alerts.lifecycle import Stage
from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.status.slice_status import SliceStatus
from sidejudge.scoring.status.status import Status

from . import families as f
from .agreement_metrics import corrected_gauges
from .collect import Series
from .labels import clean

_WORSE = (Status.WARNING, Status.CRITICAL)


def window_gauges(who: tuple[str, str, str], service_status: ServiceStatus, *, full: bool = True) -> Iterator[Series]:
    """All gauges of the window with these label values; those that need not be there are left out unless ``full``."""
    return chain(
        _gauges(who, service_status, full=full), _statuses(who, service_status, full=full),
        watch_gauges(who, service_status, full=full), corrected_gauges(who, service_status),
        _cascade_gauges(who, service_status),
    )  # fmt: skip


def _statuses(who: tuple[str, str, str], service_status: ServiceStatus, *, full: bool) -> Iterator[Series]:
    """1 for the status in force, and 0 for others if ``full``; rules of older versions need those of a worse one."""
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
    if service_status.composite_mean is not None:
        yield f.COMPOSITE_MEAN, who, service_status.composite_mean
    for metric, mean in service_status.metric_means.items():
        yield f.METRIC_MEAN, (*who, metric), mean


def alert_gauges(conditions: Iterable[Condition], posted: Iterable[Posted]) -> Iterator[Series]:
    """How many alerts there are of each condition, zeros included, and where each condition begins."""
    counted = Counter((each.condition.id, each.alert.stage) for each in posted)
    for condition in conditions:
        for stage in Stage:
            labels = (condition.id, condition.severity.value, stage.value)
            yield f.ALERTS, labels, float(counted[condition.id, stage])
        if condition.limit is not None:
            yield f.ALERT_LIMIT, (condition.id,), condition.limit


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
        labels = (*who, each.by, clean(each.value))
        if labels in seen:  # two values that only differ in what no label may hold
            continue
        seen.add(labels)
        if each.estimate is not None:
            yield f.SLICE_PASS_RATIO, labels, each.estimate.pass_ratio
        if each.others is not None:
            yield f.SLICE_OTHERS_PASS_RATIO, labels, each.others.pass_ratio
        if each.worse and each.since_ns is not None:
            yield f.SLICE_WORSE_SINCE, labels, each.since_ns / 1e9
