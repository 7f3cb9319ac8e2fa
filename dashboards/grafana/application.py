"""Application: what the application takes beside its quality: latency, tokens and cost, by model and version."""

from __future__ import annotations

import integrations.prometheus.families as f
from dashboards.rules import by_version as v
from dashboards.rules import recordings as r
from dashboards.rules.limited import kept
from dashboards.rules.promql import fleet
from scoring.alerts.declaration import Declaration

from .board import Board, DashboardRow, Panel, Query
from .versions import version_change
from .words import DRILL, WHERE, per_minute, per_second, ratio_steps, site_variables

_PLACE = "service", "environment"
_NAMED = "{{service}} · {{environment}}"
_VERSIONED = f"{{{{version}}}} · {_NAMED} · {{{{rubric}}}}"
_NO_VERSION = "No verdict passed or failed on a trace that names a version (service.version)."
_LIMITED = f"{{{{metric}}}} · {_NAMED}"
_SHOWN = {
    f.APPLICATION_TRACES: ("cpm", "No trace was evaluated."),
    f.APPLICATION_TOKENS: ("short", "No whole trace that was evaluated reports tokens."),
    f.APPLICATION_COST: (
        "currencyUSD", "No whole trace that was evaluated states a cost: sidejudge has no price list of its own."
    ),
}  # fmt: skip
"""Unit of each family, and why there may be nothing of it."""
_ALL = "Estimated for all traffic, from whole traces that were evaluated."


