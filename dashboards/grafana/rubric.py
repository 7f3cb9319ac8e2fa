"""Rubric: one rubric of one service in depth: its ratio with bounds, and what drags it down, to metric and reason."""

from __future__ import annotations

import integrations.prometheus.families as f
from dashboards.rules import recordings as r
from dashboards.rules import shares as s
from scoring.alerts.declaration import Declaration

from .agreement import agreement
from .board import BLUE, GREEN, GREY, YELLOW, Board, DashboardRow, DashboardVariable, Panel, Query
from .versions import version_change
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

_HERE = f'{WHERE},rubric=~"$rubric"'
_SERVICE = f'{SERVICE},rubric=~"$rubric"'
_LOW = f'{_SERVICE},le="0.5"'


def rubric(declared: Declaration) -> Board:
    """The board of one rubric, under this declaration."""
    window, least = r.window_of(declared), declared.policy.min_samples
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
            DashboardRow(
                title="Pass ratio",
                panels=(
                    Panel(
                        title="Status",
                        kind="stat",
                        unit="short",
                        width=4,
                        height=5,
                        mapped=STATUS_WORDS,
                        description="Of all processes together, look by look.",
                        queries=(Query(expr=f"max({r.STATUS}{{{_HERE}}})", instant=True),),
                    ),
                    Panel(
                        title="Pass ratio now",
                        kind="stat",
                        unit="percentunit",
                        decimals=1,
                        width=5,
                        height=5,
                        steps=ratio_steps(declared),
                        description=f"Estimated share of all traffic that passes, over the last {window}; the "
                        "smallest of the chosen services.",
                        queries=(Query(expr=f"min({r.pass_ratio(window)}{{{_HERE}}})"),),
                    ),
                    Panel(
                        title="Effective samples",
                        kind="stat",
                        unit="short",
                        decimals=0,
                        width=5,
                        height=5,
                        steps=((None, GREY), (least, GREEN)),
                        description=f"Kish's effective sample size of the last {window}. Below {least:g} the "
                        "status is unknown.",
                        queries=(Query(expr=f"min({r.effective(window)}{{{_HERE}}})"),),
                    ),
                    Panel(
                        title="Worst and best case",
                        kind="stat",
                        unit="percentunit",
                        decimals=1,
                        width=10,
                        height=5,
                        description="The pass ratio if every incomplete verdict had failed, or passed: the "
                        "process that is worst off.",
                        queries=(
                            Query(expr=f"min({f.PASS_WORST_RATIO.name}{{{_HERE}}})", legend="worst"),
                            Query(expr=f"min({f.PASS_BEST_RATIO.name}{{{_HERE}}})", legend="best"),
                        ),
                    ),
                    Panel(
                        title="Pass ratio with its bounds",
                        kind="timeseries",
                        unit="percentunit",
                        minimum=0,
                        maximum=1,
                        width=16,
                        height=9,
                        description="Each bound holds with 95 %. Alerts go by the upper bound: below a "
                        "threshold, it proves the matter.",
                        queries=(
                            Query(
                                expr=f"{r.upper(window)}{{{_HERE}}}",
                                legend="upper bound · {{service}} {{environment}}",
                            ),
                            Query(
                                expr=f"{r.pass_ratio(window)}{{{_HERE}}}",
                                legend="pass ratio · {{service}} {{environment}}",
                            ),
                            Query(
                                expr=f"{r.lower(window)}{{{_HERE}}}",
                                legend="lower bound · {{service}} {{environment}}",
                            ),
                            Query(
                                expr=f'max by (level) ({r.THRESHOLD}{{{SITE},rubric=~"$rubric"}})',
                                legend="{{level}} threshold",
                            ),
                        ),
                    ),
                    Panel(
                        title="Early warning",
                        kind="timeseries",
                        unit="percentunit",
                        minimum=0,
                        width=8,
                        height=9,
                        dashed=True,
                        description="Score of the change detector as a share of what raises the early warning. "
                        "By process.",
                        steps=((None, GREEN), (1, YELLOW)),
                        queries=(
                            Query(
                                expr=f"max by (service, environment) ({f.CHANGE_SCORE.name}{{{_HERE}}})",
                                legend="{{service}} {{environment}}",
                            ),
                            Query(
                                expr=f"max by (service, environment) ({f.DRIFT_SCORE.name}{{{_HERE}}})",
                                legend="drift · {{service}} {{environment}}",
                            ),
                        ),
                    ),
                ),
            ),
            DashboardRow(
                title="What drags it down",
                panels=(
                    Panel(
                        title="Means of metrics",
                        kind="bargauge",
                        unit="short",
                        decimals=2,
                        description="Mean of each metric in its own unit, averaged over processes: look at "
                        "differences, not at digits.",
                        queries=(
                            Query(expr=f"avg by (metric) ({f.METRIC_MEAN.name}{{{_HERE}}})", legend="{{metric}}"),
                        ),
                    ),
                    Panel(
                        title="Share that each metric blocks",
                        kind="timeseries",
                        unit="percentunit",
                        minimum=0,
                        description="Share of all traffic that the metric's blocker disqualifies, over the last "
                        f"{window}.",
                        queries=(
                            Query(
                                expr=f"{s.ratio(s.BLOCKED, window)}{{{_HERE}}} > 0",
                                legend="{{metric}} · {{service}} {{environment}}",
                            ),
                        ),
                    ),
                    Panel(
                        title="Blocked traces",
                        kind="timeseries",
                        unit="cpm",
                        minimum=0,
                        description="Blocked verdicts a minute. The dots are traces: follow one to Langfuse.",
                        links=(TRACE,),
                        queries=(
                            Query(
                                expr=per_minute(f.VERDICTS_BLOCKED, _HERE, "metric"),
                                legend="{{metric}}",
                                exemplars=True,
                            ),
                        ),
                    ),
                    Panel(
                        title="Failed traces",
                        kind="timeseries",
                        unit="cpm",
                        minimum=0,
                        description="Failed verdicts a minute, by how the trace was drawn. The dots are traces: "
                        "follow one to Langfuse.",
                        links=(TRACE,),
                        queries=(
                            Query(
                                expr=per_minute(f.VERDICTS_FAILED, _HERE, "selection"),
                                legend="{{selection}}",
                                exemplars=True,
                            ),
                        ),
                    ),
                    Panel(
                        title="Departures from the scenario",
                        kind="timeseries",
                        unit="cpm",
                        minimum=0,
                        stacked=True,
                        description="Violations a minute, by kind: missing or unexpected agents and tools, "
                        "order, budget, arguments. Of all services.",
                        queries=(
                            Query(
                                expr=f"{per_minute(f.WORKFLOW_VIOLATIONS, SITE, 'scenario', 'kind')} > 0",
                                legend="{{scenario}} · {{kind}}",
                                exemplars=True,
                            ),
                        ),
                    ),
                    Panel(
                        title="Verdicts without a result",
                        kind="timeseries",
                        unit="cpm",
                        minimum=0,
                        stacked=True,
                        description="Verdicts a minute that neither passed nor failed, by reason. They are in no "
                        "pass ratio.",
                        queries=(
                            Query(expr=per_minute(f.VERDICTS_INCOMPLETE, _SERVICE, "reason"), legend="{{reason}}"),
                        ),
                    ),
                ),
            ),
            agreement(declared),
            DashboardRow(
                title="Scores",
                panels=(
                    Panel(
                        title="Where scores lie",
                        kind="heatmap",
                        unit="short",
                        width=24,
                        height=9,
                        steps=((None, BLUE),),
                        description="Scores of all metrics as shares of their scales, in tenths. Drift shows as "
                        "a band that moves.",
                        queries=(
                            Query(
                                expr=per_second(f.METRIC_SCORE, _SERVICE, "le", part="_bucket"),
                                legend="{{le}}",
                                heatmap=True,
                            ),
                        ),
                    ),
                    Panel(
                        title="Low scores by metric",
                        kind="timeseries",
                        unit="percentunit",
                        minimum=0,
                        maximum=1,
                        width=24,
                        description="Share of each metric's scores in the lower half of its scale.",
                        queries=(
                            Query(
                                expr=f"{per_second(f.METRIC_SCORE, _LOW, 'metric', part='_bucket')}"
                                f" / ({per_second(f.METRIC_SCORE, _SERVICE, 'metric', part='_count')} > 0)",
                                legend="{{metric}}",
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )
