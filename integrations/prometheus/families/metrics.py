"""Metrics: scores of rubrics, and what runs of the application do and take."""

from __future__ import annotations

from .family import PROCESS, WHO, counter, gauge, histogram

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
