"""``sidejudge explain``: why a trace has its verdicts, or a metric's card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .ask import TRACE_ID, ask, traces_table, url_option
from .errors import DATA, CommandError, near, reading_store
from .settings import config_option, format_option, loaded, own_name, show_json
from .terminal import paragraph, table, visible

if TYPE_CHECKING:
    from sidejudge.monitor.config.rubrics import Card
    from sidejudge.scoring.runs.final import RunScore
    from sidejudge.scoring.verdict.documents import TraceDocument
    from sidejudge.scoring.verdict.rubric import Rubric


@click.command()
@click.argument("what", metavar="[TRACE_ID|METRIC|RUBRIC]", required=False, callback=own_name)
@click.option("--reason", help="Without an argument: list only traces that ended so.")
@click.option("--service", help="Without an argument: list only traces of this service.")
@click.option("-n", "latest", type=click.IntRange(1, 1000), default=20, show_default=True, help="Traces to list.")
@click.option("--judge", is_flag=True, help="Show the calls to judges about TRACE_ID: prompt, raw answer, parse, cost.")
@click.option("--metric", help="With --judge: only calls that asked about this metric.")
@click.option("--store", type=click.Path(path_type=Path), help="Read this store file instead of asking a monitor.")
@url_option
@config_option
@format_option
def explain(  # noqa: PLR0917  # click passes options by name
    what: str | None, reason: str | None, service: str | None, latest: int, judge: bool, metric: str | None,  # noqa: FBT001  # click passes it
    store: Path | None, url: str, config: Path | None, form: str,
) -> int:  # fmt: skip
    """Show what happened to a trace and why (TRACE_ID, 32 hex digits), or a metric's card or a rubric by name.

    Without an argument the traces that ended last are listed, each with how it ended and why. A trace is fetched from
    the running monitor at --url, or read from the file --store. For an unknown trace, the sampling decision under
    --config is shown; the exit code is 1.
    """
    if judge and (what is None or not TRACE_ID.fullmatch(what)):
        raise CommandError("--judge shows the calls about one trace", "name a TRACE_ID, 32 hex digits")
    if judge and what is not None:
        return _judge_calls(what.lower(), metric, store, url, form)
    if what is None:
        return _latest(reason, service, latest, store, url, form)
    if TRACE_ID.fullmatch(what):
        return _trace(what.lower(), store, url, config, form)
    from sidejudge.monitor.config.rubrics import cards, configured, run_score_json
    from sidejudge.scoring.runs.final import FINAL, RUN_SCORES

    rubrics = configured(loaded(config).config)
    found = [_card(card) for card in cards(rubrics) if card.id == what]
    found += [_rubric(rubrics[what])] if what in rubrics else []
    found += [_run_score(score) for score in RUN_SCORES if what in (score.id, FINAL)]
    if not found:
        names = [*(card.id for card in cards(rubrics)), *rubrics, FINAL, *(score.id for score in RUN_SCORES)]
        cause = f"{what!r} is neither a trace id (32 hex digits) nor a metric or a rubric"
        raise CommandError(cause, near(what, names, "'sidejudge metrics' lists every metric"))
    if form == "json":
        named = [card for card in cards(rubrics) if what in (card.id, card.rubric.id)]
        runs = [score for score in RUN_SCORES if what in (score.id, FINAL)]
        show_json([*(card.to_json() for card in named), *map(run_score_json, runs)])
        return 0
    click.echo("\n\n".join("\n".join(lines) for lines in found))
    return 0


def _latest(  # noqa: PLR0917  # one for each option
    reason: str | None, service: str | None, latest: int, store: Path | None, url: str, form: str
) -> int:
    from urllib.parse import urlencode

    if store is not None:
        from sidejudge.integrations.store.archive import read_traces
        from sidejudge.monitor.api.explain import why

        with reading_store():
            found = read_traces(store, reason=reason, service=service, limit=latest)
        traces: list[TraceDocument] = [{**trace, "why": why(trace)} for trace in found]
    else:
        wanted = {"reason": reason, "service": service, "limit": latest}
        answer = ask(url, f"/v1/traces?{urlencode({key: value for key, value in wanted.items() if value})}")
        if answer is None:
            raise CommandError(f"{url} lists no traces", "the monitor is of an older version; name a TRACE_ID")
        traces = answer["traces"]
    if form == "json":
        show_json(traces)
        return 0
    click.echo(traces_table(traces) if traces else "no trace has ended here yet, or none matches")
    if traces:
        click.echo("'sidejudge explain TRACE_ID' shows one in full")
    return 0


def _trace(trace_id: str, store: Path | None, url: str, config: Path | None, form: str) -> int:
    from sidejudge.monitor.api.explain import explanation, sampling_forecast

    if store is not None:
        from sidejudge.integrations.store.archive import read_details

        with reading_store():
            details = read_details(store, trace_id)
    else:
        details = ask(url, f"/v1/traces/{trace_id}")
    if details is not None and form == "json":
        show_json(details)
        return 0
    if details is not None:
        for line in explanation(details):
            click.echo(visible(line))
        return 0
    click.echo(
        f"trace {trace_id} is unknown: it was not drawn, was shed under load, never came, or is past its retention"
    )
    if config is not None:
        for line in sampling_forecast(trace_id, loaded(config).config):
            click.echo(visible(line))
    else:
        click.echo("  with --config FILE the sampling decision is shown")
    return DATA


def _judge_calls(trace_id: str, metric: str | None, store: Path | None, url: str, form: str) -> int:
    from sidejudge.monitor.api.explain import judge_explanation

    if store is not None:
        from sidejudge.integrations.store.archive import read_judge_calls

        with reading_store():
            off, calls = None, read_judge_calls(store, trace_id)
    else:
        answer = ask(url, f"/v1/traces/{trace_id}/judge") or {"off": None, "calls": []}
        off, calls = answer["off"], answer["calls"]
    if form == "json":
        show_json({"off": off, "calls": calls})
        return 0 if calls else DATA
    lines = list(judge_explanation(calls, metric))
    for line in lines:
        click.echo(visible(line))
    if not lines:
        click.echo(
            off
            or f"no call to a judge is kept of trace {trace_id}: none was made, it was answered from the cache, the "
            "call is past evaluators.judge.keep_calls, or evaluators.judge.keep_calls_bytes was not set then"
        )
    return 0 if lines else DATA


def _rubric(rubric: Rubric) -> Iterator[str]:
    """A rubric's description, its pass rule, and its metrics."""
    from sidejudge.monitor.config.rubrics import cards, choice, citation

    chosen = choice(rubric)
    passes = "by its own conditions" if rubric.pass_mark is None else f"composite >= {rubric.pass_mark:g}"
    from sidejudge.monitor.config.section import RUBRIC_ALIASES

    yield click.style(rubric.id, bold=True) + f" · {rubric.title}"
    aliases = [alias for alias, name in RUBRIC_ALIASES.items() if name == rubric.id]
    rows = (
        *(("also named", ", ".join(aliases)) for _ in aliases[:1]),
        ("version", rubric.version),
        ("composite", f"{rubric.formula}, in [0, {rubric.scale:g}]"),
        ("passes", passes),
        ("coverage", f"at least {rubric.min_coverage:g} of the weight must be scored"),
        ("for", chosen.purpose),
        ("needs", ", ".join(chosen.needs) or "nothing but the trace"),
        ("judge", chosen.cost),
        *(("no judge", each) for each in [chosen.without_judge] if each),
        ("source", citation(rubric.source)),
    )
    yield from _listed(rows)
    shown = [(each.id, each.weight, each.bands, each.blocker, each.score_name) for each in cards({rubric.id: rubric})]
    yield table(("metric", "weight", "bands", "blocker", "score name"), shown)
    yield "'sidejudge explain METRIC' shows one in full"


