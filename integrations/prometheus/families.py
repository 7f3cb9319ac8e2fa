"""Families: every Prometheus metric that sidejudge exports, declared once.

The exporter builds its collectors from these declarations, the reference page is generated from them, and rules and
dashboards may only name what stands here. Rules of naming: https://prometheus.io/docs/practices/naming/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["counter", "gauge", "histogram", "info"]
Label: TypeAlias = Literal[
    "alert", "severity", "stage", "turn", "connection",
    "code", "destination", "direction", "environment", "fingerprint", "flag", "group", "kind", "level", "metric",
    "model", "outcome", "period", "priority", "python", "queue", "reason", "revision", "rubric", "scenario",
    "selection", "service", "signal", "state", "status", "tool", "version",
]  # fmt: skip

LABELS: Mapping[Label, str] = MappingProxyType(
    {
        "service": "`service.name` of the trace; `unknown_service` when it names none; capped",
        "environment": "deployment environment of the trace; `unknown` when it names none; capped",
        "rubric": "a rubric of the configuration",
        "metric": "a metric of the rubric, or a limited one such as `latency_p95`",
        "selection": "`random`: drawn by the base rate; `forced`: kept only because a rule on its content demanded it",
        "reason": "why; a closed list",
        "status": "`healthy`, `warning`, `critical` or `insufficient_data`",
        "level": "`warning` or `critical`",
        "alert": "a condition that is watched; a closed list, see `/v1/alerts`",
        "severity": "of an alert: `critical`, `warning` or `info`",
        "stage": "of an alert: `pending` (not for long enough), `firing`, `unknown` (it fired; now data is missing)",
        "turn": "a change of an alert: `firing`, `unknown`, `resolved` or `expired` (unknown for a day)",
        "scenario": "a scenario of the configuration; capped",
        "kind": "what was violated, capped; or what is suspected, a closed list",
        "outcome": "what came of it; a closed list",
        "code": "HTTP status of the answer, or its class (`2xx`)",
        "signal": "`traces`, `logs`, `metrics`, or `other` for paths that are passed through",
        "queue": "a queue of the monitor; a closed list",
        "model": "a judge of the configuration; of an application the model that its spans name; capped",
        "direction": "`input`: prompts; `output`: answers",
        "flag": "`contradiction`: it contradicts what is decidable; `disagreement`: the members of a panel differ",
        "tool": "a tool that runs called; capped",
        "state": "of a circuit breaker: `closed` (calls pass), `open` (none does), `half_open` (one does, as a probe)",
        "period": "`hour` or `day`, UTC",
        "priority": "`high`, `normal` or `low`, as the route sets it",
        "connection": "a destination, a source or a place of references of the configuration",
        "destination": "where verdicts and notices go; a closed list",
        "version": "sidejudge's version; of an application its `service.version`, `unknown` when it names none; capped",
        "revision": "commit that this build was made from; `unknown` when it was not recorded",
        "python": "version of the Python interpreter",
        "group": "first digits of the SHA-256 of a group of failures; the service page shows its words",
        "fingerprint": "first digits of the SHA-256 of the configuration in force",
    }
)
"""What each label means. None ever holds an id, a user, a prompt or other free text."""

TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Bounds of the score histogram."""
LAG_S = (0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Bounds of the evaluation lag in seconds: from the default grace of assembly to its default deadline."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """One metric family. ``name`` is as it is scraped (with ``_total``); ``note`` is for the reference page only."""

    name: str
    kind: Kind
    labels: tuple[Label, ...] = ()
    help: str
    buckets: tuple[float, ...] = ()
    note: str = ""


LATENCY_S = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
"""Bounds of the application's latency in seconds: from a lookup to a run of an agent."""
JUDGING_S = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)
"""Bounds of the judge's durations in seconds: up to twice the default time-out."""

_WHO: tuple[Label, ...] = ("service", "environment", "rubric")
_PROCESS = "This process's window; do not average over processes, sum the verdict counters instead."

