"""Limits: continuous metrics under limits (`alerts.metrics`)."""

from __future__ import annotations

from .family import PROCESS, WHO, Label, counter, gauge

_LIMITED: tuple[Label, ...] = (*WHO, "metric")

LIMITED_VALUE = gauge(
    "sidejudge_limited_metric", labels=_LIMITED,
    help=f"Quantile or mean of a metric with a limit, in its own unit, at the last look. {PROCESS}",
    note="`metric` is the name in `alerts.metrics`, such as `latency_p95`; `rubric` is empty for figures of the "
    "application. So in the families below; all are absent without `alerts.metrics`.",
)  # fmt: skip
LIMITED_LOWER = gauge(
    "sidejudge_limited_metric_lower", labels=_LIMITED,
    help="Its lower bound: the pair holds with 95 % at any look, whatever the distribution.",
    note="A bound is absent where the values show none, as of a 95th percentile of few.",
)  # fmt: skip
LIMITED_UPPER = gauge("sidejudge_limited_metric_upper", "Its upper bound.", labels=_LIMITED)
LIMITED_EFFECTIVE = gauge(
    "sidejudge_limited_metric_effective_samples", labels=_LIMITED,
    help="What the values of the window are worth for their weights and for what belongs together.",
)  # fmt: skip
LIMITED_STATUS = gauge(
    "sidejudge_limited_metric_status", labels=(*_LIMITED, "status"),
    help="1 for the status in force under the limits of a metric, 0 for the others. This process's view.",
)  # fmt: skip
LIMITED_LIMIT = gauge(
    "sidejudge_limited_metric_limit", labels=("rubric", "metric", "level"),
    help="Value at which the level begins, in the metric's unit, from the configuration.",
)  # fmt: skip
LIMITED_THRESHOLD = gauge(
    "sidejudge_limited_metric_kept_threshold_ratio", labels=("rubric", "metric", "level"),
    help="Kept share below which the level is reached: of a 95th percentile 0.95.",
)  # fmt: skip
LIMITED_WEIGHT = counter(
    "sidejudge_limited_metric_weight_total", labels=_LIMITED,
    help="Sum of the weights (inverse inclusion probabilities) of the values of a metric with a limit.",
    note="Kept weight over weight is the kept share, weight² over squared weight the effective sample size, each over "
    "summed increases. First results only.",
)  # fmt: skip
LIMITED_WEIGHT_SQUARED = counter(
    "sidejudge_limited_metric_weight_squared_total", "Sum of their squared weights.", labels=_LIMITED
)
LIMITED_KEPT_WEIGHT = counter(
    "sidejudge_limited_metric_kept_weight_total", labels=(*_LIMITED, "level"),
    help="Sum of the weights times how far values keep to the limit: 1 or 0 for a quantile, their place on the scale "
    "for a mean.",
)  # fmt: skip
