"""``sidejudge check``: is this configuration valid, and what will a monitor do with it?

``sidejudge doctor``: are this machine and this installation fit for it?
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from .errors import DATA, CommandError, warn
from .settings import config_option, format_option, runnable, show_json
from .terminal import paragraph, table, visible, waiting

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config, Loaded

    from .doctor_checks import CheckResult

Row: TypeAlias = tuple[str, str, str, str]
PROBED = ("", "what", "found", "remedy")
PROBED_KEYS = ("grade", "what", "found", "remedy")
_REMEMBERED = 500
"""Most traces of the store that routes are tried on."""
_GIVEN = 12
"""Values that are shown without --all."""
_NAMES = 12
"""Names of scores that are shown."""
_ROUTES = 8
"""Routes that are shown one by one."""
TYPICAL_TOKENS = 1_000
"""Tokens of a trace for the shown cost, the default of ``plan``."""
_ANSWER_TOKENS = 1_000
"""Tokens of a judge's answer about a part of a long run, about."""


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@config_option
@click.option("--all", "--verbose", "everything", is_flag=True, help="Every value in force, alerts and memory.")
@click.option("--probe", is_flag=True, help="Ask what it names, too: judge, Langfuse, datasets, queues, prompts.")
@format_option
def check(file: Path | None, config: Path | None, form: str, *, everything: bool, probe: bool) -> int:
    """Validate FILE (or --config FILE) and the environment, and show what a monitor will do with it.

    Exit 2 with every mistake at once. Valid settings that will disappoint are warnings. With --all it shows every value
    in force with its source, what is watched and what raises an alert, and the most memory, part by part; JSON always
    holds all of it. With --probe it contacts every external service that FILE names, as 'doctor' does; the exit code is
    1 unless all answer. Without FILE the embedded defaults and the environment are checked.
    """
    from sidejudge.monitor.runtime.memory_bound import memory_bound

    resolved = runnable(file or config)
    if form == "json":
        return _show_json(resolved, probe=probe)
    if everything:
        _show_all(resolved)
    else:
        _show_outline(resolved, sum(part.max_bytes for part in memory_bound(resolved.config)))
    for cause, remedy in _warnings(resolved):
        warn(cause, remedy)
    more = "" if everything else "; --all shows every value"
    click.echo(f"\nconfiguration ok, fingerprint {resolved.config.fingerprint[:12]}{more}")
    if not probe:
        return 0
    rows = _probed(resolved)
    click.echo("\n" + table(PROBED, rows) if rows else "\nnothing outside is named")
    return _exit_code(rows)


def _probed(resolved: Loaded) -> list[Row]:
    from .doctor_checks import reached

    with waiting("asking"):
        return _rows(reached(resolved))


def _rows(findings: Iterable[CheckResult]) -> list[Row]:
    return [(each.grade, each.subject, each.found, each.remedy) for each in findings]


def _records(rows: Iterable[Row]) -> list[dict[str, str]]:
    return [dict(zip(PROBED_KEYS, row, strict=True)) for row in rows]


def _exit_code(rows: Iterable[Row]) -> int:
    return DATA if any(grade == "fail" for grade, *_ in rows) else 0


def _show_outline(resolved: Loaded, memory_bytes: int) -> None:
    from sidejudge.monitor.config.summary import summary

    for what, how in (*_outline(resolved.config, memory_bytes), *_costs(resolved.config)):
        click.echo(paragraph(visible(f"{what:<10} {how}"), 11))
    given = [row for row in summary(resolved) if row[2] != "default"]
    if given:
        click.echo("\n" + table(("set", "value", "from"), given[:_GIVEN]))
        if len(given) > _GIVEN:
            click.echo(f"and {len(given) - _GIVEN} more")
    absent = list(_left_out(resolved.config))
    if absent:
        click.echo("\n" + table(("what does not happen", "what would do it"), absent))


def _judging(config: Config) -> list[dict[str, object]]:
    from dataclasses import asdict

    from .plan import costs_of_judging

    try:
        return [asdict(each) for each in costs_of_judging(config, TYPICAL_TOKENS)]
    except CommandError:
        return []