TRACES = Family(
    name="sidejudge_traces_total", kind="counter", labels=("service", "reason"),
    help="Traces that ended, by how: each is counted once, with exactly one reason.",
    note="The outcomes: their sum plus `sidejudge_traces_open` is `sidejudge_traces_seen_total`.",
)  # fmt: skip
TRACES_SEEN = Family(
    name="sidejudge_traces_seen_total", kind="counter",
    help="Traces that arrived, sampled or not.",
)  # fmt: skip
TRACES_KEPT = Family(
    name="sidejudge_traces_kept_total", kind="counter", labels=("service", "selection"),
    help="Traces that sampling chose for evaluation.",
)  # fmt: skip
TRACES_OPEN = Family(
    name="sidejudge_traces_open", kind="gauge",
    help="Traces that arrived and have not ended.",
)  # fmt: skip
SAMPLING_RATE = Family(
    name="sidejudge_sampling_rate_ratio", kind="gauge",
    help="Base sampling rate of this moment: configured, or following the traffic; rules may grant more.",
)  # fmt: skip
LOAD_SHARE = Family(
    name="sidejudge_load_share_ratio", kind="gauge",
    help="Share of the traces that sampling keeps that are judged: 1, and less while more close than can be judged.",
    note="The others end as `shed`; verdicts carry the true probability.",
)  # fmt: skip
JUDGING_BEHIND = Family(
    name="sidejudge_judging_behind_seconds", kind="gauge",
    help="How long the oldest closed trace waits to be judged; 0 while none does.",
    note="Those that wait for a judge's answers are the queue `judge`.",
)  # fmt: skip
VERDICTS = Family(
    name="sidejudge_verdicts_total", kind="counter", labels=(*_WHO, "selection"),
    help="Verdicts that passed or failed. Rates are made of selection=random, or of the weights.",
    note="Counts the first verdict on a trace; a revision by late spans moves the window's gauges, not this counter.",
)  # fmt: skip
VERDICTS_FAILED = Family(
    name="sidejudge_verdicts_failed_total", kind="counter", labels=(*_WHO, "selection"),
    help="Verdicts that failed.",
    note="Carries the trace id as exemplar. First verdicts only.",
)  # fmt: skip
VERDICTS_INCOMPLETE = Family(
    name="sidejudge_verdicts_incomplete_total", kind="counter", labels=("service", "rubric", "reason"),
    help="Verdicts that neither passed nor failed, because too little could be scored.",
    note="`unavailable`: what metrics need is missing; `error`: a metric was tried and failed; `not_applicable`: there "
    "was nothing to measure. First verdicts only.",
)  # fmt: skip
VERDICTS_JUDGE_FAILED = Family(
    name="sidejudge_verdicts_judge_failed_ratio", kind="gauge", labels=_WHO,
    help=f"Share of the window's verdicts that are incomplete because the judge failed, unweighted. {_PROCESS}",
    note="They are in no pass ratio. Absent while the window holds no verdict.",
)  # fmt: skip
VERDICTS_REVISED = Family(
    name="sidejudge_verdicts_revised_total", kind="counter", labels=("service", "rubric"),
    help="Verdicts that replaced an earlier one on the same trace, after late spans.",
)  # fmt: skip
VERDICT_WEIGHT = Family(
    name="sidejudge_verdict_weight_total", kind="counter", labels=_WHO,
    help="Sum of the weights (inverse inclusion probabilities) of verdicts that passed or failed.",
    note="The pass ratio of all traffic is 1 - failed weight / weight, the effective sample size weight² / squared "
    "weight, each over summed increases. First verdicts only, both selections.",
)  # fmt: skip
VERDICT_FAILED_WEIGHT = Family(
    name="sidejudge_verdict_failed_weight_total", kind="counter", labels=_WHO,
    help="Sum of the weights of verdicts that failed.",
)  # fmt: skip
VERDICT_WEIGHT_SQUARED = Family(
    name="sidejudge_verdict_weight_squared_total", kind="counter", labels=_WHO,
    help="Sum of the squared weights of verdicts that passed or failed.",
)  # fmt: skip
_VERSION_WHO: tuple[Label, ...] = (*_WHO, "version")
VERSION_WEIGHT = Family(
    name="sidejudge_version_verdict_weight_total", kind="counter", labels=_VERSION_WHO,
    help="Sum of the weights of verdicts that passed or failed, by version of the application.",
    note="The 5 versions of a service and environment that were judged last, the rest as `__other__`: a new one gets "
    "the place of the one not judged for longest, and of none that was judged within the hour. Series of a version "
    "begin with its first verdict, so Prometheus does not see what was counted before their first scrape. Recording "
    "rules compare each version with the rest. First verdicts only.",
)  # fmt: skip
VERSION_FAILED_WEIGHT = Family(
    name="sidejudge_version_verdict_failed_weight_total", kind="counter", labels=_VERSION_WHO,
    help="Sum of the weights of verdicts that failed, by version of the application.",
)  # fmt: skip
VERSION_WEIGHT_SQUARED = Family(
    name="sidejudge_version_verdict_weight_squared_total", kind="counter", labels=_VERSION_WHO,
    help="Sum of the squared weights of verdicts that passed or failed, by version of the application.",
)  # fmt: skip
VERDICTS_BLOCKED = Family(
    name="sidejudge_verdicts_blocked_total", kind="counter", labels=(*_WHO, "metric"),
    help="Verdicts that passed or failed and had a blocker of this metric.",
    note="A verdict with two blockers counts under both. First verdicts only.",
)  # fmt: skip
VERDICT_BLOCKED_WEIGHT = Family(
    name="sidejudge_verdict_blocked_weight_total", kind="counter", labels=(*_WHO, "metric"),
    help="Sum of the weights of verdicts that passed or failed and had a blocker of this metric.",
    note="Over `sidejudge_verdict_weight_total` it is the share of all traffic that the metric blocks.",
)  # fmt: skip
VERDICTS_VIOLATING = Family(
    name="sidejudge_verdicts_violating_total", kind="counter", labels=_WHO,
    help="Workflow verdicts that passed or failed and departed from their scenario in any way.",
)  # fmt: skip
VERDICT_VIOLATING_WEIGHT = Family(
    name="sidejudge_verdict_violating_weight_total", kind="counter", labels=_WHO,
    help="Sum of the weights of workflow verdicts that passed or failed and departed from their scenario in any way.",
)  # fmt: skip
METRIC_SCORE = Family(
    name="sidejudge_metric_score", kind="histogram", labels=("service", "rubric", "metric"), buckets=TENTHS,
    help="Scores as shares of the metric's scale, in tenths. Metrics without an upper end are not in it.",
    note="Every verdict's scored metrics, first verdicts only, unweighted. Appears with the first score.",
)  # fmt: skip
METRIC_MEAN = Family(
    name="sidejudge_metric_mean", kind="gauge", labels=(*_WHO, "metric"),
    help=f"Weighted mean of a metric in its own unit. {_PROCESS}",
)  # fmt: skip
COMPOSITE_MEAN = Family(
    name="sidejudge_composite_mean", kind="gauge", labels=_WHO,
    help=f"Weighted mean of the composites, normalised to 0-1. {_PROCESS}",
)  # fmt: skip
PASS_RATIO = Family(
    name="sidejudge_pass_ratio", kind="gauge", labels=_WHO,
    help=f"Estimated share of all traffic that passes. {_PROCESS}",
    note="Absent, not 0, while the window holds no verdict.",
)  # fmt: skip
PASS_LOWER_RATIO = Family(
    name="sidejudge_pass_lower_ratio", kind="gauge", labels=_WHO,
    help=f"Lower Wilson bound of the pass ratio, one-sided 95 %. {_PROCESS}",
)  # fmt: skip
PASS_UPPER_RATIO = Family(
    name="sidejudge_pass_upper_ratio", kind="gauge", labels=_WHO,
    help=f"Upper Wilson bound of the pass ratio, one-sided 95 %. {_PROCESS}",
)  # fmt: skip
EFFECTIVE_SAMPLES = Family(
    name="sidejudge_effective_samples", kind="gauge", labels=_WHO,
    help=f"Kish's effective sample size of the window, divided by the design effect. {_PROCESS}",
)  # fmt: skip
DESIGN_EFFECT = Family(
    name="sidejudge_design_effect", kind="gauge", labels=_WHO,
    help="By how much less verdicts say because those of a session (`alerts.cluster`) fail together; 1 or more.",
    note="Recording rules multiply each process's increase of the squared weights by it before they sum them: over all "
    "processes the effective sample size is weight² / that sum.",
)  # fmt: skip
STATUS = Family(
    name="sidejudge_status", kind="gauge", labels=(*_WHO, "status"),
    help="1 for the status in force, 0 for the others. This process's view, for display.",
)  # fmt: skip
STATUS_SINCE = Family(
    name="sidejudge_status_since_timestamp_seconds", kind="gauge", labels=_WHO,
    help="Since when the status is in force. This process's view, for display.",
)  # fmt: skip
PASS_WORST_RATIO = Family(
    name="sidejudge_pass_worst_ratio", kind="gauge", labels=_WHO,
    help=f"Pass ratio if every incomplete verdict had failed. {_PROCESS}",
)  # fmt: skip
PASS_BEST_RATIO = Family(
    name="sidejudge_pass_best_ratio", kind="gauge", labels=_WHO,
    help=f"Pass ratio if every incomplete verdict had passed. {_PROCESS}",
)  # fmt: skip
PASS_CORRECTED_RATIO = Family(
    name="sidejudge_pass_corrected_ratio", kind="gauge", labels=_WHO,
    help="Pass ratio that people would have found: the estimate, corrected for the judge's errors on labelled traces "
    f"(Rogan-Gladen). {_PROCESS}",
    note="Absent while labels do not show both kinds of error, or the judge does not distinguish good from bad.",
)  # fmt: skip
PASS_CORRECTED_LOWER_RATIO = Family(
    name="sidejudge_pass_corrected_lower_ratio", kind="gauge", labels=_WHO,
    help=f"Lower bound of the corrected pass ratio, two-sided 95 %. {_PROCESS}",
)  # fmt: skip
PASS_CORRECTED_UPPER_RATIO = Family(
    name="sidejudge_pass_corrected_upper_ratio", kind="gauge", labels=_WHO,
    help=f"Upper bound of the corrected pass ratio, two-sided 95 %. {_PROCESS}",
)  # fmt: skip
PASS_RECTIFIED_RATIO = Family(
    name="sidejudge_pass_prediction_powered_ratio", kind="gauge", labels=_WHO,
    help="Pass ratio that people would have found, by prediction-powered inference: the estimate, and how many more of "
    f"the labelled traces people passed than the judge. {_PROCESS}",
    note="Absent with fewer than 30 labels.",
)  # fmt: skip
PASS_RECTIFIED_LOWER_RATIO = Family(
    name="sidejudge_pass_prediction_powered_lower_ratio", kind="gauge", labels=_WHO,
    help=f"Lower bound of it, two-sided 95 %. {_PROCESS}",
)  # fmt: skip
PASS_RECTIFIED_UPPER_RATIO = Family(
    name="sidejudge_pass_prediction_powered_upper_ratio", kind="gauge", labels=_WHO,
    help=f"Upper bound of it, two-sided 95 %. {_PROCESS}",
)  # fmt: skip
CASCADE_VERDICTS = Family(
    name="sidejudge_cascade_verdicts", kind="gauge", labels=(*_WHO, "reason"),
    help=f"Verdicts by why a stronger judge was asked: `sure` (it was not), `doubt`, `drawn`. {_PROCESS}",
    note="Only of rubrics with a cascade of judges. There the pass ratio is that of the strongest judge, estimated "
    "from the drawn ones; recording rules count verdicts as they were delivered.",
)  # fmt: skip
CASCADE_CHANGED = Family(
    name="sidejudge_cascade_changed", kind="gauge", labels=(*_WHO, "reason"),
    help=f"Those of them that the stronger judge turned, from pass to fail or back. {_PROCESS}",
)  # fmt: skip
CASCADE_DELIVERED_RATIO = Family(
    name="sidejudge_cascade_delivered_ratio", kind="gauge", labels=_WHO,
    help=f"Pass ratio of the verdicts as they were delivered, uncorrected. {_PROCESS}",
)  # fmt: skip
AGREEMENT_PAIRS = Family(
    name="sidejudge_agreement_pairs", kind="gauge", labels=("rubric", "metric"),
    help="Labels of people that were compared with our value on the same, the latest 2000 at most.",
    note="Metric `pass` is the verdict itself. Every monitor of a project sees the labels of the whole project. The "
    "seven below are of these pairs; each is absent where it is not defined.",
)  # fmt: skip
AGREEMENT_RAW = Family(
    name="sidejudge_agreement_raw_ratio", kind="gauge", labels=("rubric", "metric"),
    help="Share of labels with which our value agrees.",
)  # fmt: skip
AGREEMENT_KAPPA = Family(
    name="sidejudge_agreement_kappa_ratio", kind="gauge", labels=("rubric", "metric"),
    help="Cohen's kappa of people and us, from -1 to 1: agreement beyond chance.",
)  # fmt: skip
AGREEMENT_KAPPA_LOWER = Family(
    name="sidejudge_agreement_kappa_lower_ratio", kind="gauge", labels=("rubric", "metric"),
    help="Lower bound of kappa, two-sided 95 %.",
)  # fmt: skip
AGREEMENT_KAPPA_UPPER = Family(
    name="sidejudge_agreement_kappa_upper_ratio", kind="gauge", labels=("rubric", "metric"),
    help="Upper bound of kappa, two-sided 95 %.",
)  # fmt: skip
AGREEMENT_AC1 = Family(
    name="sidejudge_agreement_gwet_ratio", kind="gauge", labels=("rubric", "metric"),
    help="Gwet's AC1, from -1 to 1: as kappa, and steady where nearly everything passes.",
)  # fmt: skip
AGREEMENT_TRUE_POSITIVE = Family(
    name="sidejudge_agreement_true_positive_ratio", kind="gauge", labels=("rubric", "metric"),
    help="Of what people pass, the share that we pass.",
)  # fmt: skip
AGREEMENT_TRUE_NEGATIVE = Family(
    name="sidejudge_agreement_true_negative_ratio", kind="gauge", labels=("rubric", "metric"),
    help="Of what people fail, the share that we fail.",
)  # fmt: skip
LABELS_PASSED_OVER = Family(
    name="sidejudge_labels_passed_over", kind="gauge", labels=("reason",),
    help="Labels of the time last read (a day) that do not count for agreement.",
    note="`unsigned`: no person is named (a prefill); `unmapped`: no rubric or metric matches its name; `asked_for`: "
    "we had asked for it because of a doubt; `unreadable`: neither pass nor failure; `unmet`: no verdict is on it; "
    "`other_version`: the verdict is of another version of the rubric.",
)  # fmt: skip
LABELS_READ = Family(
    name="sidejudge_labels_read_timestamp_seconds", kind="gauge",
    help="Until when labels of people have been read. Absent until they have.",
)  # fmt: skip
LABELS_CORRECTIONS = Family(
    name="sidejudge_labels_corrections", kind="gauge", labels=("rubric",),
    help="Answers with a verdict of ours that people corrected, the latest 2000 at most.",
)  # fmt: skip
LABELS_CORRECTED_PASSES = Family(
    name="sidejudge_labels_corrected_passes", kind="gauge", labels=("rubric",),
    help="Answers that people corrected though we had passed them.",
)  # fmt: skip
CHANGE_SCORE = Family(
    name="sidejudge_change_score_ratio", kind="gauge", labels=_WHO,
    help="Score of the change detector (CUSUM) as a share of its limit. This process's view, for display.",
    note="At 1 the early warning is raised; it lasts until the score is back at 0.",
)  # fmt: skip
CHANGE_SINCE = Family(
    name="sidejudge_change_timestamp_seconds", kind="gauge", labels=_WHO,
    help="When the pass ratio began to fall, as the change detector estimates it.",
    note="Absent while there is no early warning.",
)  # fmt: skip
DRIFT_SCORE = Family(
    name="sidejudge_scenario_drift_score_ratio", kind="gauge", labels=_WHO,
    help="Score of the detector of drift from the scenario (CUSUM) as a share of its limit. This process's view.",
    note="Of rubrics that check a scenario. At 1 the early warning is raised; it lasts until the score is back at 0.",
)  # fmt: skip
DRIFT_SINCE = Family(
    name="sidejudge_scenario_drift_timestamp_seconds", kind="gauge", labels=_WHO,
    help="When runs began to depart from their scenario more often, as the detector estimates it.",
    note="Absent while there is no early warning. `sidejudge_workflow_violations_total` counts the ways.",
)  # fmt: skip
ALERTS = Family(
    name="sidejudge_alerts", kind="gauge", labels=("alert", "severity", "stage"),
    help="Alerts of this process, by condition and stage.",
    note="`/v1/alerts` says what each is about.",
)  # fmt: skip
ALERT_EVENTS = Family(
    name="sidejudge_alert_events_total", kind="counter", labels=("alert", "turn"),
    help="Changes of alerts.",
)  # fmt: skip
ALERT_LIMIT = Family(
    name="sidejudge_alert_limit", kind="gauge", labels=("alert",),
    help="Where an alert begins, in its unit, from the configuration.",
    note="Of the pass rates it is the threshold of rubrics without one of their own; see "
    "`sidejudge_pass_ratio_threshold`. Absent where no single number rules.",
)  # fmt: skip
PASS_RATIO_THRESHOLD = Family(
    name="sidejudge_pass_ratio_threshold", kind="gauge", labels=("rubric", "level"),
    help="Pass ratio below which the level is reached, from the configuration.",
)  # fmt: skip
BLOCKERS = Family(
    name="sidejudge_blockers_total", kind="counter", labels=("rubric", "metric"),
    help="Verdicts that a metric's blocker disqualified or made invalid.",
    note="Carries the trace id as exemplar. First verdicts only.",
)  # fmt: skip
WORKFLOW_VIOLATIONS = Family(
    name="sidejudge_workflow_violations_total", kind="counter", labels=("scenario", "kind"),
    help="Ways in which traces departed from their scenario.",
    note="Carries the trace id as exemplar. First verdicts only.",
)  # fmt: skip
FAILURE_GROUP_VERDICTS = Family(
    name="sidejudge_failure_group_verdicts", kind="gauge", labels=("rubric", "metric", "group"),
    help="Failing verdicts of the last day by group of like failures.",
    note="Of the latest 2,000 failing verdicts; the 20 largest groups, the others as `__other__`. Counted every five "
    "minutes. What a group is about is content, and shown on the service page alone.",
)  # fmt: skip
RUNS = Family(
    name="sidejudge_runs_total", kind="counter", labels=("service",),
    help="Runs that run_health looked at, drawn at random: the denominator of the three below.",
    note="First verdicts of selection=random only, so a share of it is a share of all traffic.",
)  # fmt: skip
RUN_SIGNS = Family(
    name="sidejudge_run_signs_total", kind="counter", labels=("service", "metric"),
    help="Runs in which a metric of run_health found trouble.",
    note="`completed`: the run ended in an error; `no_repetition`: it loops; `tool_success`: tools failed; "
    "`within_usual`: it took far more than is usual for the service; the others are in the metric reference.",
)  # fmt: skip
TOOL_CALLS = Family(
    name="sidejudge_tool_calls_total", kind="counter", labels=("service", "tool"),
    help="Tool calls of these runs.",
    note="At most 20 tools of one run are counted apart. Beyond `metrics.label_cap` names, and beyond four times as "
    "many pairs of service and tool, it is `__other__`.",
)  # fmt: skip
TOOL_ERRORS = Family(
    name="sidejudge_tool_errors_total", kind="counter", labels=("service", "tool"),
    help="Tool calls of these runs that failed, by their status or by what they returned.",
)  # fmt: skip
APPLICATION_TRACES = Family(
    name="sidejudge_application_traces_total", kind="counter", labels=("service", "environment", "version"),
    help="Traces of the application, estimated for all traffic: the sum of the weights of those that were evaluated.",
    note="The denominator of the totals below. First results only. `version` holds those seen last: a new one gets "
    "the place of the one not seen for longest, and of none that was seen within 6 hours.",
)  # fmt: skip
APPLICATION_DURATION = Family(
    name="sidejudge_application_duration_seconds", kind="histogram", labels=("service", "environment"),
    buckets=LATENCY_S,
    help="Latency of the application: how long the root span of a trace took. Traces drawn at random only.",
    note="Whole traces with a root, first results only, unweighted: a share of it is a share of all traffic while the "
    "sampling rate is constant. Traces that a rule kept for their content are left out, for they are not like the "
    "others.",
)  # fmt: skip
APPLICATION_TOKENS = Family(
    name="sidejudge_application_tokens_total", kind="counter",
    labels=("service", "environment", "model", "direction"),
    help="Tokens of the application's model calls, estimated for all traffic: weight times tokens, summed.",
    note="Of whole traces that report usage, each call once; absent where none does. First results only.",
)  # fmt: skip
APPLICATION_COST = Family(
    name="sidejudge_application_cost_usd_total", kind="counter", labels=("service", "environment", "model"),
    help="US dollars of the application's model calls as its telemetry states them, estimated for all traffic.",
    note="Absent where no span states a cost: sidejudge has no price list of its own for it. First results only.",
)  # fmt: skip
_LIMITED: tuple[Label, ...] = (*_WHO, "metric")
LIMITED_VALUE = Family(
    name="sidejudge_limited_metric", kind="gauge", labels=_LIMITED,
    help=f"Quantile or mean of a metric with a limit, in its own unit, at the last look. {_PROCESS}",
    note="`metric` is the name in `alerts.metrics`, such as `latency_p95`; `rubric` is empty for figures of the "
    "application. So in the families below; all are absent without `alerts.metrics`.",
)  # fmt: skip
LIMITED_LOWER = Family(
    name="sidejudge_limited_metric_lower", kind="gauge", labels=_LIMITED,
    help="Its lower bound: the pair holds with 95 % at any look, whatever the distribution.",
    note="A bound is absent where the values show none, as of a 95th percentile of few.",
)  # fmt: skip
LIMITED_UPPER = Family(
    name="sidejudge_limited_metric_upper", kind="gauge", labels=_LIMITED,
    help="Its upper bound.",
)  # fmt: skip
LIMITED_EFFECTIVE = Family(
    name="sidejudge_limited_metric_effective_samples", kind="gauge", labels=_LIMITED,
    help="What the values of the window are worth for their weights and for what belongs together.",
)  # fmt: skip
LIMITED_STATUS = Family(
    name="sidejudge_limited_metric_status", kind="gauge", labels=(*_LIMITED, "status"),
    help="1 for the status in force under the limits of a metric, 0 for the others. This process's view.",
)  # fmt: skip
LIMITED_LIMIT = Family(
    name="sidejudge_limited_metric_limit", kind="gauge", labels=("rubric", "metric", "level"),
    help="Value at which the level begins, in the metric's unit, from the configuration.",
)  # fmt: skip
LIMITED_THRESHOLD = Family(
    name="sidejudge_limited_metric_kept_threshold_ratio", kind="gauge", labels=("rubric", "metric", "level"),
    help="Kept share below which the level is reached: of a 95th percentile 0.95.",
)  # fmt: skip
LIMITED_WEIGHT = Family(
    name="sidejudge_limited_metric_weight_total", kind="counter", labels=_LIMITED,
    help="Sum of the weights (inverse inclusion probabilities) of the values of a metric with a limit.",
    note="Kept weight over weight is the kept share, weight² over squared weight the effective sample size, each over "
    "summed increases. First results only.",
)  # fmt: skip
LIMITED_WEIGHT_SQUARED = Family(
    name="sidejudge_limited_metric_weight_squared_total", kind="counter", labels=_LIMITED,
    help="Sum of their squared weights.",
)  # fmt: skip
LIMITED_KEPT_WEIGHT = Family(
    name="sidejudge_limited_metric_kept_weight_total", kind="counter", labels=(*_LIMITED, "level"),
    help="Sum of the weights times how far values keep to the limit: 1 or 0 for a quantile, their place on the scale "
    "for a mean.",
)  # fmt: skip
REQUESTS_REFUSED = Family(
    name="sidejudge_requests_refused_total", kind="counter", labels=("code",),
    help="OTLP requests that were answered with an error, by HTTP status.",
    note="gRPC's by the HTTP status that means the same. `413` is an exporter whose batches are too large, `429` a "
    "sender beyond `sources.otlp.requests_per_second`, `503` overload. The first of each kind is logged with its "
    "cause.",
)  # fmt: skip
REQUESTS_DROPPED = Family(
    name="sidejudge_requests_dropped_total", kind="counter",
    help="OTLP requests with metrics, which are answered as taken and not looked at.",
)  # fmt: skip
SPANS_RECEIVED = Family(
    name="sidejudge_spans_received_total", kind="counter",
    help="Spans that arrived, sampled or not.",
)  # fmt: skip
SPANS_HANDED_OVER = Family(
    name="sidejudge_spans_handed_over_total", kind="counter",
    help="Spans that came from a monitor that was ending.",
    note="The monitor that they were sent to first has counted them as received; here they are not.",
)  # fmt: skip
SPANS_REJECTED = Family(
    name="sidejudge_spans_rejected_total", kind="counter", labels=("reason",),
    help="Spans that were refused; the response to the sender counts them.",
)  # fmt: skip
SPANS_IGNORED = Family(
    name="sidejudge_spans_ignored_total", kind="counter", labels=("reason",),
    help="Spans that were taken and not used.",
    note="`duplicate`: the trace had them already, a client sent again; `late`: they came after `assembly.late`; "
    "`own`: a monitor sends them about itself; `too_large`: their trace is as large as one may be; `shed`: it was not "
    "taken under load. Spans of traces that are not sampled are not in it.",
)  # fmt: skip
TRAFFIC_SUSPECTED = Family(
    name="sidejudge_traffic_suspected", kind="gauge", labels=("kind",),
    help="1 while something about the traffic makes verdicts fewer or other than the configuration asks for, else 0.",
    note="`skewed_sampling`: trace ids are not uniformly random; `split_traces`: roots or parents of many traces never "
    "arrive; `rootless_traces`: their callers' spans do not. `/v1/status` has cause and remedy.",
)  # fmt: skip
LOG_RECORDS_RECEIVED = Family(
    name="sidejudge_log_records_received_total", kind="counter",
    help="Log records that arrived, sampled or not.",
)  # fmt: skip
LOG_RECORDS_REJECTED = Family(
    name="sidejudge_log_records_rejected_total", kind="counter",
    help="Log records that could not be read; the response to the sender counts them.",
)  # fmt: skip
LOG_RECORDS_IGNORED = Family(
    name="sidejudge_log_records_ignored_total", kind="counter", labels=("reason",),
    help="Log records that were taken and not used.",
    note="`untraced`: they name no trace and span; `plain`: they are no events, but lines of a log; `late`: they came "
    "after `assembly.late`; `own`: a monitor sends them about itself; `too_large`: their trace is as large as "
    "one may be. Events of traces that are not sampled are not in it.",
)  # fmt: skip
FORWARDED = Family(
    name="sidejudge_forwarded_requests_total", kind="counter", labels=("signal",),
    help="Requests that went on upstream.",
    note="Only where `forward` is configured, like the four below.",
)  # fmt: skip
FORWARD_ANSWERS = Family(
    name="sidejudge_forwarded_answers_total", kind="counter", labels=("code",),
    help="Upstream's answers, by class of their HTTP status.",
)  # fmt: skip
FORWARD_FAILED = Family(
    name="sidejudge_forwarded_requests_failed_total", kind="counter", labels=("reason",),
    help="Requests to which upstream gave no answer, or half of one.",
    note="`connect`: it could not be reached; `timeout`; `reset`: the connection broke; `protocol`: it does not speak "
    "HTTP; `busy`: too many requests were under way. The first of each kind is logged with its cause.",
)  # fmt: skip
FORWARD_UNJUDGED = Family(
    name="sidejudge_forwarded_requests_unjudged_total", kind="counter", labels=("reason",),
    help="Requests that went on upstream and of which nothing was taken in here.",
    note="`too_large`, `memory` (too many large ones at once), `undecodable`, `unsupported` (its encoding), "
    "`overloaded` (the store), `error`; `upstream_refused`: upstream answered 4xx, so the trace is nowhere; "
    "`upstream_failed`: it answered 5xx, 408 or 429, and what the application sends again is judged.",
)  # fmt: skip
FORWARD_WITHHELD = Family(
    name="sidejudge_forwarded_requests_unauthorized_total", kind="counter",
    help="Requests that went on upstream without `forward.authorization` and `forward.headers`.",
    note="A web page may have made them: a foreign `Origin` or `Host`, or a content type of forms. The log has the "
    "cause of the first.",
)  # fmt: skip
PULL_ROWS = Family(
    name="sidejudge_pull_rows_total", kind="counter",
    help="Observations that were read from Langfuse, each as often as it was read.",
    note="0 where `sources.langfuse` is not configured.",
)  # fmt: skip
PULL_TRACES = Family(
    name="sidejudge_pull_traces_total", kind="counter",
    help="Traces that were taken from Langfuse; one that has grown since is taken again.",
    note="Those that were not read, being not drawn or not to be judged, are in `sidejudge_traces_total` alone.",
)  # fmt: skip
PULL_ERRORS = Family(
    name="sidejudge_pull_errors_total", kind="counter", labels=("reason",),
    help="Readings that ended early. What they left is read by a later one.",
)  # fmt: skip
PULL_LAG = Family(
    name="sidejudge_pull_lag_seconds", kind="gauge",
    help="For how long what is in Langfuse was not listed, or what is whole was not read. Absent until it was read.",
)  # fmt: skip
PULL_LAST_SUCCESS = Family(
    name="sidejudge_pull_last_success_timestamp_seconds", kind="gauge",
    help="When Langfuse was last read without an error. Absent until it was.",
)  # fmt: skip
FLEET_ROUNDS = Family(
    name="sidejudge_fleet_rounds_total", kind="counter", labels=("outcome",),
    help="Rounds of what monitors share in the fleet's database, by how they ended.",
    note="`ok`; `away`: not reached; `cut`: ended early by the database; `failed`: by an error of our own. Absent "
    "where `fleet` is not configured.",
)  # fmt: skip
FLEET_LAST_SUCCESS = Family(
    name="sidejudge_fleet_last_success_timestamp_seconds", kind="gauge",
    help="When a round with the fleet's database was last whole. Absent until one was.",
)  # fmt: skip
FLEET_MONITORS = Family(
    name="sidejudge_fleet_monitors", kind="gauge",
    help="Monitors of the fleet that are there, as this one saw in its latest round; 1 before the first.",
)  # fmt: skip
FLEET_LEASES = Family(
    name="sidejudge_fleet_leases", kind="gauge",
    help="Leases that this monitor holds: what it alone of the fleet may do.",
)  # fmt: skip
BELATED = Family(
    name="sidejudge_belated_traces_total", kind="counter", labels=("outcome",),
    help="Traces that were judged again because a reference changed after their spans were let go, by what came of it.",
    note="`revised`: other verdicts; `unchanged`: the same. Absent where `references` are in the traces alone.",
)  # fmt: skip
BELATED_FAILED = Family(
    name="sidejudge_belated_attempts_failed_total", kind="counter", labels=("reason",),
    help="Attempts at judging a trace again that came to nothing; its verdict stands, and the trace's page says why.",
    note="`gone`, `incomplete`, `too_large`, `unreadable` (in Langfuse), `other_rubrics` (would judge it now), "
    "`judge_failed`, `error`, `forgotten` (its verdict was let go for lack of room), `no_langfuse` (is configured).",
)  # fmt: skip
BELATED_GIVEN_UP = Family(
    name="sidejudge_belated_given_up", kind="gauge",
    help="Traces whose verdict stands though their reference is another by now, and that are not tried any more.",
)  # fmt: skip
QUEUE_ITEMS = Family(
    name="sidejudge_queue_items", kind="gauge", labels=("queue",),
    help="Items that wait.",
)  # fmt: skip
QUEUE_OLDEST = Family(
    name="sidejudge_queue_oldest_timestamp_seconds", kind="gauge", labels=("queue",),
    help="When the oldest item that waits was put there. Absent while nothing waits.",
)  # fmt: skip
SPOOL_BYTES = Family(
    name="sidejudge_spool_bytes", kind="gauge",
    help="Size of the working store on disk.",
)  # fmt: skip
EVALUATION_LAG = Family(
    name="sidejudge_evaluation_lag_seconds", kind="histogram", labels=("service",), buckets=LAG_S,
    help="Time from the end of a trace's last span to its verdicts.",
    note="Appears with the first verdict of a service.",
)  # fmt: skip
EXPORTS = Family(
    name="sidejudge_exports_total", kind="counter", labels=("destination",),
    help="What was handed to a destination, accepted or not: verdicts, to `langfuse` scores, to `otel_events` spans "
    "and events.",
    note="What is handed over again counts again.",
)  # fmt: skip
EXPORTS_FAILED = Family(
    name="sidejudge_exports_failed_total", kind="counter", labels=("destination", "reason"),
    help="What a destination did not accept, by the reason, or accepted and did not store (`not_stored`).",
)  # fmt: skip
EXPORT_LAST_SUCCESS = Family(
    name="sidejudge_exports_last_success_timestamp_seconds", kind="gauge", labels=("destination",),
    help="When a destination last accepted something. Absent until it has.",
)  # fmt: skip
EXPORTS_UNSEEN = Family(
    name="sidejudge_exports_unseen", kind="gauge", labels=("destination",),
    help="Scores that a destination accepted and that were not read back from it yet.",
)  # fmt: skip
EXPORTS_DEAD = Family(
    name="sidejudge_exports_dead", kind="gauge", labels=("destination",),
    help="What was given up: refused, or not delivered for too long. `/v1/status` says why.",
    note="Notices are tried again at the next start; scores by `sidejudge export replay` (`export dead` lists them); "
    "own telemetry is gone.",
)  # fmt: skip
CONNECTION_STATE = Family(
    name="sidejudge_connection_state", kind="gauge", labels=("connection", "state"),
    help="1 for the state of each destination, source and place of references that is configured, 0 for the others.",
    note="`connection` is a destination, `sources.langfuse`, `fleet.database`, or a place of references such as "
    "`dataset golden`. `starting`: not tried yet; `ok`; `waiting`: too much waits here; `retrying`: waiting helps; "
    "`stopped`: only a person can help (keys, address, rights, a name).",
)  # fmt: skip
JUDGE_REQUESTS = Family(
    name="sidejudge_judge_requests_total", kind="counter", labels=("model",),
    help="Requests sent to a judge, attempts that were repeated among them.",
)  # fmt: skip
JUDGE_REQUESTS_FAILED = Family(
    name="sidejudge_judge_requests_failed_total", kind="counter", labels=("model", "reason"),
    help="Requests that brought no answer, or none that could be read (`parse_error`).",
)  # fmt: skip
JUDGE_REPAIRS = Family(
    name="sidejudge_judge_repairs_total", kind="counter", labels=("model", "outcome"),
    help="Questions that a judge was asked again because its answer was not valid, by what came of it.",
    note="`answered` or `unanswered`.",
)  # fmt: skip
JUDGE_TOKENS = Family(
    name="sidejudge_judge_tokens_total", kind="counter", labels=("model", "direction"),
    help="Tokens that the judge's provider counted.",
)  # fmt: skip
JUDGE_COST = Family(
    name="sidejudge_judge_cost_usd_total", kind="counter", labels=("model",),
    help="US dollars that judging cost, as far as a price is known.",
)  # fmt: skip
JUDGE_CACHE_HITS = Family(
    name="sidejudge_judge_cache_hits_total", kind="counter",
    help="Questions to the judge that were answered by the cache.",
)  # fmt: skip
JUDGE_CACHE_MISSES = Family(
    name="sidejudge_judge_cache_misses_total", kind="counter",
    help="Questions to the judge that the cache did not know.",
)  # fmt: skip
JUDGE_DURATION = Family(
    name="sidejudge_judge_duration_seconds", kind="histogram", labels=("model",), buckets=JUDGING_S,
    help="Time that a request to a judge took, successful or not.",
)  # fmt: skip
JUDGE_FLAGS = Family(
    name="sidejudge_judge_flags_total", kind="counter", labels=("model", "flag"),
    help="Judged answers that are doubtful, by why.",
)  # fmt: skip
JUDGE_BREAKER = Family(
    name="sidejudge_judge_breaker_state", kind="gauge", labels=("model", "state"),
    help="1 for the state that the circuit breaker of a judge is in, 0 for the others.",
    note="`/v1/status` says why it is open.",
)  # fmt: skip
JUDGE_BUDGET_SPENT = Family(
    name="sidejudge_judge_budget_spent_usd", kind="gauge", labels=("period",),
    help="US dollars spent on judging since the running hour or day began.",
)  # fmt: skip
JUDGE_BUDGET_LIMIT = Family(
    name="sidejudge_judge_budget_limit_usd", kind="gauge", labels=("period",),
    help="US dollars that may be spent on judging in an hour or a day. Absent without a budget.",
)  # fmt: skip
JUDGE_SHARE = Family(
    name="sidejudge_judge_share_ratio", kind="gauge", labels=("priority",),
    help="Share of the cases that need the judge that its budget can pay for now.",
    note="Below 1 the others end as `over_budget`; verdicts carry the true probability.",
)  # fmt: skip
JUDGE_IN_FLIGHT = Family(
    name="sidejudge_judge_in_flight", kind="gauge",
    help="Cases that are being judged. Those that wait for it are the queue `judge`.",
)  # fmt: skip
EMBEDDING_TEXTS = Family(
    name="sidejudge_embedding_texts_total", kind="counter",
    help="Texts that the embedding model was given.",
)  # fmt: skip
EMBEDDING_TEXTS_FAILED = Family(
    name="sidejudge_embedding_texts_failed_total", kind="counter",
    help="Texts in calls of the embedding model that failed.",
)  # fmt: skip
EMBEDDING_DURATION = Family(
    name="sidejudge_embedding_duration_seconds", kind="histogram", buckets=JUDGING_S,
    help="Time that a call of the embedding model took, for all texts that were gathered for it.",
)  # fmt: skip
EMBEDDING_CACHE_HITS = Family(
    name="sidejudge_embedding_cache_hits_total", kind="counter",
    help="Texts whose vectors were in the cache.",
)  # fmt: skip
EMBEDDING_CACHE_MISSES = Family(
    name="sidejudge_embedding_cache_misses_total", kind="counter",
    help="Texts whose vectors the cache did not know.",
)  # fmt: skip
BUILD_INFO = Family(
    name="sidejudge_build_info", kind="info", labels=("version", "revision", "python"),
    help="What is running; always 1.",
)  # fmt: skip
CONFIG_INFO = Family(
    name="sidejudge_config_info", kind="info", labels=("fingerprint",),
    help="Which configuration is in force; always 1.",
)  # fmt: skip
CONFIG_VALID = Family(
    name="sidejudge_config_valid", kind="gauge",
    help="Whether the configuration is in force. At 0, requests are forwarded and not judged: the log says why.",
    note="Where only forwarding could start for another reason (a damaged store), `sidejudge_build_info` is missing.",
)  # fmt: skip
CONFIG_RELOADED = Family(
    name="sidejudge_config_last_reload_successful", kind="gauge",
    help="Whether the latest reload of the configuration put it into force; 1 before the first.",
)  # fmt: skip

