"""Overview: the status of every service, over all processes; the first board to look at."""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.dashboards.rules import recordings as r
from sidejudge.scoring.alerts.declaration import Declaration

from .board import BLUE, GREEN, GREY, RED, YELLOW, Board, Panel, Query, Steps, panel, row, series, stat, table
from .firing import RANKS, version_change, with_rank, with_runbook
from .words import (
    ALERTING,
    CHOSEN,
    DRILL,
    DRILL_ROW,
    FIRING,
    SERVICE,
    STATUS_WORDS,
    WHERE,
    lasting,
    per_minute,
    ratio_steps,
    site_variables,
    to_runbook,
)

_NAMED = "{{service}} · {{environment}} · {{rubric}}"
_STATUS = f"{r.STATUS}{{{WHERE}}}"
_SEVERITIES = {
    rank: (severity, colour) for (rank, severity), colour in zip(RANKS.items(), (RED, YELLOW, BLUE), strict=True)
}
_PLACE = {
    "cluster": "Cluster", "namespace": "Namespace", "service": "Service", "environment": "Environment",
    "rubric": "Rubric",
}  # fmt: skip


def overview(declared: Declaration, runbooks: str | None = None) -> Board:
    """The board of everything, under this declaration; ``runbooks`` says where runbooks lie (``runbook_link``)."""
    return Board(
        uid="sidejudge-overview",
        title="sidejudge · overview",
        description="Where every service stands, made of the verdicts of all processes.",
        variables=site_variables(),
        versions=version_change(WHERE),
        rows=(
            row("Now", *_counts(), _standing(r.window_of(declared)), _firing(declared, runbooks)),
            row("Over time", *_over_time(declared)),
        ),
    )


def _counts() -> tuple[Panel, ...]:
    return (
        _count(
            "Critical", 2, ((None, GREEN), (1, RED)),
            "Services, environments and rubrics whose pass ratio is provably below the critical threshold.",
        ),
        _count(
            "Warning", 1, ((None, GREEN), (1, YELLOW)),
            "Those that are provably below the warning threshold, and not critical.",
        ),
        _count(
            "Healthy", 0, ((None, GREEN),),
            "Those with enough verdicts that are not provably below a threshold.",
        ),
        _count(
            "No data", -2, ((None, GREEN), (1, GREY)),
            "Those whose verdicts no longer come. Silence is neither health nor recovery.", width=4,
        ),
        _count(
            "Insufficient data", -1, ((None, GREY),),
            "Those with too few verdicts.",
        ),
    )  # fmt: skip


def _count(title: str, code: int, steps: Steps, description: str, *, width: int = 5) -> Panel:
    found = Query(expr=f"count({_STATUS} == {code}) or vector(0)", instant=True)
    return stat(title, description, found, steps=steps, width=width, links=(CHOSEN, FIRING))


def _standing(window: str) -> Panel:
    return table(
        "Where everything stands",
        "The pass ratio is an estimate for all traffic; it lies between its bounds with 95 %. "
        "Samples are effective ones: uneven sampling counts for less.",
        Query(expr=_STATUS),
        Query(expr=f"{r.pass_ratio(window)}{{{WHERE}}}"),
        Query(expr=f"{r.lower(window)}{{{WHERE}}}"),
        Query(expr=f"{r.upper(window)}{{{WHERE}}}"),
        Query(expr=f"{r.effective(window)}{{{WHERE}}}"),
        # Of rubrics that never judged a service there is a count, of 0, and no line.
        Query(expr=f"{r.failures(window)}{{{WHERE}}} and {r.effective(window)}{{{WHERE}}}"),
        columns={
            **_PLACE,
            "A": "Status", "B": "Pass ratio", "C": "Lower bound", "D": "Upper bound", "E": "Samples", "F": "Failures",
        },
        units=dict.fromkeys(("Pass ratio", "Lower bound", "Upper bound"), "percentunit"),
        decimals=1, height=9, links=(DRILL_ROW,), ranked="Status", mapped=STATUS_WORDS,
    )  # fmt: skip


def _firing(declared: Declaration, runbooks: str | None) -> Panel:
    return table(
        "Alerts that fire",
        "What Prometheus fires now of what is chosen, the worst first, and the runbook of each. Every monitor serves "
        "these at /help/alert.",
        Query(expr=with_runbook(with_rank([each.name for each in site_variables()]), declared)),
        columns={"A": "Severity", "alertname": "Alert", **_PLACE, "runbook": "What to do"},
        links=(DRILL_ROW, ALERTING, *to_runbook(runbooks)),
        empty="No alert fires.", ranked="Severity", mapped=_SEVERITIES,
    )  # fmt: skip


def _over_time(declared: Declaration) -> tuple[Panel, ...]:
    window, place = r.window_of(declared), ("service", "environment", "rubric")
    incomplete = per_minute(f.VERDICTS_INCOMPLETE, SERVICE, "service", "rubric", "reason")
    return (
        panel(
            "state-timeline", "Status",
            f"Worse {lasting(declared)}, as in process; better at once, where alerts last on.",
            "short", Query(expr=_STATUS, legend=_NAMED), width=24, height=7, mapped=STATUS_WORDS,
            steps=((None, GREY), (0, GREEN), (1, YELLOW), (2, RED)),
        ),
        series(
            "Pass ratio",
            f"Estimated share of all traffic that passes, over the last {window}. Dashed: the "
            "thresholds of rubrics without their own.",
            "percentunit", Query(expr=f"{r.pass_ratio(window)}{{{WHERE}}}", legend=_NAMED),
            maximum=1, steps=ratio_steps(declared), dashed=True, links=(DRILL,),
        ),
        series(
            "Verdicts", "Verdicts a minute that passed or failed. The pass ratio is made of these.",
            "cpm", Query(expr=per_minute(f.VERDICTS, WHERE, *place), legend=_NAMED), stacked=True,
        ),
        series(
            "Failures", "Failed verdicts a minute. The dots are failing traces: follow one to Langfuse.",
            "cpm", Query(expr=per_minute(f.VERDICTS_FAILED, WHERE, *place), legend=_NAMED, exemplars=True),
            stacked=True,
        ),
        series(
            "Verdicts that neither passed nor failed",
            "They are in no pass ratio. `error`: a metric or the judge failed; "
            "`unavailable`: what is needed is missing.",
            "cpm", Query(expr=f"{incomplete} > 0", legend="{{service}} · {{rubric}} · {{reason}}"), stacked=True,
        ),
    )  # fmt: skip
