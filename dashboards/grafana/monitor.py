"""Monitor: the monitor's own state: arriving traces and their ends, queues, and the judge's cost."""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f

from .board import GREEN, RED, YELLOW, Board, DashboardVariable, Panel, Query, Steps, row, series, stat, table
from .words import SITE, per_minute, per_second, targets

_JOB = f'{SITE},instance=~"$instance"'
_NO_JUDGE = "No judge is configured (evaluators.judge), or it was not asked."
_INFO = f"{f.BUILD_INFO.name}{{{_JOB}}}"
_GREEN: Steps = ((None, GREEN),)


def monitor() -> Board:
    """The board of the monitor."""
    instances = f"label_values({f.BUILD_INFO.name}{{{SITE}}}, instance)"
    return Board(
        uid="sidejudge-monitor",
        title="sidejudge · the monitor itself",
        description="What arrives, where it ends, what waits, and what judging costs.",
        variables=(*targets(), DashboardVariable(name="instance", label="Instance", query=instances)),
        rows=(
            row("Traces", *_traces()),
            row("Keeping up", *_keeping_up()),
            row("The judge", *_judge()),
            row("What runs", *_what_runs()),
        ),
    )


def _traces() -> tuple[Panel, ...]:
    return (
        stat("Monitors", "Processes that are scraped.", Query(expr=f"count({_INFO})")),
        stat(
            "Traces open", "Traces that arrived and have not ended.",
            Query(expr=f"sum({f.TRACES_OPEN.name}{{{_JOB}}})"),
        ),
        stat("Waiting", "Items in all queues.", Query(expr=f"sum({f.QUEUE_ITEMS.name}{{{_JOB}}})")),
        stat(
            "Store", "Size of the largest working store.", Query(expr=f"max({f.SPOOL_BYTES.name}{{{_JOB}}})"),
            unit="bytes",
        ),
        _lines(
            "Traces seen and drawn", "Traces a minute that arrived, and that sampling chose.", "cpm",
            (per_minute(f.TRACES_SEEN, _JOB), "seen"),
            (per_minute(f.TRACES_KEPT, _JOB, "selection"), "drawn, {{selection}}"),
        ),
        _lines(
            "How traces end", "Outcomes: each trace ends once, with one reason.", "cpm",
            (f"{per_minute(f.TRACES, _JOB, 'reason')} > 0", "{{reason}}"),
            stacked=True,
        ),
        _lines(
            "Spans", "Spans a second that arrived, were refused, or were not used.", "cps",
            (per_second(f.SPANS_RECEIVED, _JOB), "received"),
            (per_second(f.SPANS_REJECTED, _JOB, "reason"), "rejected, {{reason}}"),
            (per_second(f.SPANS_IGNORED, _JOB, "reason"), "ignored, {{reason}}"),
        ),
        _lines(
            "Requests refused", "OTLP requests a minute that were answered with an error, by status.", "cpm",
            (per_minute(f.REQUESTS_REFUSED, _JOB, "code"), "{{code}}"),
        ),
    )  # fmt: skip


def _keeping_up() -> tuple[Panel, ...]:
    lags = per_second(f.EVALUATION_LAG, _JOB, "le", part="_bucket")
    return (
        _lines(
            "Evaluation lag", "From when a trace's last span came to its verdicts.", "s",
            *((f"histogram_quantile({share}, {lags})", f"{share:.0%}") for share in (0.5, 0.95)),
        ),
        _lines(
            "Queues", "Items that wait, by queue.", "short",
            (f"sum by (queue) ({f.QUEUE_ITEMS.name}{{{_JOB}}})", "{{queue}}"),
        ),
        _lines(
            "Exports", "Verdicts a minute that were handed over, and that were not accepted.", "cpm",
            (per_minute(f.EXPORTS, _JOB, "destination"), "{{destination}}"),
            (per_minute(f.EXPORTS_FAILED, _JOB, "destination"), "{{destination}}, not accepted"),
        ),
        _lines(
            "Alerts in process", "Alerts of the processes themselves, by condition and stage.", "short",
            (f"sum by (alert, stage) ({f.ALERTS.name}{{{_JOB}}}) > 0", "{{alert}}, {{stage}}"),
        ),
    )  # fmt: skip