def _show_all(resolved: Loaded) -> None:
    from sidejudge.monitor.alerting.build import WATCHED, watched
    from sidejudge.monitor.config.summary import summary
    from sidejudge.monitor.deliver.langfuse.probe import allowed_rates
    from sidejudge.monitor.runtime.memory_bound import memory_bound

    click.echo(table(("key", "value", "from"), summary(resolved)))
    click.echo("\nwhat is watched, and when it changes status:")
    click.echo(table(WATCHED, watched(resolved.config)))
    parts = list(memory_bound(resolved.config))
    rows = [(part.name, f"{part.max_bytes / 2**20:,.0f} MiB", part.keys) for part in parts]
    total = sum(part.max_bytes for part in parts) / 2**20
    click.echo("\nmemory, at most:")
    click.echo(table(("for", "at most", "decided by"), [*rows, ("in all", f"{total:,.0f} MiB", "")]))
    if (rates := allowed_rates(resolved.config)) is not None:
        click.echo(f"\nscores to Langfuse, at most:\n{rates}")


def _warnings(resolved: Loaded) -> Iterator[tuple[str, str]]:
    """(cause, remedy) of valid settings that will disappoint.

    Among it are certificates that cannot be used, without which no monitor starts; on the machine that runs it they may
    be there. So are routes that match none of the traces that the store remembers; none where there is no store yet.
    """
    from sidejudge.integrations.store.archive import read_traces
    from sidejudge.integrations.store.errors import StoreUnavailable
    from sidejudge.monitor.alerting.plan import thin_traffic
    from sidejudge.monitor.config.warnings import cautions
    from sidejudge.monitor.route.silent_routes import REMEDY, silent_in

    yield from cautions(resolved.config)
    yield from thin_traffic(resolved.config)
    yield from _unusable_certificates(resolved.config)
    try:
        traces = read_traces(resolved.config.store.path, reason=None, service=None, limit=_REMEMBERED)
    except StoreUnavailable:
        return
    for line in silent_in(resolved.config.routes, traces):
        yield line, REMEDY


def _unusable_certificates(config: Config) -> Iterator[tuple[str, str]]:
    if config.sources.otlp.tls or config.api.tls or (config.forward is not None and config.forward.ca):
        from .doctor_checks import certificates

        yield from ((each.found, each.remedy) for each in certificates(config) if each.grade != "ok")


def _show_json(resolved: Loaded, *, probe: bool) -> int:
    from sidejudge.monitor.alerting.build import WATCHED, watched
    from sidejudge.monitor.config.summary import summary
    from sidejudge.monitor.runtime.memory_bound import memory_bound

    rows = _probed(resolved) if probe else []
    show_json({
        "values": [dict(zip(("key", "value", "from"), row, strict=True)) for row in summary(resolved)],
        "watched": [dict(zip(WATCHED, row, strict=True)) for row in watched(resolved.config)],
        "memory": [
            {"for": part.name, "max_bytes": part.max_bytes, "keys": part.keys}
            for part in memory_bound(resolved.config)
        ],
        "warnings": [{"cause": cause, "remedy": remedy} for cause, remedy in _warnings(resolved)],
        "judging": _judging(resolved.config),
        "fingerprint": resolved.config.fingerprint,
        **({"probed": _records(rows)} if probe else {}),
    })  # fmt: skip
    return _exit_code(rows)


