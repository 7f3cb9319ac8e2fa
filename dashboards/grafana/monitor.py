"""Monitor: how the monitor itself does: what arrives, where it ends, what waits, and what the judge costs."""

from __future__ import annotations

from dataclasses import replace

import integrations.prometheus.families as f

from .board import GREEN, RED, YELLOW, Board, DashboardRow, DashboardVariable, Panel, Query
from .words import SITE, per_minute, per_second, targets

_JOB = f'{SITE},instance=~"$instance"'
_NO_JUDGE = "No judge is configured (evaluators.judge), or it was not asked."
_DURATIONS = per_second(f.JUDGE_DURATION, _JOB, "le", "model", part="_bucket")
_SPENT = f"{f.JUDGE_BUDGET_SPENT.name}{{{_JOB}}} / ({f.JUDGE_BUDGET_LIMIT.name}{{{_JOB}}} > 0)"
_HITS, _MISSES = per_second(f.JUDGE_CACHE_HITS, _JOB), per_second(f.JUDGE_CACHE_MISSES, _JOB)


def monitor() -> Board:
    """The board of the monitor."""
    info = f.BUILD_INFO.name
    return Board(
        uid="sidejudge-monitor",
        title="sidejudge · the monitor itself",
        description="What arrives, where it ends, what waits, and what judging costs.",
        variables=(
            *targets(),
            DashboardVariable(name="instance", label="Instance", query=f"label_values({info}{{{SITE}}}, instance)"),
        ),
        rows=(
            DashboardRow(
                title="Traces",
                panels=(
                    _stat("Monitors", "Processes that are scraped.", f"count({info}{{{_JOB}}})", "short"),
                    _stat(
                        "Traces open",
                        "Traces that arrived and have not ended.",
                        f"sum({f.TRACES_OPEN.name}{{{_JOB}}})",
                        "short",
                    ),
                    _stat("Waiting", "Items in all queues.", f"sum({f.QUEUE_ITEMS.name}{{{_JOB}}})", "short"),
                    _stat(
                        "Store", "Size of the largest working store.", f"max({f.SPOOL_BYTES.name}{{{_JOB}}})", "bytes"
                    ),
                    _series(
                        "Traces seen and drawn",
                        "Traces a minute that arrived, and that sampling chose.",
                        "cpm",
                        (per_minute(f.TRACES_SEEN, _JOB), "seen"),
                        (per_minute(f.TRACES_KEPT, _JOB, "selection"), "drawn, {{selection}}"),
                    ),
                    _series(
                        "How traces end",
                        "Outcomes: each trace ends once, with one reason.",
                        "cpm",
                        (f"{per_minute(f.TRACES, _JOB, 'reason')} > 0", "{{reason}}"),
                        stacked=True,
                    ),
                    _series(
                        "Spans",
                        "Spans a second that arrived, were refused, or were not used.",
                        "cps",
                        (per_second(f.SPANS_RECEIVED, _JOB), "received"),
                        (per_second(f.SPANS_REJECTED, _JOB, "reason"), "rejected, {{reason}}"),
                        (per_second(f.SPANS_IGNORED, _JOB, "reason"), "ignored, {{reason}}"),
                    ),
                    _series(
                        "Requests refused",
                        "OTLP requests a minute that were answered with an error, by status.",
                        "cpm",
                        (per_minute(f.REQUESTS_REFUSED, _JOB, "code"), "{{code}}"),
                    ),
                ),
            ),
            DashboardRow(
                title="Keeping up",
                panels=(
                    _series(
                        "Evaluation lag",
                        "From the end of a trace to its verdicts.",
                        "s",
                        *(
                            (
                                f"histogram_quantile({q}, {per_second(f.EVALUATION_LAG, _JOB, 'le', part='_bucket')})",
                                f"{q:.0%}",
                            )
                            for q in (0.5, 0.95)
                        ),
                    ),
                    _series(
                        "Queues",
                        "Items that wait, by queue.",
                        "short",
                        (f"sum by (queue) ({f.QUEUE_ITEMS.name}{{{_JOB}}})", "{{queue}}"),
                    ),
                    _series(
                        "Exports",
                        "Verdicts a minute that were handed over, and that were not accepted.",
                        "cpm",
                        (per_minute(f.EXPORTS, _JOB, "destination"), "{{destination}}"),
                        (per_minute(f.EXPORTS_FAILED, _JOB, "destination"), "{{destination}}, not accepted"),
                    ),
                    _series(
                        "Alerts in process",
                        "Alerts of the processes themselves, by condition and stage.",
                        "short",
                        (f"sum by (alert, stage) ({f.ALERTS.name}{{{_JOB}}}) > 0", "{{alert}}, {{stage}}"),
                    ),
                ),
            ),
            DashboardRow(
                title="The judge",
                panels=(
                    _of_judge(
                        "Requests",
                        "Requests a minute to judges, and those that brought no answer.",
                        "cpm",
                        (per_minute(f.JUDGE_REQUESTS, _JOB, "model"), "{{model}}"),
                        (
                            f"{per_minute(f.JUDGE_REQUESTS_FAILED, _JOB, 'model', 'reason')} > 0",
                            "{{model}}, {{reason}}",
                        ),
                    ),
                    _of_judge(
                        "Duration",
                        "Time that requests take, 95th percentile.",
                        "s",
                        (
                            f"histogram_quantile(0.95, {_DURATIONS})",
                            "{{model}}",
                        ),
                    ),
                    _of_judge(
                        "Cost",
                        "US dollars an hour, as far as prices are known.",
                        "currencyUSD",
                        (f"3600 * {per_second(f.JUDGE_COST, _JOB, 'model')}", "{{model}}"),
                    ),
                    _of_judge(
                        "Budget",
                        "Share of the hour's and the day's budget that is spent, by the process that spent most.",
                        "percentunit",
                        (
                            f"max by (period) ({_SPENT})",
                            "{{period}}",
                        ),
                        steps=((None, GREEN), (0.9, YELLOW), (1, RED)),
                    ),
                    _of_judge(
                        "Tokens",
                        "Tokens a minute.",
                        "cpm",
                        (per_minute(f.JUDGE_TOKENS, _JOB, "direction"), "{{direction}}"),
                    ),
                    _of_judge(
                        "Cache",
                        "Share of the questions that the cache answered.",
                        "percentunit",
                        (
                            f"{_HITS} / ({_HITS} + {_MISSES} > 0)",
                            "hits",
                        ),
                    ),
                    _of_judge(
                        "Doubtful answers",
                        "Answers a minute that contradict what is decidable, or on which a panel differs.",
                        "cpm",
                        (per_minute(f.JUDGE_FLAGS, _JOB, "flag"), "{{flag}}"),
                    ),
                    _of_judge(
                        "Circuit breakers",
                        "1 while no request is sent to the judge.",
                        "short",
                        (f'max by (model) ({f.JUDGE_BREAKER.name}{{{_JOB},state="open"}})', "{{model}}"),
                    ),
                ),
            ),
            DashboardRow(
                title="What runs",
                panels=(
                    Panel(
                        title="Versions",
                        kind="table",
                        unit="short",
                        height=6,
                        description="What is running where.",
                        queries=(Query(expr=f"{info}{{{_JOB}}}"),),
                        columns={
                            "instance": "Instance",
                            "version": "Version",
                            "revision": "Revision",
                            "python": "Python",
                        },
                    ),
                    Panel(
                        title="Configurations",
                        kind="table",
                        unit="short",
                        height=6,
                        description="Which configuration is in force where: one fingerprint, unless a rollout is "
                        "under way.",
                        queries=(Query(expr=f"{f.CONFIG_INFO.name}{{{_JOB}}}"),),
                        columns={"instance": "Instance", "fingerprint": "Configuration"},
                    ),
                ),
            ),
        ),
    )


def _of_judge(
    title: str,
    description: str,
    unit: str,
    *queries: tuple[str, str],
    steps: tuple[tuple[float | None, str], ...] = ((None, GREEN),),
) -> Panel:
    return replace(_series(title, description, unit, *queries, steps=steps), empty=_NO_JUDGE)


def _stat(title: str, description: str, expr: str, unit: str) -> Panel:
    return Panel(
        title=title, description=description, kind="stat", unit=unit, width=6, height=4, queries=(Query(expr=expr),)
    )


def _series(
    title: str,
    description: str,
    unit: str,
    *queries: tuple[str, str],
    stacked: bool = False,
    steps: tuple[tuple[float | None, str], ...] = ((None, GREEN),),
) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind="timeseries",
        unit=unit,
        minimum=0,
        stacked=stacked,
        steps=steps,
        dashed=len(steps) > 1,
        queries=tuple(Query(expr=expr, legend=legend) for expr, legend in queries),
    )
