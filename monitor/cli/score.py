"""``sidejudge score``: a file of cases to a file of verdicts."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .engine import EngineChoice, engine_of, engine_options
from .errors import DATA, CommandError, check_known, ending
from .settings import config_option, own_name, runnable
from .terminal import number, paragraph, progress, share, table, visible

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config
    from sidejudge.monitor.offline.score.case_lines import Format
    from sidejudge.monitor.offline.score.case_sources import CaseSources
    from sidejudge.monitor.offline.score.tally import Expense, ScoreTally
    from sidejudge.monitor.offline.score.verdict_file import ShardForm


@click.command()
@click.argument("cases", metavar="FILE|DIR|PATTERN|URI|-")
@click.option("--out", required=True, metavar="FILE|DIR|URI|-", help="Verdicts (JSON Lines), or the folder of shards.")
@click.option(
    "--shards", type=click.Choice(["jsonl", "parquet"]),
    help="Write verdicts in files of 16 MiB into the folder --out (s3://… too), with a manifest.",
)  # fmt: skip
@click.option(
    "--rubric", "chosen", multiple=True, metavar="NAME", callback=own_name,
    help="Judge every case by this rubric; repeatable. call-qa stands for qa.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "csv", "tsv", "parquet", "otlp"]),
    help="How CASES are written. Default: what the file's ending names, otlp for a request in .json; else JSON Lines.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Begin anew where verdicts stand already.")
@click.option(
    "--repeat", type=click.IntRange(min=1), metavar="N", help="Judge each case N times; each verdict names its run."
)
@click.option("--keep-outputs", is_flag=True, help="Have each verdict carry its model_output, for audits.")
@engine_options
@config_option
def score(
    *,
    cases: str,
    out: str,
    shards: ShardForm | None,
    chosen: tuple[str, ...],
    form: Format | None,
    overwrite: bool,
    repeat: int | None,
    keep_outputs: bool,
    engine: EngineChoice,
    config: Path | None,
) -> int:
    """Score cases (JSON Lines, CSV, Parquet, recorded OTLP requests) and write one verdict a case and rubric.

    They are one file, '-' for standard input, or all files of a folder or of a pattern in quotes ('calls/*.jsonl'), on
    this machine or in an object store (s3://…, gs://…).

    Rubrics are those of --rubric, else of the configured routes, else of the case's task, else default_rubrics. Memory
    stays constant. Call an interrupted run again in the same way, and it goes on where it ended; verdicts from other
    cases, rubrics or scenarios are refused. With a judge or embeddings several cases are judged at a time, and the run
    waits for an unreachable judge. Answers and costs are kept in a store beside --out (OUT.judge), so that a second
    call keeps the same budget and repeats no question; delete it to ask everything anew. For standard output and object
    stores it ends with the run.

    The exit code is 1 where lines are no cases (they are reported and skipped), where the file holds no case, and where
    every case of a rubric ended in an error. Failing cases are results, as are verdicts that are incomplete for lack of
    a configured evaluator: the exit code is 0.

    --repeat shows how much the judge varies on the same outputs: each run asks it anew. To see how much the model
    varies, run it several times and score each run's cases to a file of its own: 'gate' takes both.

    --workers and --engine give the same verdicts in the same order, sooner where there are processors. Without them a
    long file is judged by one process for each processor, unless a judge or embeddings are asked. On Ray one actor asks
    the judge for all, and holds its budget, rate limits and cache; with --workers no judge is asked.
    """
    from sidejudge.monitor.offline.score.request import ScoreRequest, fingerprint, memory_of
    from sidejudge.monitor.offline.score.run import actors, batch_of, expense_of, judged_by
    from sidejudge.monitor.offline.score.tally import Expense, ReportedRemarks
    from sidejudge.monitor.offline.score.verdict_file import verdict_output

    show_causes()
    settings = runnable(config).config
    sources = _sources(cases, form)
    _check(settings, chosen, sources, out)
    expense: Expense | None = Expense()
    request = ScoreRequest(
        config=config.absolute() if config is not None else None,
        fingerprint=fingerprint(settings),
        chosen=tuple(dict.fromkeys(chosen)),
        repeat=repeat,
        keep_outputs=keep_outputs,
        memory=memory_of(out),
    )
    if engine.elsewhere and engine.engine is None:
        _refuse_others(settings)
    if settings.evaluators.judge is None and settings.evaluators.embedding is None:
        engine = engine.by_size(sources.size)
    with _refusals(engine, expense):
        verdicts = verdict_output(out, shards, sources, request, settings, overwrite=overwrite)
        with (
            engine_of(engine) as working, verdicts, progress(sources.size, "bytes") as shown,
            actors(working, request, settings) as request,
        ):  # fmt: skip
            remarks = ReportedRemarks(lambda text: shown.report(sources.located(text)))
            batch = batch_of(request, settings, remarks, expense)
            batch.in_groups = sources.size is not None
            verdicts.counted(batch.tally)

            def reached(read: int, number: int) -> None:
                verdicts.reached(read, number, batch.tally)
                shown.step(read, lambda: batch.tally.counts)

            elsewhere = judged_by(working, request) if engine.elsewhere else None
            tally = batch.run(verdicts.left(sources.lines(), batch.pass_over), verdicts, reached, elsewhere)
            if request.actors is not None:
                expense = expense_of(request)
    _report(tally, verdicts.resumed, remarks.repeated)
    _report_expense(expense)
    wrong = bool(tally.bad_lines or (tally.unrouted and not settings.routes))
    _refuse_nothing(tally, cases, reported=wrong)
    return DATA if wrong else 0


class CausesShown(logging.Formatter):
    """The event of a log record with the judge and its cause, so that people who wait for one see which and why."""

    def format(self, record: logging.LogRecord) -> str:
        more = (getattr(record, name, None) for name in ("judge", "cause"))
        return ": ".join([super().format(record), *(str(each) for each in more if each)])


def show_causes() -> None:
    """Have what is logged show its cause where a command sets up no handler."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(CausesShown())


@contextlib.contextmanager
def _refusals(engine: EngineChoice, expense: Expense | None) -> Iterator[None]:
    """Turn errors that end a run into ``CommandError``. Of one whose models are out, its cost so far is reported."""
    from sidejudge.integrations.embed import EmbeddingError
    from sidejudge.integrations.store.errors import StoreError
    from sidejudge.monitor.offline.score.case_lines import TableError
    from sidejudge.monitor.offline.score.chunks import JudgeOutError
    from sidejudge.monitor.offline.score.request import OtherConfigError
    from sidejudge.monitor.offline.score.resume import AnotherRunError
    from sidejudge.monitor.offline.score.verdict_file import OutputError

    again = "mend it and call again: what was judged stands"
    resumed = f"{again}, and the run goes on from there"
    mended = "mend or delete the store of the judge's answers beside --out, and call again"
    with (
        ending(JudgeOutError, naming="evaluators.judge: ", remedy=resumed, code=DATA),
        ending(OtherConfigError, naming=f"{engine.option}: ", remedy=again),
        ending(EmbeddingError, naming="evaluators.embedding: ", remedy=resumed),
        ending(TableError),
        ending(StoreError, naming="--out: ", remedy=mended, code=DATA),
        ending(OutputError, naming="--out: ", remedy="name a folder or a bucket that can be written"),
        ending(AnotherRunError, remedy="name another --out, or begin anew with --overwrite"),
    ):
        try:
            yield
        except (JudgeOutError, EmbeddingError):
            _report_expense(expense)
            raise


def _report_expense(expense: Expense | None) -> None:
    if expense is not None and (reported := expense.reported()) is not None:
        click.echo(reported, err=True)


def _sources(cases: str, form: Format | None) -> CaseSources:
    from sidejudge.monitor.offline.score.case_lines import TableError
    from sidejudge.monitor.offline.score.case_sources import CaseSources

    with ending(TableError):
        return CaseSources(cases, form)


def _check(settings: Config, chosen: tuple[str, ...], sources: CaseSources, given: str) -> None:
    """Refuse a contradictory call: ``CommandError``."""
    from sidejudge.monitor.config.rubrics import configured

    check_known(chosen, configured(settings), "--rubric: there is no rubric")
    out = Path(given)
    if out.is_file() and any(Path(each.name).exists() and out.samefile(each.name) for each in sources.files):
        raise CommandError(f"--out: {out} is the file of cases itself", "name another file")


def _refuse_others(settings: Config) -> None:
    """Several processes where a judge or embeddings are asked: ``CommandError``."""
    if settings.evaluators.judge is not None:
        raise CommandError(
            "--workers: a judge's budget and rate limits are held by one process",
            "leave out --workers, for evaluators.judge.concurrency is how many cases are judged at a time; "
            "or add --engine ray, where an actor holds them",
        )
    if settings.evaluators.embedding is not None:
        raise CommandError(
            "--workers: embeddings are computed by one process, which uses every processor",
            "leave out --workers, or evaluators.embedding; or add --engine ray",
        )


def _refuse_nothing(tally: ScoreTally, cases: str, *, reported: bool) -> None:
    """A run without a verdict on any case must not look like a successful one: ``CommandError``.

    ``reported``: that no case was judged has its reason above already.
    """
    if tally.broken:
        raise CommandError(
            f"{', '.join(tally.broken)}: not one case could be judged; each ended in an error",
            "mend what the reasons above name, then call again with --overwrite: what failed is not tried again",
            DATA,
        )
    if tally.rubrics or reported:
        return
    if tally.excluded or tally.unrouted:
        raise CommandError(
            f"{cases}: no case was judged, for no rubric is meant for any",
            "name one with --rubric, or look at the routes of the configuration",
            DATA,
        )
    raise CommandError(f"{cases}: holds no case", "write one JSON object a line, or look at what wrote the file", DATA)


def _report(tally: ScoreTally, resumed: int, repeated: int) -> None:
    head = ("rubric", "n", "passed", "failed", "incomplete", "pass rate", "mean composite")
    rows = [
        (name, str(c.n), str(c.passed), str(c.failed), str(c.incomplete), share(c.pass_rate), number(c.mean_composite))
        for name, c in tally.rubrics.items()
    ]
    click.echo(table(head, rows) if rows else "no verdicts", err=True)
    for name, counted in tally.rubrics.items():
        if line := counted.cascade_line():
            click.echo(paragraph(f"{name}: {line}", 2), err=True)
    if tally.gaps.count:
        click.echo(f"incomplete verdicts: {tally.gaps.count}", err=True)
        for reported in tally.gaps.reported():
            click.echo(paragraph(f"  {visible(reported)}", 4), err=True)
    for count, one, several in (
        (resumed, "verdict stood already and was not judged again", "verdicts stood already and were not judged again"),
        (tally.bad_lines, "line is no case and was skipped", "lines are no cases and were skipped"),
        (repeated, "line repeats a case_id", "lines repeat a case_id"),
        (tally.unrouted, "case has no rubric that is meant for it", "cases have no rubric that is meant for them"),
        (tally.excluded, "case is excluded from judging", "cases are excluded from judging"),
    ):
        if count:
            click.echo(f"{count} {one if count == 1 else several}", err=True)