def _card(card: Card) -> Iterator[str]:
    from sidejudge.monitor.config.rubrics import citation

    metric = card.criterion.metric
    yield click.style(f"{metric.id}", bold=True) + f" · {metric.title}"
    yield paragraph(f"  {metric.meaning}", 2)
    rows = (
        ("rubric", f"{card.rubric.id} ({card.rubric.version})"),
        ("score name", card.score_name),
        ("formula", metric.formula),
        ("weight", card.weight),
        ("unit", f"{metric.unit}, in {card.range}"),
        ("bands", card.bands),
        ("blocker", card.blocker),
        ("decided by", ", ".join(method.value for method in metric.methods)),
        ("undefined", metric.undefined),
        ("source", citation(metric.source)),
    )
    yield from _listed(rows)


def _run_score(score: RunScore) -> Iterator[str]:
    from sidejudge.monitor.config.rubrics import citation, range_text

    yield click.style(score.id, bold=True) + f" · {score.title}"
    yield paragraph(f"  {score.meaning}", 2)
    rows = (
        ("computed", "over a run, by 'sidejudge scorecard'"),
        *(
            (name.lower(), ", ".join(f"{part} {share:.0%}" for part, share in of.items()))
            for name, of in score.weights.items()
        ),
        ("formula", score.formula),
        ("unit", f"{score.unit}, in {range_text(score.bounds)}"),
        ("undefined", score.undefined),
        ("source", citation(score.source)),
    )
    yield from _listed(rows)


def _listed(rows: Iterable[tuple[str, object]]) -> Iterator[str]:
    for name, value in rows:
        yield paragraph(f"  {name + ':':12} {value}", 15)
