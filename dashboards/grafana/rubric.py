"""Rubric: one rubric of one service in depth: its ratio with bounds, and the metrics and reasons that lower it.

One row shows how far verdicts agree with people's, and the pass rate that people would find. Every process knows the
labels of its project: among several, the lowest agreement is shown.
"""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.dashboards.rules import recordings as r
from sidejudge.dashboards.rules import shares as s
from sidejudge.integrations.prometheus.families import Family
from sidejudge.scoring.alerts.declaration import Declaration

from .board import (
    GREEN,
    GREY,
    RED,
    YELLOW,
    Board,
    DashboardRow,
    DashboardVariable,
    Panel,
    Query,
    panel,
    row,
    series,
    stat,
)
from .firing import version_change
from .words import (
    LANGFUSE,
    SERVICE,
    SITE,
    STATUS_WORDS,
    TRACE,
    WHERE,
    per_minute,
    per_second,
    ratio_steps,
    site_variables,
)

_RUBRIC = f'{SITE},rubric=~"$rubric"'
_PASS = f'{_RUBRIC},metric="pass"'
_HERE = f'{WHERE},rubric=~"$rubric"'
_OF = "{{service}} {{environment}}"


def agreement(declared: Declaration) -> DashboardRow:
    """The row, under this declaration."""
    window, least, limit = r.window_of(declared), declared.policy.min_samples, declared.limits.agreement
    return row(
        "Agreement with people",
        stat(
            "Labels compared",
            f"Labels of people that were compared with the verdict on the same. Below {least:g} no alert on "
            "agreement fires.",
            _least(f.AGREEMENT_PAIRS), decimals=0, width=4, height=5, steps=((None, GREY), (least, GREEN)),
        ),
        stat(
            "Kappa", "Cohen's kappa of people and verdicts: agreement beyond chance, 1 at most.",
            _least(f.AGREEMENT_KAPPA), decimals=2, width=5, height=5, steps=((None, RED), (limit, GREEN)),
        ),
        stat(
            "People would have passed",
            f"Pass ratio of the last {window}, corrected for the judge's errors on labelled traces: the smallest "
            "of the services.",
            Query(expr=f"min({r.corrected(window)}{{{_HERE}}})"),
            unit="percentunit", decimals=1, width=7, height=5,
        ),
        stat(
            "Corrected answers", "Answers that people corrected, and those of them that had passed.",
            _least(f.LABELS_CORRECTIONS, "corrected", of=_RUBRIC),
            _least(f.LABELS_CORRECTED_PASSES, "had passed", of=_RUBRIC), decimals=0, width=8, height=5,
        ),
        series(
            "Kappa with its bounds, and AC1",
            "Two-sided 95 %. The alert goes by the upper bound. AC1 stays steady where nearly everything passes.",
            "short",
            _least(f.AGREEMENT_KAPPA_UPPER, "upper bound"), _least(f.AGREEMENT_KAPPA, "kappa"),
            _least(f.AGREEMENT_KAPPA_LOWER, "lower bound"), _least(f.AGREEMENT_AC1, "AC1"),
            minimum=-1, maximum=1, decimals=2, dashed=True, steps=((None, RED), (limit, GREEN)),
        ),
        series(
            "Pass ratio as people would have found it",
            "The fleet's pass ratio beside the same corrected for the judge's errors (Rogan-Gladen); bounds, "
            "two-sided 95 %, are those of the process whose are widest.",
            "percentunit",
            Query(
                expr=f"max by (service, environment) ({f.PASS_CORRECTED_UPPER_RATIO.name}{{{_HERE}}})",
                legend=f"upper bound · {_OF}",
            ),
            Query(expr=f"{r.corrected(window)}{{{_HERE}}}", legend=f"corrected · {_OF}"),
            Query(
                expr=f"min by (service, environment) ({f.PASS_CORRECTED_LOWER_RATIO.name}{{{_HERE}}})",
                legend=f"lower bound · {_OF}",
            ),
            Query(expr=f"{r.pass_ratio(window)}{{{_HERE}}}", legend=f"as judged · {_OF}"),
            maximum=1,
        ),
        series(
            "The judge's errors on labelled traces",
            "Of what people pass the share that passes here, and of what they fail the share that fails here.",
            "percentunit",
            Query(expr=f"min({r.TRUE_POSITIVE}{{{_RUBRIC}}})", legend="passes kept"),
            Query(expr=f"min({r.TRUE_NEGATIVE}{{{_RUBRIC}}})", legend="failures found"),
            maximum=1,
        ),
        panel(
            "bargauge", "Agreement by metric",
            "Share of labels with which the value agrees, by metric; pass is the verdict itself.", "percentunit",
            Query(expr=f"min by (metric) ({f.AGREEMENT_RAW.name}{{{_RUBRIC}}})", legend="{{metric}}"),
            minimum=0, maximum=1,
        ),
    )  # fmt: skip


