"""Shares: how large a share of verdicts a blocker, a violation or the judge's failures hit, with its lower bound."""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.integrations.prometheus.families import Family

from .promql import PLACE, bound, fleet
from .recordings import effective, weight
from .rule import RecordingRule

_BY_METRIC = "ignoring (metric) group_left ()"
BLOCKED = f"{PLACE}_metric:sidejudge_blocked"
VIOLATING = f"{PLACE}:sidejudge_violating"
JUDGE_FAILED = "service_rubric:sidejudge_judge_failed"
VERDICTS = "service_rubric:sidejudge_verdicts"


def count(name: str, window: str) -> str:
    """The unweighted number of verdicts, for guards."""
    return f"{name}:increase{window}"


def ratio(name: str, window: str) -> str:
    """The share."""
    return f"{name}:ratio_increase{window}"


def lower(name: str, window: str) -> str:
    """Its lower bound, one-sided 95 %."""
    return f"{name}:ratio_lower95_{window}"


def shares(window: str) -> list[RecordingRule]:
    """All shares over one window."""
    return [
        *_share(BLOCKED, window, f.VERDICTS_BLOCKED, f.VERDICT_BLOCKED_WEIGHT, match=_BY_METRIC),
        *_share(VIOLATING, window, f.VERDICTS_VIOLATING, f.VERDICT_VIOLATING_WEIGHT),
        *_judge_failed(window),
    ]


def _share(name: str, window: str, verdicts: Family, weights: Family, match: str = "") -> list[RecordingRule]:
    """A share of the traffic; ``match`` joins it to weight and sample size where it has more labels."""
    share, over = ratio(name, window), f"/ {match}".rstrip()
    return [
        RecordingRule(count(name, window), fleet(verdicts, window=window)),
        RecordingRule(share, f"{fleet(weights, window=window)}\n{over} ({weight(window)} > 0)"),
        RecordingRule(lower(name, window), bound(share, effective(window), upper=False, match=match)),
    ]


def _judge_failed(window: str) -> list[RecordingRule]:
    """Shares of verdicts, not of traffic, as in process; all environments of a service together."""
    decided = fleet(f.VERDICTS, "environment", "selection", window=window)
    incomplete = fleet(f.VERDICTS_INCOMPLETE, "reason", window=window)
    failed = fleet(f.VERDICTS_INCOMPLETE, "reason", where='reason="error"', window=window)
    share, verdicts = ratio(JUDGE_FAILED, window), count(VERDICTS, window)
    return [
        # A service of which no verdict ever passed or failed has no count of those.
        RecordingRule(verdicts, f"{decided}\n+\n{incomplete}\nor\n{incomplete}"),
        RecordingRule(count(JUDGE_FAILED, window), failed),
        RecordingRule(share, f"{count(JUDGE_FAILED, window)} / ({verdicts} > 0)"),
        RecordingRule(lower(JUDGE_FAILED, window), bound(share, verdicts, upper=False)),
    ]
