"""Metrics: scores of rubrics, what runs of the application do and take, and metrics with a limit."""

from __future__ import annotations

from .family import PROCESS, WHO, Label, counter, gauge, histogram

TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Bounds of the score histogram."""
LATENCY_S = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
"""Bounds of the application's latency in seconds: from a lookup to a run of an agent."""

METRIC_SCORE = histogram(
    "sidejudge_metric_score", labels=("service", "rubric", "metric"), buckets=TENTHS,
    help="Scores as shares of the metric's scale, in tenths. Metrics without an upper end are not in it.",
    note="Every verdict's scored metrics, first verdicts only, unweighted. Appears with the first score.",
)  # fmt: skip
METRIC_MEAN = gauge(
    "sidejudge_metric_mean", f"Weighted mean of a metric in its own unit. {PROCESS}", labels=(*WHO, "metric")
)
COMPOSITE_MEAN = gauge(
    "sidejudge_composite_mean", f"Weighted mean of the composites, normalised to 0-1. {PROCESS}", labels=WHO
)
BLOCKERS = counter(
    "sidejudge_blockers_total", labels=("rubric", "metric"),
    help="Verdicts that a metric's blocker disqualified or made invalid.",
    note="Carries the trace id as exemplar. First verdicts only.",
)  # fmt: skip
WORKFLOW_VIOLATIONS = counter(
    "sidejudge_workflow_violations_total", labels=("scenario", "kind"),
    help="Ways in which traces departed from their scenario.",
    note="Carries the trace id as exemplar. First verdicts only.",
)  # fmt: skip
RUNS = counter(
    "sidejudge_runs_total", labels=("service",),
    help="Runs that run_health looked at, drawn at random: the denominator of the three below.",
    note="First verdicts of selection=random only, so a share of it is a share of all traffic.",
)  # fmt: skip
RUN_SIGNS = counter(
    "sidejudge_run_signs_total", labels=("service", "metric"),
    help="Runs in which a metric of run_health found trouble.",
    note="`completed`: the run ended in an error; `no_repetition`: it loops; `tool_success`: tools failed; "
    "`within_usual`: it took far more than is usual for the service; the others are in the metric reference.",
)  # fmt: skip
TOOL_CALLS = counter(
    "sidejudge_tool_calls_total", labels=("service", "tool"),
    help="Tool calls of these runs.",
    note="At most 20 tools of one run are counted apart. Beyond `metrics.label_cap` names, and beyond four times as "
    "many pairs of service and tool, it is `__other__`.",
)  # fmt: skip
TOOL_ERRORS = counter(
    "sidejudge_tool_errors_total", labels=("service", "tool"),
    help="Tool calls of these runs that failed, by their status or by what they returned.",
)  # fmt: skip
APPLICATION_TRACES = counter(
    "sidejudge_application_traces_total", labels=("service", "environment", "version"),
    help="Traces of the application, estimated for all traffic: the sum of the weights of those that were evaluated.",
    note="The denominator of the totals below. First results only. `version` holds those seen last: a new one gets "
    "the place of the one not seen for longest, and of none that was seen within 6 hours.",
)  # fmt: skip
APPLICATION_DURATION = histogram(
    "sidejudge_application_duration_seconds", labels=("service", "environment"), buckets=LATENCY_S,
    help="Latency of the application: how long the root span of a trace took. Traces drawn at random only.",
    note="Whole traces with a root, first results only, unweighted: a share of it is a share of all traffic while the "
    "sampling rate is constant. Traces that a rule kept for their content are left out, for they are not like the "
    "others.",
)  # fmt: skip
APPLICATION_TOKENS = counter(
    "sidejudge_application_tokens_total", labels=("service", "environment", "model", "direction"),
    help="Tokens of the application's model calls, estimated for all traffic: weight times tokens, summed.",
    note="Of whole traces that report usage, each call once; absent where none does. First results only.",
)  # fmt: skip
APPLICATION_COST = counter(
    "sidejudge_application_cost_usd_total", labels=("service", "environment", "model"),
    help="US dollars of the application's model calls as its telemetry states them, estimated for all traffic.",
    note="Absent where no span states a cost: sidejudge has no price list of its own for it. First results only.",
)  # fmt: skip


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
    note="Of several limits of one metric, as for different services, the strictest. So in the family below.",
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
    note="Where several limits of the metric concern a service, how far they keep to the one that they keep to least.",
)  # fmt: skip