FAMILIES = (
    TRACES, TRACES_SEEN, TRACES_KEPT, TRACES_OPEN, SAMPLING_RATE, LOAD_SHARE, JUDGING_BEHIND,
    VERDICTS, VERDICTS_FAILED, VERDICTS_INCOMPLETE, VERDICTS_JUDGE_FAILED, VERDICTS_REVISED,
    VERDICT_WEIGHT, VERDICT_FAILED_WEIGHT, VERDICT_WEIGHT_SQUARED,
    VERSION_WEIGHT, VERSION_FAILED_WEIGHT, VERSION_WEIGHT_SQUARED,
    VERDICTS_BLOCKED, VERDICT_BLOCKED_WEIGHT, VERDICTS_VIOLATING, VERDICT_VIOLATING_WEIGHT, FAILURE_GROUP_VERDICTS,
    PASS_RATIO, PASS_LOWER_RATIO, PASS_UPPER_RATIO, EFFECTIVE_SAMPLES, DESIGN_EFFECT,
    PASS_WORST_RATIO, PASS_BEST_RATIO, STATUS, STATUS_SINCE, PASS_RATIO_THRESHOLD, CHANGE_SCORE, CHANGE_SINCE,
    DRIFT_SCORE, DRIFT_SINCE,
    ALERTS, ALERT_EVENTS, ALERT_LIMIT,
    PASS_CORRECTED_RATIO, PASS_CORRECTED_LOWER_RATIO, PASS_CORRECTED_UPPER_RATIO,
    PASS_RECTIFIED_RATIO, PASS_RECTIFIED_LOWER_RATIO, PASS_RECTIFIED_UPPER_RATIO,
    CASCADE_VERDICTS, CASCADE_CHANGED, CASCADE_DELIVERED_RATIO,
    AGREEMENT_PAIRS, AGREEMENT_RAW, AGREEMENT_KAPPA, AGREEMENT_KAPPA_LOWER, AGREEMENT_KAPPA_UPPER, AGREEMENT_AC1,
    AGREEMENT_TRUE_POSITIVE, AGREEMENT_TRUE_NEGATIVE,
    LABELS_READ, LABELS_PASSED_OVER, LABELS_CORRECTIONS, LABELS_CORRECTED_PASSES,
    METRIC_SCORE, METRIC_MEAN, COMPOSITE_MEAN, BLOCKERS, WORKFLOW_VIOLATIONS,
    RUNS, RUN_SIGNS, TOOL_CALLS, TOOL_ERRORS,
    APPLICATION_TRACES, APPLICATION_DURATION, APPLICATION_TOKENS, APPLICATION_COST,
    LIMITED_VALUE, LIMITED_LOWER, LIMITED_UPPER, LIMITED_EFFECTIVE, LIMITED_STATUS, LIMITED_LIMIT, LIMITED_THRESHOLD,
    LIMITED_WEIGHT, LIMITED_WEIGHT_SQUARED, LIMITED_KEPT_WEIGHT,
    REQUESTS_REFUSED, REQUESTS_DROPPED, SPANS_RECEIVED, SPANS_HANDED_OVER, SPANS_REJECTED, SPANS_IGNORED,
    TRAFFIC_SUSPECTED,
    LOG_RECORDS_RECEIVED, LOG_RECORDS_REJECTED, LOG_RECORDS_IGNORED,
    FORWARDED, FORWARD_ANSWERS, FORWARD_FAILED, FORWARD_UNJUDGED, FORWARD_WITHHELD,
    PULL_ROWS, PULL_TRACES, PULL_ERRORS, PULL_LAG, PULL_LAST_SUCCESS,
    FLEET_ROUNDS, FLEET_LAST_SUCCESS, FLEET_MONITORS, FLEET_LEASES,
    BELATED, BELATED_FAILED, BELATED_GIVEN_UP,
    JUDGE_REQUESTS, JUDGE_REQUESTS_FAILED, JUDGE_REPAIRS, JUDGE_DURATION, JUDGE_TOKENS, JUDGE_COST,
    JUDGE_CACHE_HITS, JUDGE_CACHE_MISSES, JUDGE_FLAGS, JUDGE_BREAKER,
    JUDGE_BUDGET_SPENT, JUDGE_BUDGET_LIMIT, JUDGE_SHARE, JUDGE_IN_FLIGHT,
    EMBEDDING_TEXTS, EMBEDDING_TEXTS_FAILED, EMBEDDING_DURATION, EMBEDDING_CACHE_HITS, EMBEDDING_CACHE_MISSES,
    EVALUATION_LAG, QUEUE_ITEMS, QUEUE_OLDEST, SPOOL_BYTES,
    EXPORTS, EXPORTS_FAILED, EXPORT_LAST_SUCCESS, EXPORTS_UNSEEN, EXPORTS_DEAD, CONNECTION_STATE, BUILD_INFO,
    CONFIG_INFO, CONFIG_VALID, CONFIG_RELOADED,
)  # fmt: skip
"""All of them, in the order of the reference page."""