def _outline(config: Config, memory_bytes: int) -> Iterator[tuple[str, str]]:
    """(what, how) of each thing that a monitor does with this configuration, in the order of the data."""
    from sidejudge.monitor.config.units import size_text
    from sidejudge.monitor.config.warnings import is_loopback

    otlp = config.sources.otlp
    also = (f", gRPC {otlp.grpc}" if otlp.grpc else "") + (", encrypted" if otlp.tls else "")
    yield "takes in", f"OTLP on {otlp.http}{also}"
    if config.sources.langfuse is not None:
        yield "", f"traces of Langfuse at {config.sources.langfuse.base_url}"
    if config.forward is not None:
        buffer = config.forward.buffer
        kept = f"; while that is away up to {size_text(buffer)} is kept" if buffer is not None else ""
        yield "passes on", f"{', '.join(config.forward.signals)} to {config.forward.url}{kept}"
    yield "draws", _sampling(config)
    yield from _routes(config)
    yield "decides", _evaluators(config)
    yield from _long_runs(config)
    thresholds = config.alerts.thresholds
    yield (
        "alerts",
        (
            f"a service is a warning below {thresholds.warning:g} and critical below {thresholds.critical:g} over "
            f"{config.alerts.window}, from {config.alerts.min_samples:g} verdicts on"
        ),
    )
    if config.alerts.notify:
        yield "", f"notices to {', '.join(entry.name or entry.kind for entry in config.alerts.notify)}"
    yield from _sinks(config)
    who = "" if is_loopback(config.api.listen.host) or config.api.auth is not None else ", open to whoever reaches it"
    yield "shows", f"http{'s' if config.api.tls else ''}://{config.api.listen}/{who}"
    keep = config.contents_kept_for
    contents = f", contents of failed traces for {keep}, {config.contents_max_bytes / 2**20:,.0f} MiB at most"
    held = f", verdicts for {config.kept_for}{contents if keep is not None else ''}"
    yield "needs", f"at most {memory_bytes / 2**20:,.0f} MiB of memory; its state is in {config.store.path}{held}"


def _left_out(config: Config) -> Iterator[tuple[str, str]]:
    """(what does not happen, what would make it happen) for things that most people want sooner or later."""
    if not config.routes:
        yield "every trace is judged alike", "routes: which rubric for which traces ('sidejudge init' proposes them)"
    if config.evaluators.judge is None:
        yield "no model judges answers", "evaluators.judge (docs: the first judge)"
    if not config.alerts.notify:
        yield "alerts reach nobody by themselves", "alerts.notify, or Prometheus rules ('sidejudge export rules')"
    sinks, archived = config.sinks, config.fleet is not None and config.fleet.archive is not None
    if not (sinks.langfuse or sinks.jsonl or sinks.parquet or sinks.plugins or archived):
        yield "verdicts stay in this monitor", "sinks.langfuse, sinks.jsonl or sinks.parquet"


def _sampling(config: Config) -> str:
    sampling = config.sampling
    rules = f"; {len(sampling.rules)} rules keep more" if sampling.rules else ""
    if sampling.rate is not None:
        return ("every trace" if sampling.rate == 1 else f"{sampling.rate:.4g} of the traces") + rules
    if sampling.rules or config.sessions is not None:
        return f"{sampling.fixed_rate:.4g} of the traces{rules}"
    return f"every trace up to {sampling.traces_per_hour:,} an hour, then a share"


def _routes(config: Config) -> Iterator[tuple[str, str]]:
    from sidejudge.monitor.config.match import MatchSection
    from sidejudge.monitor.config.units import Duration

    word = "judges"
    for route in config.routes[:_ROUTES]:
        scenario = f" (scenario {route.scenario})" if route.scenario else ""
        yield word, f"{route.match.describe()}: {', '.join(route.rubrics)}{scenario}"
        word = ""
    if len(config.routes) > _ROUTES:
        yield word, f"and {len(config.routes) - _ROUTES} more routes"
    if not any(route.match == MatchSection() for route in config.routes):
        rest = ", ".join(config.default_rubrics) or "not at all"
        yield word, f"{'everything else' if config.routes else 'every trace'}: {rest}"
    if config.sessions is not None:
        named = dict.fromkeys(name for route in config.sessions.routes for name in route.rubrics)
        yield "", f"conversations, {Duration(config.sessions.idle.ns)} after their last trace: {', '.join(named)}"


