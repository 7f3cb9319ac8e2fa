"""``sidejudge backfill``: judge the traces of a stretch of time anew, and write their scores to them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .engine import ADDRESS, ENGINE, EngineChoice, engine_of
from .errors import DATA, CommandError, ending, warn
from .settings import FiniteRange, match_of, runnable, window_of
from .terminal import progress, waiting

if TYPE_CHECKING:
    from sidejudge.integrations.langfuse.observations import Window
    from sidejudge.monitor.config import Config
    from sidejudge.monitor.config.match import MatchSection
    from sidejudge.monitor.offline.backfill.estimate import WorkEstimate
    from sidejudge.monitor.offline.backfill.job import Job, LentEmbedding
    from sidejudge.monitor.offline.backfill.listing import Listing
    from sidejudge.monitor.offline.backfill.run import Progress
    from sidejudge.scoring.status.snapshots import ExportSnapshot

_NAMED = 10
"""Most ids shown of traces that could not be read."""


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--from", "since", required=True, metavar="TIME", help="First start time: 2026-11-01 or …T12:00Z; UTC.")
@click.option("--to", "until", metavar="TIME", help="Up to this start time (default: half an hour ago).")
@click.option("--filter", "where", multiple=True, metavar="KEY=GLOB", help="As a route's match: name=chat-*.")
@click.option("--rate", type=FiniteRange(0, 1, min_open=True), help="Share to judge (default: sampling.rate, or 0.01).")
@click.option("--state", type=click.Path(path_type=Path), help="Where the run keeps how far it is.")
@click.option("--batch", is_flag=True, help="Ask the judge through the provider's batch endpoint, at half the price.")
@ENGINE
@ADDRESS
@click.option("--dry-run", is_flag=True, help="Only print what it would take.")
@click.option("--yes", is_flag=True, help="Do not ask before judging.")
def backfill(  # noqa: PLR0917  # click passes options by name
    config: Path,
    since: str,
    until: str | None,
    where: tuple[str, ...],
    rate: float | None,
    state: Path | None,
    batch: bool,  # noqa: FBT001  # as above
    engine: str | None,
    address: str | None,
    dry_run: bool,  # noqa: FBT001  # as above
    yes: bool,  # noqa: FBT001  # as above
) -> int:
    """Judge traces that are in Langfuse already under CONFIG, and write their scores to them (sinks.langfuse).

    The estimate is shown first: traces, questions for the judge, dollars. It draws the traces that a live monitor would
    draw, and scores get the same ids: an equal verdict there stays, a different one becomes its next revision, under
    the time of the first. Call an interrupted run again, and it goes on where it was. A monitor may run meanwhile; its
    judge budget is counted separately. Sessions are judged too where they are configured, but not with --filter; one
    that goes on outside the time is not complete, and replaces nothing in Langfuse. The exit code is 1 when scores were
    given up, or traces could not be read.

    With fleet.database several processes share the work: call the same command in each, with the same --from and --to
    and another --state. If one is killed, others take over its share.

    With --engine ray, models of embeddings run on the cluster, one on each GPU, or on each node without GPUs. All else
    stays here: a trace takes two requests to Langfuse, whose limit of requests a minute is reached long before a
    processor is busy with judging by words. A judge is asked for as many traces at a time as
    evaluators.judge.concurrency allows.
    """
    import asyncio  # not for --help

    from .score import show_causes

    show_causes()
    loaded = runnable(config)
    settings = loaded.config
    sampling = settings.sampling.model_copy(update={"rate": rate or settings.sampling.fixed_rate})
    settings = settings.model_copy(update={"sampling": sampling})
    if batch:
        _check_batch(settings)
    window, wanted = window_of(since, until), match_of(where, "--filter")
    path = state or settings.store.path.with_name(settings.store.path.name + ".backfill")
    with _lent(EngineChoice(engine, address, None), config, loaded.config, dry_run=dry_run) as embedding:
        return asyncio.run(
            _run(settings, window, wanted, path, batch=batch, dry_run=dry_run, yes=yes, embedding=embedding)
        )


@contextmanager
def _lent(choice: EngineChoice, config: Path, settings: Config, *, dry_run: bool) -> Iterator[LentEmbedding | None]:
    """The models of embeddings on the engine that was chosen; None where they are this process's."""
    with engine_of(choice) as engine:
        if dry_run or not choice.elsewhere:
            yield None
            return
        from sidejudge.integrations.embed import EmbeddingError
        from sidejudge.monitor.offline.backfill.job import is_lent, lent_embedding
        from sidejudge.monitor.offline.score.request import OtherConfigError

        if not is_lent(settings):
            click.echo("--engine ray: nothing works there, for no model of embeddings is configured", err=True)
        remedy = "give every node this configuration, and call again"
        with (
            ending(EmbeddingError, naming="evaluators.embedding: "),
            ending(OtherConfigError, naming=f"{choice.option}: ", remedy=remedy),
            lent_embedding(engine, config, settings) as found,
        ):
            yield found


def _check_batch(config: Config) -> None:
    """Refuse judges that no batch endpoint of OpenAI's protocol can be expected of."""
    from sidejudge.integrations.judge.batch import PROVIDER
    from sidejudge.monitor.config.judge_choice import judge_sections

    sections = judge_sections(config)
    if not sections:
        raise CommandError("--batch: no judge is configured", "set evaluators.judge, or leave --batch out")
    models = (model for section in sections.values() for model in (section.model, *section.panel))
    other = next((model for model in models if model.partition("/")[0] != PROVIDER), None)
    if other is not None:
        raise CommandError(
            f"--batch: {other} is asked one by one only", f"name judges as {PROVIDER}/MODEL, or leave --batch out"
        )