def application(declared: Declaration) -> Board:
    """The board of the application."""
    window = r.window_of(declared)
    buckets = per_second(f.APPLICATION_DURATION, WHERE, *_PLACE, "le", part="_bucket")
    return Board(
        uid="sidejudge-application",
        title="sidejudge · the application",
        description="Latency, tokens and cost of the application beside its quality, by model and version.",
        variables=site_variables(),
        versions=version_change(WHERE),
        rows=(
            DashboardRow(
                title="Quality, and what it takes",
                panels=(
                    Panel(
                        title="Pass ratio", kind="timeseries", unit="percentunit", minimum=0, maximum=1,
                        steps=ratio_steps(declared), dashed=True, links=(DRILL,),
                        description=f"Share of all traffic that passes, over the last {window}.",
                        queries=(
                            Query(expr=f"{r.pass_ratio(window)}{{{WHERE}}}", legend=f"{_NAMED} · {{{{rubric}}}}"),
                        ),
                    ),
                    Panel(
                        title="Latency", kind="timeseries", unit="s", minimum=0,
                        empty="No whole trace with a root was drawn at random and evaluated.",
                        description="Median and 95 % of the root spans of traces that were drawn at random.",
                        queries=tuple(
                            Query(expr=f"histogram_quantile({share}, {buckets})", legend=f"{name} · {_NAMED}")
                            for share, name in ((0.5, "median"), (0.95, "95 %"))
                        ),
                    ),
                    _each("Cost of a trace", f.APPLICATION_COST),
                    _each("Tokens of a trace", f.APPLICATION_TOKENS, "direction"),
                ),
            ),
            DashboardRow(
                title="Quality by version",
                panels=(
                    Panel(
                        title="Pass ratio by version", kind="timeseries", unit="percentunit", minimum=0, maximum=1,
                        steps=ratio_steps(declared), dashed=True, links=(DRILL,), empty=_NO_VERSION,
                        description=f"Of the versions that were judged last, over the last {r.DAY}.",
                        queries=(Query(expr=f"{v.PASS_RATIO}{{{WHERE}}}", legend=_VERSIONED),),
                    ),
                    Panel(
                        title="Each version against the rest", kind="timeseries", unit="percentunit",
                        empty=f"{_NO_VERSION} Or all verdicts of the last {r.DAY} are of one version.",
                        description=f"The version's pass ratio less that of all other traffic of its service, over the "
                        f"last {r.DAY}, with bounds that hold with 95 % at one look. While all of it is below 0 the "
                        "version is worse. Bounds that hold at any look: sidejudge compare --by release.",
                        queries=tuple(
                            Query(expr=f"{record}{{{WHERE}}}", legend=f"{name}{_VERSIONED}")
                            for record, name in ((v.DIFFERENCE, ""), (v.LOWER, "at least · "), (v.UPPER, "at most · "))
                        ),
                    ),
                ),
            ),
            DashboardRow(
                title="Limits",
                panels=(
                    Panel(
                        title="Metrics with limits", kind="timeseries", unit="short",
                        empty="No metric has a limit: see alerts.metrics.",
                        description="Percentiles and means under limits (alerts.metrics), in their own units, in the "
                        "process where they are highest, with bounds that hold with 95 % at any look.",
                        queries=tuple(
                            Query(expr=fleet(family, where=WHERE, operation="max"), legend=f"{name}{_LIMITED}")
                            for family, name in (
                                (f.LIMITED_VALUE, ""), (f.LIMITED_LOWER, "at least · "),
                                (f.LIMITED_UPPER, "at most · "),
                            )
                        ),
                    ),
                    Panel(
                        title="Kept share", kind="timeseries", unit="percentunit", minimum=0, maximum=1,
                        empty="No metric has a limit: see alerts.metrics.",
                        description=f"Share of all traffic within a limit of a percentile, over the last {window}; of "
                        "a mean its place on the scale, 1 being best.",
                        queries=(
                            Query(expr=f"{kept(window)}{{{WHERE}}}", legend=f"{_LIMITED} · {{{{level}}}}"),
                        ),
                    ),
                ),
            ),
            DashboardRow(
                title="Models and versions",
                panels=(
                    _stacked("Traces by version", f"Traces a minute. {_ALL}", f.APPLICATION_TRACES, "version"),
                    Panel(
                        title="Share of each version", kind="timeseries", unit="percentunit", minimum=0, maximum=1,
                        stacked=True,
                        description="Of the traffic of its service. A version that takes over is marked on all boards.",
                        queries=(
                            Query(
                                expr=f"{per_second(f.APPLICATION_TRACES, WHERE, *_PLACE, 'version')} / on "
                                f"({', '.join(_PLACE)}) group_left () "
                                f"({per_second(f.APPLICATION_TRACES, WHERE, *_PLACE)} > 0)",
                                legend=f"{_NAMED} · {{{{version}}}}",
                            ),
                        ),
                    ),
                    _stacked("Cost by model", f"US dollars a minute. {_ALL}", f.APPLICATION_COST, "model"),
                    _stacked("Tokens by model", f"Tokens a minute. {_ALL}", f.APPLICATION_TOKENS, "model", "direction"),
                ),
            ),
        ),
    )  # fmt: skip


def _stacked(title: str, description: str, family: f.Family, *by: str) -> Panel:
    legend = " · ".join((_NAMED, *(f"{{{{{label}}}}}" for label in by)))
    unit, empty = _SHOWN[family]
    return Panel(
        title=title, kind="timeseries", unit=unit, minimum=0, stacked=True, description=description, empty=empty,
        queries=(Query(expr=per_minute(family, WHERE, *_PLACE, *by), legend=legend),),
    )  # fmt: skip


def _each(title: str, family: f.Family, *by: str) -> Panel:
    """A sum for each trace, those that report nothing included."""
    legend = " · ".join((_NAMED, *(f"{{{{{label}}}}}" for label in by)))
    unit, empty = _SHOWN[family]
    traces = per_second(f.APPLICATION_TRACES, WHERE, *_PLACE)
    expr = f"{per_second(family, WHERE, *_PLACE, *by)} / on ({', '.join(_PLACE)}) group_left () ({traces} > 0)"
    return Panel(
        title=title, kind="timeseries", unit=unit, minimum=0, empty=empty,
        description="On average over all traces, also those that report nothing of it.",
        queries=(Query(expr=expr, legend=legend),),
    )  # fmt: skip
