"""Outline of a configuration: what a monitor will do with it, and what it leaves out, in a few lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.units import Duration, size_text
from sidejudge.monitor.config.warnings import is_loopback
from sidejudge.scoring.metrics.trajectory_selection import Budget

_NAMES = 12
"""Names of scores that are shown."""
_ROUTES = 8
"""Routes that are shown one by one."""
TYPICAL_TOKENS = 1_000
"""Tokens of a trace that its cost is shown of, as ``plan`` has them unless it is asked for others."""
_PRICE = ": set evaluators.judge.price"
_ANSWER_TOKENS = 1_000
"""Tokens of a judge's answer about a part of a long run, about."""


def outline(config: Config, memory_bytes: int) -> Iterator[tuple[str, str]]:
    """(what, how) of each thing that a monitor does with this configuration, in the order of the data."""
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
    held = f", verdicts for {config.store.retention}{contents if keep is not None else ''}"
    yield "needs", f"at most {memory_bytes / 2**20:,.0f} MiB of memory; its state is in {config.store.path}{held}"


def left_out(config: Config) -> Iterator[tuple[str, str]]:
    """(what does not happen, what would make it happen) of things that most people want in the end."""
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
    word = "judges"
    for route in config.routes[:_ROUTES]:
        scenario = f" (scenario {route.scenario})" if route.scenario else ""
        yield word, f"{route.match.describe()}: {', '.join(route.rubrics)}{scenario}"
        word = ""
    if len(config.routes) > _ROUTES:
        yield word, f"and {len(config.routes) - _ROUTES} more routes"
    rest = ", ".join(config.default_rubrics) or "not at all"
    yield word, f"{'everything else' if config.routes else 'every trace'}: {rest}"
    if config.sessions is not None:
        named = dict.fromkeys(name for route in config.sessions.routes for name in route.rubrics)
        yield "", f"conversations, {Duration(config.sessions.idle.ns)} after their last trace: {', '.join(named)}"


def _long_runs(config: Config) -> Iterator[tuple[str, str]]:
    """What a run may cost by the rubric trajectory, where a route leads to it."""
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


def judging_costs(config: Config) -> Iterator[tuple[str, str]]:
    """(what, how) of what judging one trace costs, of each rubric that a route leads to, as ``plan`` has it."""
    from .plan import costs_of_judging

    word = "costs"
    for each in costs_of_judging(config, TYPICAL_TOKENS):
        if each.usd is None:
            cost = f"the price of its judge is not known{_PRICE}"
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