async def _run(
    config: Config, window: Window, wanted: MatchSection, path: Path, *, batch: bool, dry_run: bool, yes: bool,
    embedding: LentEmbedding | None,
) -> int:  # fmt: skip
    from sidejudge.integrations.embed import EmbeddingError
    from sidejudge.integrations.langfuse.client import Connections
    from sidejudge.integrations.langfuse.errors import LangfuseError
    from sidejudge.integrations.store.sqlite import Store, StoreError
    from sidejudge.monitor.offline.backfill.job import Job, NoReferencesError
    from sidejudge.monitor.offline.backfill.run import StoppedError
    from sidejudge.monitor.offline.score.chunks import JudgeOutError

    sink = config.sinks.langfuse
    if sink is None:
        raise CommandError(
            "sinks.langfuse: is missing", "name the Langfuse that scores go to; see 'sidejudge help sinks.langfuse'"
        )
    with ending(StoreError, remedy="name another file with --state, or wait until the other run is over"):
        store = Store(path)
    connections = Connections(config.langfuse_projects)
    job = Job(
        config=config, sink=sink, window=window, wanted=wanted, store=store, connections=connections,
        clock_ns=time.time_ns, batch=batch, embedding=embedding,
    )  # fmt: skip
    again = "mend it and call again; the run goes on where it was"
    try:
        with (
            ending(LangfuseError, naming="Langfuse: ", remedy=again, code=DATA),
            ending(StoppedError, naming="scores are refused: ", remedy=again, code=DATA),
            ending(JudgeOutError, naming="evaluators.judge: ", remedy=again, code=DATA),
            ending(EmbeddingError, naming="evaluators.embedding: ", remedy=again, code=DATA),
            ending(NoReferencesError, naming="references: ", remedy=again, code=DATA),
            ending(StoreError, remedy=again, code=DATA),
        ):
            return await _judged(job, dry_run=dry_run, yes=yes)
    finally:
        await connections.close()
        store.close()


async def _judged(job: Job, *, dry_run: bool, yes: bool) -> int:
    from sidejudge.monitor.offline.backfill.run import run

    with ExitStack() as listing:
        listing.enter_context(waiting("listing the traces in Langfuse"))
        async with job.begun(warn) as begun:
            estimate = await begun.estimate_work()
            listing.close()
            _report(begun.found, estimate, job.source.requests_per_minute)
            if job.config.sessions is not None and not job.judges_sessions:
                click.echo("sessions: not judged, for with --filter their other turns are not read")
            if dry_run or not begun.found.drawn:
                return 0
            if not yes and not (sys.stdin.isatty() and click.confirm("judge them?", default=False, err=True)):
                raise CommandError("nothing was judged", "confirm with --yes; --dry-run only shows the estimate")
            with progress(len(begun.found.drawn), "traces") as shown:
                at, exports = await run(
                    begun,
                    lambda at: shown.step(at.done, lambda: (at.passed, at.failed, at.incomplete)),
                    lambda: shown.report("judged; waiting until Langfuse has stored the scores"),
                    shown.report,
                )
    return _outcome(at, exports, job.store.path)


def _report(found: Listing, estimate: WorkEstimate, per_minute: int) -> None:
    click.echo(f"traces in this time: {found.seen:,}")
    for why, count in sorted(found.left_out.items()):
        click.echo(f"  left out, {why.replace('_', ' ')}: {count:,}")
    click.echo(f"  drawn: {len(found.drawn):,}")
    if not found.drawn:
        return
    share = estimate.judged / estimate.read if estimate.read else 0.0
    click.echo(f"as {estimate.read} of them were read: about {estimate.traces * share:,.0f} have a rubric")
    if estimate.sessions:
        click.echo(f"sessions: about {estimate.sessions:,}")
    click.echo(f"questions for the judge, first round: about {estimate.questions:,.0f}")
    cost = (
        "not known, for no price is"
        if estimate.usd is None
        else f"about ${estimate.usd:,.2f}, answers at their longest"
    )
    click.echo(f"cost: {cost}; some metrics ask again")
    # Each trace is read, and then what its scores are there.
    click.echo(f"reading: at least {2 * len(found.drawn) / per_minute:,.1f} minutes at {per_minute} requests a minute")


def _outcome(at: Progress, exports: ExportSnapshot, path: Path) -> int:
    click.echo(f"passed {at.passed:,}, failed {at.failed:,}, incomplete {at.incomplete:,}")
    if at.sessions:
        click.echo(f"sessions judged: {at.sessions:,}")
    if at.sessions_cut:
        why = "turns lie outside --from and --to or were not read; what Langfuse has of them stays"
        click.echo(f"  not complete, for {why}: {at.sessions_cut:,}")
    if at.unchanged or at.revised:
        click.echo(f"of these, in Langfuse already as they are: {at.unchanged:,}, next revision: {at.revised:,}")
    if at.elsewhere:
        click.echo(f"judged by other processes: {at.elsewhere:,}")
    if at.before:
        click.echo(f"judged by an earlier call: {at.before:,}")
    for why, count in sorted(at.unjudged.items()):
        click.echo(f"not judged, {why.replace('_', ' ')}: {count:,}")
    if at.unread:
        more = f" and {len(at.unread) - _NAMED:,} more" if len(at.unread) > _NAMED else ""
        click.echo(f"  not read are {', '.join(at.unread[:_NAMED])}{more}; the same call again tries them")
    if exports.dead:
        click.echo(f"scores given up: {exports.dead:,}; 'sidejudge export dead --store {path}' lists them")
    unseen = exports.waiting + exports.unseen
    if unseen:
        click.echo(f"scores that Langfuse does not show yet: {unseen:,}; the same call again goes on with them")
    return DATA if exports.dead or unseen or at.unread else 0
