"""Traces: how many arrive, are drawn and how they end; and the verdicts on them."""

from __future__ import annotations

from .family import PROCESS, WHO, Label, counter, gauge

TRACES = counter(
    "sidejudge_traces_total", labels=("service", "reason"),
    help="Traces that ended, by how: each is counted once, with exactly one reason.",
    note="The outcomes: their sum plus `sidejudge_traces_open` is `sidejudge_traces_seen_total`.",
)  # fmt: skip
TRACES_SEEN = counter("sidejudge_traces_seen_total", "Traces that arrived, sampled or not.")
TRACES_KEPT = counter(
    "sidejudge_traces_kept_total", labels=("service", "selection"),
    help="Traces that sampling chose for evaluation.",
    note="Counted with their verdicts, incomplete ones among them. What is lost before that (`shed`, `undecodable`, "
    "`error`, `crashed`) is in `sidejudge_traces_total` alone, as is what no rubric judges.",
)  # fmt: skip
TRACES_OPEN = gauge("sidejudge_traces_open", "Traces that arrived and have not ended.")
SAMPLING_RATE = gauge(
    "sidejudge_sampling_rate_ratio",
    help="Base sampling rate of this moment: configured, or following the traffic; rules may grant more.",
)
LOAD_SHARE = gauge(
    "sidejudge_load_share_ratio",
    help="Share of the traces that sampling keeps that are judged: 1, and less while more close than can be judged.",
    note="The others end as `shed`; verdicts carry the true probability.",
)
JUDGING_BEHIND = gauge(
    "sidejudge_judging_behind_seconds",
    help="How long the oldest closed trace waits to be judged, or for embeddings; 0 while none does.",
    note="Those that wait for a judge's answers are the queue `judge`.",
)


_VERSION_WHO: tuple[Label, ...] = (*WHO, "version")

VERDICTS = counter(
    "sidejudge_verdicts_total", labels=(*WHO, "selection"),
    help="Verdicts that passed or failed. Rates are made of selection=random, or of the weights.",
    note="Counts the first verdict on a trace; a revision by late spans moves the window's gauges, not this counter.",
)  # fmt: skip
VERDICTS_FAILED = counter(
    "sidejudge_verdicts_failed_total", labels=(*WHO, "selection"),
    help="Verdicts that failed.",
    note="Carries the trace id as exemplar. First verdicts only.",
)  # fmt: skip
VERDICTS_INCOMPLETE = counter(
    "sidejudge_verdicts_incomplete_total", labels=("service", "rubric", "reason"),
    help="Verdicts that neither passed nor failed, because too little could be scored.",
    note="`unavailable`: what metrics need is missing; `error`: a metric was tried and failed; `not_applicable`: there "
    "was nothing to measure. First verdicts only.",
)  # fmt: skip
VERDICTS_JUDGE_FAILED = gauge(
    "sidejudge_verdicts_judge_failed_ratio", labels=WHO,
    help=f"Share of the window's verdicts that are incomplete because the judge failed, unweighted. {PROCESS}",
    note="They are in no pass ratio. Absent while the window holds no verdict.",
)  # fmt: skip
VERDICTS_REVISED = counter(
    "sidejudge_verdicts_revised_total", labels=("service", "rubric"),
    help="Verdicts that replaced an earlier one on the same trace, after late spans.",
)  # fmt: skip
VERDICT_WEIGHT = counter(
    "sidejudge_verdict_weight_total", labels=WHO,
    help="Sum of the weights (inverse inclusion probabilities) of verdicts that passed or failed.",
    note="The pass ratio of all traffic is 1 - failed weight / weight, the effective sample size weight² / squared "
    "weight, each over summed increases. First verdicts only, both selections.",
)  # fmt: skip
VERDICT_FAILED_WEIGHT = counter(
    "sidejudge_verdict_failed_weight_total", "Sum of the weights of verdicts that failed.", labels=WHO
)
VERDICT_WEIGHT_SQUARED = counter(
    "sidejudge_verdict_weight_squared_total", labels=WHO,
    help="Sum of the squared weights of verdicts that passed or failed.",
)  # fmt: skip
VERSION_WEIGHT = counter(
    "sidejudge_version_verdict_weight_total", labels=_VERSION_WHO,
    help="Sum of the weights of verdicts that passed or failed, by version of the application.",
    note="The 5 versions of a service and environment that were judged last, the rest as `__other__`: a new one gets "
    "the place of the one not judged for longest, and of none that was judged within the hour. Series of a version "
    "begin with its first verdict, so Prometheus does not see what was counted before their first scrape. Recording "
    "rules compare each version with the rest. First verdicts only.",
)  # fmt: skip
VERSION_FAILED_WEIGHT = counter(
    "sidejudge_version_verdict_failed_weight_total", labels=_VERSION_WHO,
    help="Sum of the weights of verdicts that failed, by version of the application.",
)  # fmt: skip
VERSION_WEIGHT_SQUARED = counter(
    "sidejudge_version_verdict_weight_squared_total", labels=_VERSION_WHO,
    help="Sum of the squared weights of verdicts that passed or failed, by version of the application.",
)  # fmt: skip
VERDICTS_BLOCKED = counter(
    "sidejudge_verdicts_blocked_total", labels=(*WHO, "metric"),
    help="Verdicts that passed or failed and had a blocker of this metric.",
    note="A verdict with two blockers counts under both. First verdicts only.",
)  # fmt: skip
VERDICT_BLOCKED_WEIGHT = counter(
    "sidejudge_verdict_blocked_weight_total", labels=(*WHO, "metric"),
    help="Sum of the weights of verdicts that passed or failed and had a blocker of this metric.",
    note="Over `sidejudge_verdict_weight_total` it is the share of all traffic that the metric blocks.",
)  # fmt: skip
VERDICTS_VIOLATING = counter(
    "sidejudge_verdicts_violating_total", labels=WHO,
    help="Workflow verdicts that passed or failed and departed from their scenario in any way.",
)  # fmt: skip
VERDICT_VIOLATING_WEIGHT = counter(
    "sidejudge_verdict_violating_weight_total", labels=WHO,
    help="Sum of the weights of workflow verdicts that passed or failed and departed from their scenario in any way.",
)  # fmt: skip
FAILURE_GROUP_VERDICTS = gauge(
    "sidejudge_failure_group_verdicts", labels=("rubric", "metric", "group"),
    help="Failing verdicts of the last day by group of like failures.",
    note="Of the latest 2,000 failing verdicts; the 20 largest groups, the others as `__other__`. Counted every five "
    "minutes. What a group is about is content, and shown on the service page alone.",
)  # fmt: skip
