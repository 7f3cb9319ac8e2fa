"""Alert metrics: the state of statuses and alerts at a scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from scoring.alerts.board import Posted
from scoring.alerts.condition import Condition
from scoring.alerts.lifecycle import Stage
from scoring.status.service_status import ServiceStatus

from . import families as f
from .collect import Series


def alert_gauges(conditions: Iterable[Condition], posted: Iterable[Posted]) -> Iterator[Series]:
    """How many alerts there are of each condition, zeros included, and where each condition begins."""
    counted = Counter((each.condition.id, each.alert.stage) for each in posted)
    for condition in conditions:
        for stage in Stage:
            labels = (condition.id, condition.severity.value, stage.value)
            yield f.ALERTS, labels, float(counted[condition.id, stage])
        if condition.limit is not None:
            yield f.ALERT_LIMIT, (condition.id,), condition.limit


def watch_gauges(who: tuple[str, str, str], service: ServiceStatus) -> Iterator[Series]:
    """The watch's state of one window."""
    if service.missing is not None:
        yield f.PASS_WORST_RATIO, who, service.missing.worst
        yield f.PASS_BEST_RATIO, who, service.missing.best
    if service.since_ns is not None:
        yield f.STATUS_SINCE, who, service.since_ns / 1e9
    for change, score, since in (
        (service.change, f.CHANGE_SCORE, f.CHANGE_SINCE),
        (service.drift, f.DRIFT_SCORE, f.DRIFT_SINCE),
    ):
        if change is not None:
            yield score, who, change.share
            if change.alarmed and change.since_ns is not None:
                yield since, who, change.since_ns / 1e9
