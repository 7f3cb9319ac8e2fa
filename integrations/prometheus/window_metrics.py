"""The gauges of one window: its estimate, its status, its watch, its corrected share and its cascade."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.status.status import Status

from . import families as f
from .agreement_metrics import corrected_gauges
from .alert_metrics import watch_gauges
from .collect import Series

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
