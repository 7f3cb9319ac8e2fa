"""``sidejudge plan``: the expected behaviour of statuses and alerts at some traffic."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import CALL, DATA, CommandError, ending
from .settings import FiniteRange, config_option, duration_of, format_option, loaded, show_json
from .terminal import table, waiting

if TYPE_CHECKING:
    from sidejudge.monitor.alerting.plan import Expected
    from sidejudge.monitor.config import Config
    from sidejudge.monitor.offline.backfill.estimate import TraceCost

_UNITS = {"s": 3600.0, "sec": 3600.0, "min": 60.0, "m": 60.0, "h": 1.0, "d": 1 / 24}
_SHARES = (0.01, 0.05, 0.2, 1.0)
_MOST = 1e9
_FEWEST = 0.5
"""Verdicts an hour that a row needs."""


@click.command()
@click.option("--rate", required=True, help="Traces of one service under one rubric: 20/h, 3/min, 500/d.")
@click.option("--sampling", type=FiniteRange(0, 1, min_open=True), help="Share that is judged; default: a table.")
@click.option("--good", type=FiniteRange(0, 1, min_open=True, max_open=True), help="Pass rate when all is well.")
@click.option("--bad", type=FiniteRange(0, 1, min_open=True, max_open=True), help="Pass rate to be noticed.")
@click.option("--within", default="1h", show_default=True, help="How soon half of such drops are to be noticed.")
@click.option("--series", type=click.IntRange(min=1), default=1, show_default=True, help="Services times rubrics.")
@click.option(
    "--trace-tokens", type=click.IntRange(1, 10_000_000), default=1_000, show_default=True,
    help="Tokens of a trace's contents, which the judge is paid by.",
)  # fmt: skip
@format_option
@config_option
def plan(  # noqa: PLR0917  # click passes options by name
    rate: str, sampling: float | None, good: float | None, bad: float | None, within: str, series: int,
    trace_tokens: int, form: str, config: Path | None,
) -> int:  # fmt: skip
    """Show what to expect at this traffic: false alarms, minutes until a drop is noticed, time without an answer.

    With a judge: its cost, that of a cascade, and how often a cascade agrees with its strongest judge in simulations.

    Simulated with the alerts of --config and independent verdicts; good and bad default to those of the early warning.
    Sessions whose turns fail together count as one trace each. Exit code 1: no sampling rate is enough.
    """
    from sidejudge.monitor.alerting.build import declaration
    from sidejudge.monitor.alerting.plan import PlannedTraffic, expected, proposed_rate

    per_hour = _per_hour(rate)
    given = loaded(config).config
    declared = declaration(given)
    default_good, default_bad = declared.good_and_bad("")
    good, bad = default_good if good is None else good, default_bad if bad is None else bad
    if bad >= good:
        raise CommandError(f"--bad ({bad:g}) must be less than --good ({good:g})", "name the worse pass rate", CALL)
    within_h = duration_of("--within", within, "30m").seconds / 3600
    shares = (sampling,) if sampling is not None else tuple(s for s in _SHARES if per_hour * s >= _FEWEST) or (1.0,)
    traffic = PlannedTraffic(per_hour=per_hour, good=good, bad=bad, series=series)
    with waiting("reckoning"):
        rows = [(share, expected(declared, replace(traffic, per_hour=per_hour * share))) for share in shares]
        enough = proposed_rate(declared, traffic, within_h=within_h)
        costs = costs_of_judging(given, trace_tokens)
    share = None if enough is None else enough / per_hour
    if form == "json":
        show_json({
            "mode": declared.policy.mode, "good": good, "bad": bad, "series": series,
            "rows": [{"sampling": each, **_record(found)} for each, found in rows],
            "proposed": None if share is None else {"sampling": {"rate": share}},
            "judging": [asdict(each) for each in costs],
        })  # fmt: skip
    else:
        _show(
            rows, share, f"mode {declared.policy.mode}: {good:g} falls to {bad:g}, {per_hour:g} traces an hour", within
        )
        _show_costs(costs, per_hour, sampling or share or 1.0, trace_tokens)
    return DATA if share is None else 0


def costs_of_judging(config: Config, tokens: int) -> list[TraceCost]:
    """The cost of judging one trace by each routed rubric; empty without a judge."""
    if config.evaluators.judge is None:
        return []
    import asyncio

    from sidejudge.integrations.provider.errors import ProviderError
    from sidejudge.monitor.config.rubrics import configured
    from sidejudge.monitor.offline.backfill.estimate import cost_of_trace
    from sidejudge.monitor.offline.score.request import run_backends

    rubrics = configured(config)
    named = dict.fromkeys([*(name for route in config.routes for name in route.rubrics), *config.default_rubrics])
    backends = run_backends(config, forgetful=True)

    async def found() -> list[TraceCost]:
        try:
            return await cost_of_trace(config, [rubrics[name] for name in named if name in rubrics], backends, tokens)
        finally:
            await backends.close()

    with ending(ProviderError, naming="evaluators.judge: ", remedy="set price, or install the extra 'judge'"):
        return asyncio.run(found())


def _show_costs(costs: list[TraceCost], per_hour: float, share: float, tokens: int) -> None:
    if not costs:
        return
    a_day = per_hour * share * 24
    click.echo(f"\njudging a trace of {tokens:,} tokens, and {a_day:,.0f} of them a day (USD)")
    click.echo(table(
        ("rubric", "judges", "questions", "first judge", "strongest", "cascade", "a day", "agrees with the strongest"),
        [
            (
                each.rubric, " > ".join(each.judges), str(each.questions), _usd(each.usd), _usd(each.strong_usd),
                "-" if each.cascade_usd is None else "–".join(map(_usd, each.cascade_usd)),
                "–".join(_usd(usd * a_day) for usd in each.cascade_usd) if each.cascade_usd is not None
                else _usd(None if each.usd is None else each.usd * a_day),
                "-" if each.agrees is None else "–".join(f"{one:.0%}" for one in each.agrees),
            )
            for each in costs
        ],
    ))  # fmt: skip
    if any(each.cascade_usd is not None for each in costs):
        click.echo(
            "ranges: a small judge with moderate to large errors, simulated; a running monitor measures yours on what "
            "is drawn (page, 'sidejudge status')"
        )


def _usd(usd: float | None) -> str:
    return "not known" if usd is None else f"{usd:.6f}" if usd < 0.01 else f"{usd:,.2f}"


def _per_hour(text: str) -> float:
    number, _, unit = text.partition("/")
    try:
        found = float(number) * _UNITS[unit.strip() or "h"]
    except (KeyError, ValueError):
        found = math.nan
    if not 0 < found < _MOST:
        raise CommandError(f"--rate: {text!r} is no rate", "for example --rate 20/h, --rate 3/min", CALL)
    return found


def _record(found: Expected) -> dict[str, object]:
    return {
        "verdicts_per_hour": found.per_hour, "false_alarms_per_month": found.false_alarms,
        "median_minutes": _finite(found.median_h * 60), "ninth_tenth_minutes": _finite(found.late_h * 60),
        "critical_median_minutes": _finite(found.critical_median_h * 60),
        "critical_ninth_tenth_minutes": _finite(found.critical_late_h * 60),
        "insufficient_share": found.insufficient, "first_hours": found.first_h,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _show(rows: list[tuple[float, Expected]], share: float | None, what: str, within: str) -> None:
    head = (
        "sampling", "verdicts/h", "false alarms a month", "noticed, half", "9 of 10", "critical, half", "9 of 10",
        "insufficient data", "first",
    )  # fmt: skip
    click.echo(f"{what}\n")
    click.echo(table(head, [
        (
            f"{each:g}", f"{found.per_hour:g}", f"{found.false_alarms:.2g}", _hours(found.median_h),
            _hours(found.late_h), _hours(found.critical_median_h), _hours(found.critical_late_h),
            f"{found.insufficient:.0%}", _hours(found.first_h),
        )
        for each, found in rows
    ]))  # fmt: skip
    if share is None:
        click.echo(f"\nno sampling rate notices half of such drops within {within}: allow more time, a larger drop, or")
        click.echo("more false alarms (alerts.false_alarms_per_month)")
    else:
        click.echo(
            f"\nproposed, so that half of such drops are noticed within {within}:\nsampling: {{rate: {share:g}}}"
        )


def _hours(hours: float) -> str:
    if not math.isfinite(hours):
        return "never"
    return f"{hours * 60:.0f} min" if hours < 10 else f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} days"
