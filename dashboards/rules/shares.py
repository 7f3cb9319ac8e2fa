"""Shares: how large a share of verdicts a blocker, a violation or the judge's failures hit, with its lower bound."""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f

from .promql import PLACE, bound, fleet
from .recordings import effective, weight
from .rule import RecordingRule

_BY_METRIC = "ignoring (metric) group_left ()"
BLOCKED = f"{PLACE}_metric:sidejudge_blocked"
VIOLATING = f"{PLACE}:sidejudge_violating"
JUDGE_FAILED = "service_rubric:sidejudge_judge_failed"
VERDICTS = "service_rubric:sidejudge_verdicts"


def count(name: str, window: str) -> str:
    """How many verdicts, unweighted: what guards count."""
    return f"{name}:increase{window}"


def ratio(name: str, window: str) -> str:
    """The share."""
    return f"{name}:ratio_increase{window}"


def lower(name: str, window: str) -> str:
    """Its lower bound, one-sided 95 %."""
    return f"{name}:ratio_lower95_{window}"


def shares(window: str) -> list[RecordingRule]:
    """All shares over one window."""
    return [*_blocked(window), *_violating(window), *_judge_failed(window)]


def _blocked(window: str) -> list[RecordingRule]:
    hit = fleet(f.VERDICT_BLOCKED_WEIGHT, window=window)
    share = ratio(BLOCKED, window)
    return [
        RecordingRule(record=count(BLOCKED, window), expr=fleet(f.VERDICTS_BLOCKED, window=window)),
        RecordingRule(record=share, expr=f"{hit}\n/ {_BY_METRIC} ({weight(window)} > 0)"),
        RecordingRule(
            record=lower(BLOCKED, window), expr=bound(share, effective(window), upper=False, match=_BY_METRIC)
        ),
    ]


def _violating(window: str) -> list[RecordingRule]:
    share = ratio(VIOLATING, window)
    return [
        RecordingRule(record=count(VIOLATING, window), expr=fleet(f.VERDICTS_VIOLATING, window=window)),
        RecordingRule(
            record=share, expr=f"{fleet(f.VERDICT_VIOLATING_WEIGHT, window=window)}\n/ ({weight(window)} > 0)"
        ),
        RecordingRule(record=lower(VIOLATING, window), expr=bound(share, effective(window), upper=False)),
    ]


def _judge_failed(window: str) -> list[RecordingRule]:
    """Shares of verdicts, not of traffic, as in process; all environments of a service together."""
    decided = fleet(f.VERDICTS, "environment", "selection", window=window)
    incomplete = fleet(f.VERDICTS_INCOMPLETE, "reason", window=window)
    failed = fleet(f.VERDICTS_INCOMPLETE, "reason", where='reason="error"', window=window)
    share, verdicts = ratio(JUDGE_FAILED, window), count(VERDICTS, window)
    return [
        RecordingRule(record=verdicts, expr=f"{decided}\n+\n{incomplete}"),
        RecordingRule(record=count(JUDGE_FAILED, window), expr=failed),
        RecordingRule(record=share, expr=f"{count(JUDGE_FAILED, window)} / ({verdicts} > 0)"),
        RecordingRule(record=lower(JUDGE_FAILED, window), expr=bound(share, verdicts, upper=False)),
    ]
