"""Limited: continuous metrics with limits over the whole fleet, from weights that are summed first.

The kept share is what ``scoring.status.metric_status`` compares: of a 95th percentile the share of the traffic within
the limit, which must not be below 0.95. Wilson's bounds hold for it as they do for a pass ratio; of a mean they are
wider than need be. Clusters are not in it: a process knows them, and its status is what alerts in most modes go by.
"""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.metric_status import Level
from sidejudge.scoring.status.status import Status

from .promql import PLACE, SITE, bound, configured, fleet, held_back, sent
from .recordings import DAY, window_of
from .rule import RecordingRule

LIMITED = f"{PLACE}_metric:sidejudge_limited_metric"
_BY_LEVEL = "ignoring (level) group_left ()"
_WHERE = "{{ $labels.service }} ({{ $labels.environment }})"


def effective(window: str) -> str:
    """Effective sample size."""
    return f"{LIMITED}:effective_samples_increase{window}"


def kept(window: str) -> str:
    """The kept share of each level; absent where there was no value."""
    return f"{LIMITED}_level:kept_ratio_increase{window}"


def upper(window: str) -> str:
    """Its upper bound, one-sided 95 %."""
    return f"{LIMITED}_level:kept_ratio_upper95_{window}"


def limited(window: str) -> list[RecordingRule]:
    """Sample size, kept share and its bound over one window, and the worst value of any process."""
    weight, squared = fleet(f.LIMITED_WEIGHT, window=window), fleet(f.LIMITED_WEIGHT_SQUARED, window=window)
    held = fleet(f.LIMITED_KEPT_WEIGHT, window=window)
    return [
        RecordingRule(effective(window), f"{weight} * {weight}\n/ ({squared} > 0)"),
        RecordingRule(kept(window), f"{held}\n/ {_BY_LEVEL} ({weight} > 0)"),
        RecordingRule(upper(window), bound(kept(window), effective(window), upper=True, match=_BY_LEVEL)),
    ]


def limited_beyond(declared: Declaration, level: Level) -> tuple[str, str]:
    """Metrics at this level or worse, and a sentence about one."""
    statuses = {Status.CRITICAL} if level == "critical" else {Status.WARNING, Status.CRITICAL}
    if declared.policy.mode == "adaptive" or _differ(declared):
        # PromQL cannot follow values one by one, as this mode does, nor knows which limit concerns which service: so
        # the worst status of any process holds.
        named = "|".join(sorted(status.value for status in statuses))
        worst = fleet(f.LIMITED_STATUS, "status", where=f'status=~"{named}"', operation="max")
        alert = f"metric_{level}"
        value = f"last_over_time({f.LIMITED_VALUE.name}[{DAY}])"
        shown = f"max without (instance, pod, container, endpoint, node) ({value})"
        return (
            f"{shown}\nand\n(\n  {worst} > 0\n  or {sent(alert)} == 1\n)\nunless\n{held_back(alert)}",
            f"{{{{ $labels.metric }}}} of {_WHERE} is beyond its {level} limit: {{{{ $value }}}}.",
        )
    window = window_of(declared)
    of_level = f'{{level="{level}"}}'
    bounded = declared.policy.mode == "bound"
    compared = f"{upper(window)}{of_level}" if bounded else f"round({kept(window)}{of_level}, 1e-9)"
    threshold = configured(f.LIMITED_THRESHOLD, "rubric", "metric", "level", where=f'level="{level}"')
    on = ", ".join((*SITE, "rubric", "metric", "level"))
    expr = (
        f"{compared}\n< on ({on}) group_left ()\n{threshold}\n"
        f"and ignoring (level)\n{effective(window)} >= {declared.policy.min_samples:g}"
    )
    stated = f"At most {{{{ $value | humanizePercentage }}}} keep to the limit of {{{{ $labels.metric }}}}, {_WHERE}."
    return expr, stated


def _differ(declared: Declaration) -> bool:
    """Whether limits of one metric compare its kept share with different thresholds, or on different sides."""
    found: dict[tuple[str, str, Level], set[tuple[float, bool]]] = {}
    for limit in declared.metrics:
        for level, value in limit.levels:
            found.setdefault((limit.rubric, limit.name, level), set()).add((limit.threshold(value), limit.below))
    return any(len(each) > 1 for each in found.values())
