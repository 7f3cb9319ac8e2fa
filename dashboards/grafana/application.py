"""Application: the application's latency, tokens and cost, by model and version."""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.dashboards.rules import by_version as v
from sidejudge.dashboards.rules import recordings as r
from sidejudge.dashboards.rules.limited import kept
from sidejudge.dashboards.rules.promql import fleet
from sidejudge.scoring.alerts.declaration import Declaration

from .board import Board, Panel, Query, panel, row, series
from .firing import version_change
from .words import DRILL, WHERE, per_minute, per_second, ratio_steps, site_variables

_PLACE = "service", "environment"
_NAMED = "{{service}} · {{environment}}"
_VERSIONED = f"{{{{version}}}} · {_NAMED} · {{{{rubric}}}}"
_NO_VERSION = "No verdict passed or failed on a trace that names a version (service.version)."
_NO_LIMIT = "No metric has a limit: see alerts.metrics."
_LIMITED = f"{{{{metric}}}} · {_NAMED}"
_SHOWN = {
    f.APPLICATION_TRACES: ("cpm", "No trace was evaluated."),
    f.APPLICATION_TOKENS: ("short", "No whole trace that was evaluated reports tokens."),
    f.APPLICATION_COST: (
        "currencyUSD", "No whole trace that was evaluated states a cost: sidejudge has no price list of its own."
    ),
}  # fmt: skip
"""Unit of each family, and why it may be empty."""
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
            row(
                "Quality, and what it takes",
                series(
                    "Pass ratio", f"Share of all traffic that passes, over the last {window}.", "percentunit",
                    Query(expr=f"{r.pass_ratio(window)}{{{WHERE}}}", legend=f"{_NAMED} · {{{{rubric}}}}"),
                    maximum=1, steps=ratio_steps(declared), dashed=True, links=(DRILL,),
                ),
                series(
                    "Latency", "Median and 95 % of the root spans of traces that were drawn at random.", "s",
                    *(
                        Query(expr=f"histogram_quantile({share}, {buckets})", legend=f"{name} · {_NAMED}")
                        for share, name in ((0.5, "median"), (0.95, "95 %"))
                    ),
                    empty="No whole trace with a root was drawn at random and evaluated.",
                ),
                _each("Cost of a trace", f.APPLICATION_COST),
                _each("Tokens of a trace", f.APPLICATION_TOKENS, "direction"),
            ),
            row(
                "Quality by version",
                series(
                    "Pass ratio by version", f"Of the versions that were judged last, over the last {r.DAY}.",
                    "percentunit", Query(expr=f"{v.PASS_RATIO}{{{WHERE}}}", legend=_VERSIONED),
                    maximum=1, steps=ratio_steps(declared), dashed=True, links=(DRILL,), empty=_NO_VERSION,
                ),
                panel(
                    "timeseries", "Each version against the rest",
                    f"The version's pass ratio less that of all other traffic of its service, over the "
                    f"last {r.DAY}, with bounds that hold with 95 % at one look. While all of it is below 0 the "
                    "version is worse. Bounds that hold at any look: sidejudge compare --by release.",
                    "percentunit",
                    *(
                        Query(expr=f"{record}{{{WHERE}}}", legend=f"{name}{_VERSIONED}")
                        for record, name in ((v.DIFFERENCE, ""), (v.LOWER, "at least · "), (v.UPPER, "at most · "))
                    ),
                    empty=f"{_NO_VERSION} Or all verdicts of the last {r.DAY} are of one version.",
                ),
            ),
            row(
                "Limits",
                panel(
                    "timeseries", "Metrics with limits",
                    "Percentiles and means under limits (alerts.metrics), in their own units, in the "
                    "process where they are highest, with bounds that hold with 95 % at any look.",
                    "short",
                    *(
                        Query(expr=fleet(family, where=WHERE, operation="max"), legend=f"{name}{_LIMITED}")
                        for family, name in (
                            (f.LIMITED_VALUE, ""), (f.LIMITED_LOWER, "at least · "),
                            (f.LIMITED_UPPER, "at most · "),
                        )
                    ),
                    empty=_NO_LIMIT,
                ),
                series(
                    "Kept share",
                    f"Share of all traffic within a limit of a percentile, over the last {window}; of a mean its "
                    "place on the scale, 1 being best.",
                    "percentunit",
                    Query(expr=f"{kept(window)}{{{WHERE}}}", legend=f"{_LIMITED} · {{{{level}}}}"),
                    maximum=1, empty=_NO_LIMIT,
                ),
            ),
            row(
                "Models and versions",
                _stacked("Traces by version", f"Traces a minute. {_ALL}", f.APPLICATION_TRACES, "version"),
                series(
                    "Share of each version",
                    "Of the traffic of its service. A version that takes over is marked on all boards.",
                    "percentunit",
                    Query(expr=_of_traces(f.APPLICATION_TRACES, "version"), legend=f"{_NAMED} · {{{{version}}}}"),
                    maximum=1, stacked=True,
                ),
                _stacked("Cost by model", f"US dollars a minute. {_ALL}", f.APPLICATION_COST, "model"),
                _stacked("Tokens by model", f"Tokens a minute. {_ALL}", f.APPLICATION_TOKENS, "model", "direction"),
            ),
        ),
    )  # fmt: skip


def _stacked(title: str, description: str, family: f.Family, *by: str) -> Panel:
    unit, empty = _SHOWN[family]
    query = Query(expr=per_minute(family, WHERE, *_PLACE, *by), legend=_legend(*by))
    return series(title, description, unit, query, stacked=True, empty=empty)


def _each(title: str, family: f.Family, *by: str) -> Panel:
    """A panel of the mean over all traces, including traces that report nothing."""
    unit, empty = _SHOWN[family]
    description = "On average over all traces, also those that report nothing of it."
    return series(title, description, unit, Query(expr=_of_traces(family, *by), legend=_legend(*by)), empty=empty)


def _of_traces(family: f.Family, *by: str) -> str:
    """The rate of a family, divided by the rate of its service's traces."""
    traces = per_second(f.APPLICATION_TRACES, WHERE, *_PLACE)
    return f"{per_second(family, WHERE, *_PLACE, *by)} / on ({', '.join(_PLACE)}) group_left () ({traces} > 0)"


def _legend(*by: str) -> str:
    return " · ".join((_NAMED, *(f"{{{{{label}}}}}" for label in by)))