def _judge() -> tuple[Panel, ...]:
    durations = per_second(f.JUDGE_DURATION, _JOB, "le", "model", part="_bucket")
    spent = f"{f.JUDGE_BUDGET_SPENT.name}{{{_JOB}}} / ({f.JUDGE_BUDGET_LIMIT.name}{{{_JOB}}} > 0)"
    hits, misses = per_second(f.JUDGE_CACHE_HITS, _JOB), per_second(f.JUDGE_CACHE_MISSES, _JOB)
    failed = per_minute(f.JUDGE_REQUESTS_FAILED, _JOB, "model", "reason")
    return (
        _lines(
            "Requests", "Requests a minute to judges, and those that brought no answer.", "cpm",
            (per_minute(f.JUDGE_REQUESTS, _JOB, "model"), "{{model}}"), (f"{failed} > 0", "{{model}}, {{reason}}"),
            empty=_NO_JUDGE,
        ),
        _lines(
            "Duration", "Time that requests take, 95th percentile.", "s",
            (f"histogram_quantile(0.95, {durations})", "{{model}}"), empty=_NO_JUDGE,
        ),
        _lines(
            "Cost", "US dollars an hour, as far as prices are known.", "currencyUSD",
            (f"3600 * {per_second(f.JUDGE_COST, _JOB, 'model')}", "{{model}}"), empty=_NO_JUDGE,
        ),
        _lines(
            "Budget", "Share of the hour's and the day's budget that is spent, by the process that spent most.",
            "percentunit", (f"max by (period) ({spent})", "{{period}}"), empty=_NO_JUDGE,
            steps=((None, GREEN), (0.9, YELLOW), (1, RED)),
        ),
        _lines(
            "Tokens", "Tokens a minute.", "cpm", (per_minute(f.JUDGE_TOKENS, _JOB, "direction"), "{{direction}}"),
            empty=_NO_JUDGE,
        ),
        _lines(
            "Cache", "Share of the questions that the cache answered.", "percentunit",
            (f"{hits} / ({hits} + {misses} > 0)", "hits"), empty=_NO_JUDGE,
        ),
        _lines(
            "Doubtful answers", "Answers a minute that contradict what is decidable, or on which a panel differs.",
            "cpm", (per_minute(f.JUDGE_FLAGS, _JOB, "flag"), "{{flag}}"), empty=_NO_JUDGE,
        ),
        _lines(
            "Circuit breakers", "1 while no request is sent to the judge.", "short",
            (f'max by (model) ({f.JUDGE_BREAKER.name}{{{_JOB},state="open"}})', "{{model}}"), empty=_NO_JUDGE,
        ),
    )  # fmt: skip


def _what_runs() -> tuple[Panel, ...]:
    return (
        table(
            "Versions", "What is running where.", Query(expr=_INFO), width=12,
            columns={"instance": "Instance", "version": "Version", "revision": "Revision", "python": "Python"},
        ),
        table(
            "Configurations",
            "Which configuration is in force where: one fingerprint, unless a rollout is under way.",
            Query(expr=f"{f.CONFIG_INFO.name}{{{_JOB}}}"), width=12,
            columns={"instance": "Instance", "fingerprint": "Configuration"},
        ),
    )  # fmt: skip


def _lines(
    title: str, description: str, unit: str, *named: tuple[str, str], stacked: bool = False, steps: Steps = _GREEN,
    empty: str = "",
) -> Panel:  # fmt: skip
    """Queries with the names of their series; dashed where steps matter."""
    queries = (Query(expr=expr, legend=legend) for expr, legend in named)
    return series(title, description, unit, *queries, stacked=stacked, steps=steps, dashed=len(steps) > 1, empty=empty)
