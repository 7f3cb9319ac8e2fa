"""Label values that are known before anything happens: closed lists, and what the configuration names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sidejudge.scoring.alerts.condition import Condition
from sidejudge.scoring.status.metric_status import MetricLimit
from sidejudge.scoring.status.status import Thresholds
from sidejudge.scoring.verdict.rubric import Rubric

from .judge_metrics import KnownJudge

SELECTIONS = ("random", "forced")
INCOMPLETE = ("unavailable", "error", "not_applicable")
IGNORED = ("duplicate", "late", "own", "too_large", "shed")
IGNORED_LOGS = ("untraced", "plain", "late", "own", "too_large")
SIGNALS = ("traces", "logs", "metrics", "other")
CLASSES = ("2xx", "3xx", "4xx", "5xx")
REFUSED = (400, 401, 404, 405, 413, 415, 429, 503)
"""Every status that the receiver answers an export with, besides 200."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLabels:
    """Label values that the configuration defines before any event.

    ``rubrics`` are those that a route can reach, ``rubrics_of`` names those that can judge a service (None: all);
    ``ended_reasons`` why traces end, ``rejected_reasons`` why spans are refused; ``destinations`` why each may refuse.
    ``forward_failures`` and ``forward_unjudged`` are why what goes on may fail; none where nothing goes on.
    ``pull_failures`` are why reading traces may end early; none where none are read. ``revision_failures`` are why a
    verdict may stand though its reference changed; none where none is looked for. ``forced``: a rule of sampling may
    keep what the base rate does not.
    """

    rubrics: Iterable[Rubric]
    ended_reasons: Iterable[str]
    rejected_reasons: Iterable[str] = ()
    destinations: Mapping[str, Iterable[str]] = field(default_factory=dict)
    forward_failures: Iterable[str] = ()
    forward_unjudged: Iterable[str] = ()
    forward_ends: Sequence[str] = ()
    forward_unkept: Sequence[str] = ()
    pull_failures: Iterable[str] = ()
    revision_failures: Iterable[str] = ()
    violations: Mapping[str, Iterable[str]] = field(default_factory=dict)
    rubrics_of: Callable[[str], Collection[str]] | None = None
    forced: bool = True
    thresholds: Thresholds = field(default_factory=Thresholds)
    own_thresholds: Mapping[str, Thresholds] = field(default_factory=dict)
    conditions: Sequence[Condition] = ()
    limits: Sequence[MetricLimit] = ()
    judge: KnownJudge | None = None
    version: str = "unknown"
    revision: str = "unknown"
    python: str = "unknown"
    fingerprint: str = "unknown"