def _least(family: Family, legend: str = "__auto", *, of: str = _PASS) -> Query:
    return Query(expr=f"min({family.name}{{{of}}})", legend=legend)


_SERVICE = f'{SERVICE},rubric=~"$rubric"'
# Scores are added up over services unless `metrics.detail` is full.
_SCORED = f'{SITE},service=~"$service|__all__",rubric=~"$rubric"'
_LOW = f'{_SCORED},le="0.5"'


def rubric(declared: Declaration) -> Board:
    """The board of one rubric, under this declaration."""
    window = r.window_of(declared)
    *site, _ = site_variables()
    # Recorded only where a rubric ever reached a verdict: a counter of 0 is no rubric to open the board on.
    known = f"{r.effective(window)}{{{WHERE}}}"
    chosen = DashboardVariable(name="rubric", label="Rubric", query=f"label_values({known}, rubric)", many=False)
    return Board(
        uid="sidejudge-rubric",
        title="sidejudge · one rubric in depth",
        description="One rubric: how sure the pass ratio is, which metrics and blockers drag it down, and which "
        "traces show it.",
        variables=(*site, chosen, LANGFUSE),
        versions=version_change(WHERE),
        rows=(
            row("Pass ratio", *_now(declared), *_bounds(window)),
            row("What drags it down", *_faults(window)),
            agreement(declared),
            row("Scores", *_scores()),
        ),
    )


def _now(declared: Declaration) -> tuple[Panel, ...]:
    window, least = r.window_of(declared), declared.policy.min_samples
    return (
        stat(
            "Status", "Of all processes together, look by look.",
            Query(expr=f"max({r.STATUS}{{{_HERE}}})", instant=True), width=4, height=5, mapped=STATUS_WORDS,
        ),
        stat(
            "Pass ratio now",
            f"Estimated share of all traffic that passes, over the last {window}; the smallest of the chosen services.",
            Query(expr=f"min({r.pass_ratio(window)}{{{_HERE}}})"),
            unit="percentunit", decimals=1, width=5, height=5, steps=ratio_steps(declared),
        ),
        stat(
            "Effective samples",
            f"Kish's effective sample size of the last {window}. Below {least:g} the status is unknown.",
            Query(expr=f"min({r.effective(window)}{{{_HERE}}})"),
            decimals=0, width=5, height=5, steps=((None, GREY), (least, GREEN)),
        ),
        stat(
            "Worst and best case",
            "The pass ratio if every incomplete verdict had failed, or passed: the process that is worst off.",
            # Where no verdict is incomplete the two are the pass ratio, and need not be there.
            *(
                Query(expr=f"min({case.name}{{{_HERE}}} or {f.PASS_RATIO.name}{{{_HERE}}})", legend=name)
                for case, name in ((f.PASS_WORST_RATIO, "worst"), (f.PASS_BEST_RATIO, "best"))
            ),
            unit="percentunit", decimals=1, width=10, height=5,
        ),
    )  # fmt: skip