def _long_runs(config: Config) -> Iterator[tuple[str, str]]:
    """What a run may cost by the rubric trajectory, where a route leads to it."""
    from sidejudge.scoring.metrics.trajectory_selection import Budget

    judge = config.evaluators.judge
    named = {*config.default_rubrics, *(name for route in config.routes for name in route.rubrics)}
    if judge is None or "trajectory" not in named:
        return
    section = config.rubrics.get("trajectory")
    own = None if section is None else section.trajectory
    budget = Budget() if own is None else own.budget
    requests = -(-budget.most // budget.request)
    price = judge.price
    if price is None:
        cost = "what that costs is shown where evaluators.judge.price is set"
    else:
        answers = requests * _ANSWER_TOKENS * price.output_usd_per_million
        cost = f"${(budget.most * price.input_usd_per_million + answers) / 1e6:.2f} a run at most"
    most = f"{budget.most:,} in about {requests} requests"
    yield "", f"a long run takes {budget.share:.0%} of its tokens, at most {most}; {cost}"


def _evaluators(config: Config) -> str:
    judge = config.evaluators.judge
    by = ["words"] + (["embeddings"] if config.evaluators.embedding is not None else [])
    if judge is None:
        return f"by {' and '.join(by)}; no judge, so nothing is paid"
    limits = [
        f"${limit:g} {period}"
        for limit, period in ((judge.budget_usd_per_hour, "an hour"), (judge.budget_usd_per_day, "a day"))
        if limit is not None
    ]
    return f"by {', '.join(by)} and the judge {judge.model}, at most {' and '.join(limits) or 'any amount'}"


def _costs(config: Config) -> Iterator[tuple[str, str]]:
    """The cost of judging one trace, by rubric that a route leads to, as ``plan`` computes it.

    A judge that cannot be priced because its extra is not installed does not fail the check.
    """
    from .plan import costs_of_judging

    try:
        costs = costs_of_judging(config, TYPICAL_TOKENS)
    except CommandError as error:
        yield "costs", f"not known: {error.cause}"
        return
    word = "costs"
    for each in costs:
        if each.usd is None:
            cost = (
                "the price of its judge is not known: set evaluators.judge.price (others of a panel need a list price)"
            )
        elif each.cascade_usd is None or each.agrees is None:
            cost = f"${each.usd:.2g} a trace of {TYPICAL_TOKENS:,} tokens"
        else:
            (least, most), (low, high) = each.cascade_usd, each.agrees
            cost = (
                f"${least:.2g} to ${most:.2g} a trace of {TYPICAL_TOKENS:,} tokens, the strongest judge alone "
                f"${each.strong_usd:.2g}; agrees with it in {low:.0%} to {high:.0%} (simulated)"
            )
        yield word, f"{each.rubric}: {cost}"
        word = ""


def _sinks(config: Config) -> Iterator[tuple[str, str]]:
    from sidejudge.monitor.deliver.langfuse.probe import allowed_rates, written_names

    word = "writes"
    for text in (
        f"scores to Langfuse at {config.sinks.langfuse.base_url}" if config.sinks.langfuse else None,
        f"verdicts to {config.sinks.jsonl.path}" if config.sinks.jsonl else None,
        f"a history to {config.sinks.parquet.path.partition('?')[0]}" if config.sinks.parquet else None,
        f"own telemetry to {config.sinks.otel_events.endpoint}" if config.sinks.otel_events else None,
        f"metrics to {config.sinks.otel_metrics.endpoint}" if config.sinks.otel_metrics else None,
        f"verdicts by {', '.join(config.sinks.plugins)}" if config.sinks.plugins else None,
    ):
        if text:
            yield word, text
            word = ""
    if (rates := allowed_rates(config)) is not None:
        named = [name for names in written_names(config).values() for name in names]
        more = f" and {len(named) - _NAMES} more" if len(named) > _NAMES else ""
        yield "", f"of every verdict, as far as it has a value: {', '.join(named[:_NAMES])}{more}"
        yield "", f"to Langfuse {rates}"


@click.command()
@config_option
@click.option("--notify", is_flag=True, help="Send a test notice to everybody whom alerts.notify names.")
@format_option
def doctor(config: Path | None, form: str, *, notify: bool) -> int:
    """Examine the installation, the configuration, ports, store, disk and clock. Exit 1 when something fails."""
    from sidejudge.monitor.config import ConfigError, resolve

    from .doctor_checks import examine

    loaded: Loaded | None = None
    refused: ConfigError | None = None
    try:
        loaded = resolve(config, os.environ)
    except ConfigError as error:
        refused = error
    with waiting("examining"):
        rows = _rows(examine(loaded, refused, notify=notify))
    if form == "json":
        show_json(_records(rows))
    else:
        click.echo(table(PROBED, rows))
    return _exit_code(rows)
