"""Runs: run_health's findings on runs without a reference: how they end, loops, failing tools."""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f

from .board import Board, Panel, Query, row, series
from .words import SERVICE, per_minute, per_second, site_variables

_ENDINGS = "completed|answered|answer_intact|not_refused"
_WAY = "tool_success|step_success|error_variety|no_repetition|calls_valid|tools_tried|results_used"
_EFFORT = "within_usual|within_budget"


def runs() -> Board:
    """The board of runs."""
    *site, service, _, langfuse = site_variables()
    return Board(
        uid="sidejudge-runs",
        title="sidejudge · what runs do",
        description="Runs of agents without any reference: how they end, where they go wrong, which tools fail.",
        variables=(*site, service, langfuse),
        rows=(
            row(
                "Runs",
                _share("Runs that end badly", _ENDINGS, "An error at the top, no answer, one that is cut off or an "
                       "error message, a refusal: share of the runs of each service."),
                _share("Runs that go wrong on the way", _WAY, "Tools and steps that fail, errors that come again, "
                       "loops, calls that do not fit the offered tools: share of the runs."),
                _share("Runs that take too much", _EFFORT, "Far more cost, tokens, steps or time than is usual for "
                       "the service, or more than its budget: share of the runs."),
                _share("Runs with gaps in their telemetry", "telemetry", "Dropped attributes, missing parents, no "
                       "contents, no token counts, clocks that differ: about the instrumentation alone."),
                series(
                    "Runs a minute", "Runs a minute that were looked at, drawn at random.", "cpm",
                    Query(expr=per_minute(f.RUNS, SERVICE, "service"), legend="{{service}}"),
                    stacked=True, width=24,
                ),
            ),
            row(
                "Tools",
                series(
                    "Share of calls that fail", "By status and by what the tool returned.", "percentunit",
                    Query(
                        expr=f"{_rate(f.TOOL_ERRORS, 'tool')} / ({_rate(f.TOOL_CALLS, 'tool')} > 0)",
                        legend="{{service}} · {{tool}}",
                    ),
                ),
                series(
                    "Calls", "Tool calls a minute.", "cpm",
                    Query(
                        expr=per_minute(f.TOOL_CALLS, SERVICE, "service", "tool"), legend="{{service}} · {{tool}}"
                    ),
                    stacked=True,
                ),
            ),
        ),
    )  # fmt: skip


def _share(title: str, metrics: str, description: str) -> Panel:
    found = _rate(f.RUN_SIGNS, "metric", where=f',metric=~"{metrics}"')
    share = f"{found} / on (service) group_left () ({_rate(f.RUNS)} > 0)"
    return series(title, description, "percentunit", Query(expr=share, legend="{{service}} · {{metric}}"))


def _rate(family: f.Family, *by: str, where: str = "") -> str:
    return per_second(family, SERVICE + where, "service", *by)