def _bounds(window: str) -> tuple[Panel, ...]:
    by_place = "max by (service, environment)"
    return (
        series(
            "Pass ratio with its bounds",
            "Both bounds together hold with 95 %. An upper bound below a threshold proves the matter.",
            "percentunit",
            Query(expr=f"{r.upper(window)}{{{_HERE}}}", legend=f"upper bound · {_OF}"),
            Query(expr=f"{r.pass_ratio(window)}{{{_HERE}}}", legend=f"pass ratio · {_OF}"),
            Query(expr=f"{r.lower(window)}{{{_HERE}}}", legend=f"lower bound · {_OF}"),
            Query(expr=f'max by (level) ({r.THRESHOLD}{{{SITE},rubric=~"$rubric"}})', legend="{{level}} threshold"),
            maximum=1, width=16, height=9,
        ),
        series(
            "Early warning",
            "Score of the change detector as a share of what raises the early warning. By process.",
            "percentunit",
            Query(expr=f"{by_place} ({f.CHANGE_SCORE.name}{{{_HERE}}})", legend=_OF),
            Query(expr=f"{by_place} ({f.DRIFT_SCORE.name}{{{_HERE}}})", legend=f"drift · {_OF}"),
            width=8, height=9, dashed=True, steps=((None, GREEN), (1, YELLOW)),
        ),
    )  # fmt: skip


def _faults(window: str) -> tuple[Panel, ...]:
    return (
        panel(
            "bargauge", "Means of metrics",
            "Mean score of each metric as a share of its scale, of the judged traces, unweighted: lower than "
            "that of all traffic where a sampling rule keeps failures. Of all services unless metrics.detail is full.",
            "percentunit", Query(expr=_mean_scores(), legend="{{metric}}"), minimum=0, maximum=1, decimals=1,
        ),
        series(
            "Share that each metric blocks",
            f"Share of all traffic that the metric's blocker disqualifies, over the last {window}.",
            "percentunit",
            Query(expr=f"{s.ratio(s.BLOCKED, window)}{{{_HERE}}} > 0", legend=f"{{{{metric}}}} · {_OF}"),
        ),
        series(
            "Blocked traces", "Blocked verdicts a minute. The dots are traces: follow one to Langfuse.", "cpm",
            Query(expr=per_minute(f.VERDICTS_BLOCKED, _HERE, "metric"), legend="{{metric}}", exemplars=True),
            links=(TRACE,),
        ),
        series(
            "Failed traces",
            "Failed verdicts a minute, by how the trace was drawn. The dots are traces: follow one to Langfuse.",
            "cpm",
            Query(expr=per_minute(f.VERDICTS_FAILED, _HERE, "selection"), legend="{{selection}}", exemplars=True),
            links=(TRACE,),
        ),
        series(
            "Departures from the scenario",
            "Violations a minute, by kind: missing or unexpected agents and tools, order, budget, arguments. Of all "
            "services.",
            "cpm",
            Query(
                expr=f"{per_minute(f.WORKFLOW_VIOLATIONS, SITE, 'scenario', 'kind')} > 0",
                legend="{{scenario}} · {{kind}}", exemplars=True,
            ),
            stacked=True,
        ),
        series(
            "Verdicts without a result",
            "Verdicts a minute that neither passed nor failed, by reason. They are in no pass ratio.",
            "cpm", Query(expr=per_minute(f.VERDICTS_INCOMPLETE, _SERVICE, "reason"), legend="{{reason}}"),
            stacked=True,
        ),
    )  # fmt: skip


def _mean_scores() -> str:
    total, every = (per_second(f.METRIC_SCORE, _SCORED, "metric", part=part) for part in ("_sum", "_count"))
    return f"{total} / ({every} > 0)"


def _scores() -> tuple[Panel, ...]:
    low = per_second(f.METRIC_SCORE, _LOW, "metric", part="_bucket")
    every = per_second(f.METRIC_SCORE, _SCORED, "metric", part="_count")
    by_tenth = per_second(f.METRIC_SCORE, _SCORED, "le", part="_bucket")
    return (
        panel(
            "heatmap", "Where scores lie",
            "Scores of all metrics as shares of their scales. Drift shows as a band that moves.",
            "short", Query(expr=by_tenth, legend="{{le}}", heatmap=True), width=24, height=9,
        ),
        series(
            "Low scores by metric",
            "Share of each metric's scores in the lower half of its scale, of the judged traces, unweighted.",
            "percentunit",
            Query(expr=f"{low} / ({every} > 0)", legend="{{metric}}"), maximum=1, width=24,
        ),
    )  # fmt: skip
