"""Overview: where every service stands, over all processes: what to look at first."""

from __future__ import annotations

import integrations.prometheus.families as f
from dashboards.rules import recordings as r
from scoring.alerts.declaration import Declaration

from .board import GREEN, GREY, RED, YELLOW, Board, DashboardRow, Panel, Query
from .versions import version_change
from .words import (
    ALERTING,
    CHOSEN,
    DRILL,
    DRILL_ROW,
    FIRING,
    RUNBOOK,
    RUNBOOKS,
    SERVICE,
    STATUS_WORDS,
    WHERE,
    lasting,
    per_minute,
    ratio_steps,
    site_variables,
)


def overview(declared: Declaration) -> Board:
    """The board of everything, under this declaration."""
    window = r.window_of(declared)
    named = "{{service}} · {{environment}} · {{rubric}}"
    status = f"{r.STATUS}{{{WHERE}}}"
    return Board(
        uid="sidejudge-overview",
        title="sidejudge · overview",
        description="Where every service stands, made of the verdicts of all processes.",
        variables=(*site_variables(), RUNBOOKS),
        versions=version_change(WHERE),
        rows=(
            DashboardRow(
                title="Now",
                panels=(
                    Panel(
                        title="Critical",
                        kind="stat",
                        unit="short",
                        width=6,
                        height=4,
                        links=(CHOSEN, FIRING),
                        steps=((None, GREEN), (1, RED)),
                        description="Services, environments and rubrics whose pass ratio is provably below the "
                        "critical threshold.",
                        queries=(Query(expr=f"count({status} == 2) or vector(0)", instant=True),),
                    ),
                    Panel(
                        title="Warning",
                        kind="stat",
                        unit="short",
                        width=6,
                        height=4,
                        links=(CHOSEN, FIRING),
                        steps=((None, GREEN), (1, YELLOW)),
                        description="Those that are provably below the warning threshold, and not critical.",
                        queries=(Query(expr=f"count({status} == 1) or vector(0)", instant=True),),
                    ),
                    Panel(
                        title="Healthy",
                        kind="stat",
                        unit="short",
                        width=6,
                        height=4,
                        links=(CHOSEN, FIRING),
                        steps=((None, GREEN),),
                        description="Those with enough verdicts that are not provably below a threshold.",
                        queries=(Query(expr=f"count({status} == 0) or vector(0)", instant=True),),
                    ),
                    Panel(
                        title="Insufficient data",
                        kind="stat",
                        unit="short",
                        width=6,
                        height=4,
                        links=(CHOSEN, FIRING),
                        steps=((None, GREY),),
                        description="Those with too few verdicts. Silence is neither health nor recovery.",
                        queries=(Query(expr=f"count({status} == -1) or vector(0)", instant=True),),
                    ),
                    Panel(
                        title="Where everything stands",
                        kind="table",
                        unit="short",
                        width=24,
                        height=9,
                        description="The pass ratio is an estimate for all traffic; it lies between its bounds "
                        "(each with 95 %). "
                        "Samples are effective ones: uneven sampling counts for less.",
                        queries=(
                            Query(expr=status),
                            Query(expr=f"{r.pass_ratio(window)}{{{WHERE}}}"),
                            Query(expr=f"{r.lower(window)}{{{WHERE}}}"),
                            Query(expr=f"{r.upper(window)}{{{WHERE}}}"),
                            Query(expr=f"{r.effective(window)}{{{WHERE}}}"),
                            # Of rubrics that never judged a service there is a count, of 0, and no line.
                            Query(expr=f"{r.failures(window)}{{{WHERE}}} and {r.effective(window)}{{{WHERE}}}"),
                        ),
                        columns={
                            "cluster": "Cluster",
                            "namespace": "Namespace",
                            "service": "Service",
                            "environment": "Environment",
                            "rubric": "Rubric",
                            "A": "Status",
                            "B": "Pass ratio",
                            "C": "Lower bound",
                            "D": "Upper bound",
                            "E": "Samples",
                            "F": "Failures",
                        },
                        units={"Pass ratio": "percentunit", "Lower bound": "percentunit", "Upper bound": "percentunit"},
                        decimals=1,
                        mapped={},
                        links=(DRILL_ROW,),
                    ),
                    Panel(
                        title="Alerts that fire",
                        kind="table",
                        unit="short",
                        width=24,
                        height=6,
                        description="What Prometheus fires now, and the runbook of each, as a monitor serves it.",
                        queries=(Query(expr='ALERTS{alertname=~"Sidejudge.*",alertstate="firing"}'),),
                        links=(DRILL_ROW, ALERTING, RUNBOOK),
                        empty="No alert fires.",
                        columns={
                            "severity": "Severity",
                            "alertname": "Alert",
                            "cluster": "Cluster",
                            "namespace": "Namespace",
                            "service": "Service",
                            "environment": "Environment",
                            "rubric": "Rubric",
                        },
                    ),
                ),
            ),
            DashboardRow(
                title="Over time",
                panels=(
                    Panel(
                        title="Status",
                        kind="state-timeline",
                        unit="short",
                        width=24,
                        height=7,
                        mapped=STATUS_WORDS,
                        description=f"Worse {lasting(declared)}, as in process; better at once, where alerts last on.",
                        queries=(Query(expr=status, legend=named),),
                        steps=((None, GREY), (0, GREEN), (1, YELLOW), (2, RED)),
                    ),
                    Panel(
                        title="Pass ratio",
                        kind="timeseries",
                        unit="percentunit",
                        minimum=0,
                        maximum=1,
                        steps=ratio_steps(declared),
                        dashed=True,
                        description=f"Estimated share of all traffic that passes, over the last {window}. Dashed: the "
                        "thresholds of rubrics without their own.",
                        queries=(Query(expr=f"{r.pass_ratio(window)}{{{WHERE}}}", legend=named),),
                        links=(DRILL,),
                    ),
                    Panel(
                        title="Verdicts",
                        kind="timeseries",
                        unit="cpm",
                        stacked=True,
                        minimum=0,
                        description="Verdicts a minute that passed or failed. The pass ratio is made of these.",
                        queries=(
                            Query(expr=per_minute(f.VERDICTS, WHERE, "service", "environment", "rubric"), legend=named),
                        ),
                    ),
                    Panel(
                        title="Failures",
                        kind="timeseries",
                        unit="cpm",
                        stacked=True,
                        minimum=0,
                        description="Failed verdicts a minute. The dots are failing traces: follow one to Langfuse.",
                        queries=(
                            Query(
                                expr=per_minute(f.VERDICTS_FAILED, WHERE, "service", "environment", "rubric"),
                                legend=named,
                                exemplars=True,
                            ),
                        ),
                    ),
                    Panel(
                        title="Verdicts that neither passed nor failed",
                        kind="timeseries",
                        unit="cpm",
                        stacked=True,
                        minimum=0,
                        description="They are in no pass ratio. `error`: a metric or the judge failed; "
                        "`unavailable`: what is needed is missing.",
                        queries=(
                            Query(
                                expr=f"{per_minute(f.VERDICTS_INCOMPLETE, SERVICE, 'service', 'rubric', 'reason')} > 0",
                                legend="{{service}} · {{rubric}} · {{reason}}",
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )
