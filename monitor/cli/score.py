"""``sidejudge score``: a file of cases to a file of verdicts."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from .errors import DATA, CommandError
from .progress import progress
from .settings import config_option, own_name, runnable

if TYPE_CHECKING:
    from monitor.offline.score.tally import ScoreTally

_IN_FLIGHT = 8
"""Cases under way at a time where only embeddings are waited for: what they compare is embedded together."""


@click.command()
@click.argument("cases", type=click.Path(allow_dash=True, path_type=Path))
@click.option("--out", required=True, type=click.Path(allow_dash=True, path_type=Path), help="Verdicts (JSON Lines).")
@click.option(
    "--rubric", "chosen", multiple=True, metavar="NAME", callback=own_name,
    help="Judge every case by this rubric; repeatable. call-qa stands for qa.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "csv", "tsv", "parquet"]),
    help="How CASES are written. Default: what the file's ending names, JSON Lines without one.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Begin anew where verdicts stand already.")
@click.option(
    "--repeat", type=click.IntRange(min=1), metavar="N", help="Judge each case N times; each verdict names its run."
)
@click.option("--keep-outputs", is_flag=True, help="Have each verdict carry its model_output, for audits.")
@config_option
def score(
    *,
    cases: Path,
    out: Path,
    chosen: tuple[str, ...],
    form: Literal["jsonl", "csv", "tsv", "parquet"] | None,
    overwrite: bool,
    repeat: int | None,
    keep_outputs: bool,
    config: Path | None,
) -> int:
    """Score CASES (JSON Lines, CSV or Parquet; '-' for standard input) and write one verdict a case and rubric.

    Rubrics are those of --rubric, else of the configured routes, else of the case's task, else default_rubrics. Memory
    stays constant. A run that was cut off goes on where it ended when it is called again in the same way; verdicts that
    other cases, rubrics or scenarios gave are refused, not kept. With a judge or embeddings several cases are judged at
    a time; a judge out of reach is waited for.

    The exit code is 1 where lines are no cases (they are reported and skipped), where the file holds no case, and where
    every case of a rubric ended in an error. Cases that fail are results, and so are verdicts that are incomplete
    because no evaluator is configured for them: the exit code is 0.

    --repeat shows how much the judge varies on the same outputs. To see how much the model varies, run it several times
    and score each run's cases to a file of its own: 'gate' takes both.
    """
    from integrations.embed.errors import EmbeddingError
    from monitor.config.rubrics import configured
    from monitor.evaluate.build import build_backends
    from monitor.offline.score.append_file import AnotherRunError
    from monitor.offline.score.case_lines import TableError, case_lines
    from monitor.offline.score.expense import Expense
    from monitor.offline.score.in_flight import JudgeOutError
    from monitor.offline.score.run import Batch
    from monitor.offline.score.transient import MOST_VECTORS, Transient, TransientShelf
    from monitor.offline.score.verdict_file import VerdictFile, VerdictStream
    from monitor.route.router import Router

    settings = runnable(config).config
    rubrics = configured(settings)
    for name in chosen:
        if name not in rubrics:
            raise CommandError(f"--rubric: there is no rubric {name!r}", f"choose from {', '.join(rubrics)}")
    if str(cases) != "-" and out.exists() and cases.exists() and out.samefile(cases):
        raise CommandError(f"--out: {out} is the file of cases itself", "name another file")
    if overwrite and out.is_file():
        out.write_bytes(b"")
    judge, expense = settings.evaluators.judge, Expense()
    # What is judged again, to see how much the judge varies, must not come out of the cache.
    memory = Transient(forgetful=repeat is not None)
    size = cases.stat().st_size if cases.is_file() else None
    verdicts = VerdictStream(sys.stdout.buffer) if str(out) == "-" else VerdictFile(out)
    try:
        with case_lines(cases, form) as source, verdicts, progress(size, "bytes") as shown:
            batch = Batch(
                rubrics=rubrics,
                backends=build_backends(
                    settings,
                    memory=memory,
                    vectors=TransientShelf(MOST_VECTORS),
                    observer=expense,
                    clock_ns=time.time_ns,
                ),
                at_most=judge.concurrency if judge is not None else _IN_FLIGHT,
                max_wait_s=judge.max_wait.seconds if judge is not None else 0.0,
                router=Router(settings.routes, settings.scenarios),
                scenarios=settings.scenarios,
                chosen=tuple(dict.fromkeys(chosen)),
                # Where the configuration names none they are run_health, which is for traces.
                default=settings.default_rubrics if "default_rubrics" in settings.model_fields_set else (),
                complain=shown.report,
                by_task=not settings.routes,
                repeat=repeat,
                keep_outputs=keep_outputs,
            )
            tally = batch.run(source, verdicts, lambda read: shown.step(read, lambda: batch.tally.counts))
    except JudgeOutError as error:
        again = "mend it and call again: what was judged stands, and the run goes on from there"
        raise CommandError(f"evaluators.judge: {error}", again, DATA) from None
    except EmbeddingError as error:
        raise CommandError(f"evaluators.embedding: {error.cause}", error.remedy) from None
    except TableError as error:
        raise CommandError(error.cause, error.remedy) from None
    except AnotherRunError as error:
        raise CommandError(str(error), "name another --out, or begin anew with --overwrite") from None
    _report(tally, verdicts.resumed)
    if (reported := expense.reported()) is not None:
        click.echo(reported, err=True)
    wrong = bool(tally.bad_lines or (tally.unrouted and not settings.routes))
    _refuse_nothing(tally, str(cases), reported=wrong)
    return DATA if wrong else 0


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


def _report(tally: ScoreTally, resumed: int) -> None:
    from .table import number, paragraph, share, table, visible

    head = ("rubric", "n", "passed", "failed", "incomplete", "pass rate", "mean composite")
    rows = [
        (name, str(c.n), str(c.passed), str(c.failed), str(c.incomplete), share(c.pass_rate), number(c.mean_composite))
        for name, c in tally.rubrics.items()
    ]
    click.echo(table(head, rows) if rows else "no verdicts", err=True)
    if tally.gaps.count:
        click.echo(f"incomplete verdicts: {tally.gaps.count}", err=True)
        for reported in tally.gaps.reported():
            click.echo(paragraph(f"  {visible(reported)}", 4), err=True)
    for count, one, several in (
        (resumed, "verdict stood already and was not judged again", "verdicts stood already and were not judged again"),
        (tally.bad_lines, "line is no case and was skipped", "lines are no cases and were skipped"),
        (tally.repeated, "line repeats a case_id", "lines repeat a case_id"),
        (tally.unrouted, "case has no rubric that is meant for it", "cases have no rubric that is meant for them"),
        (tally.excluded, "case is excluded from judging", "cases are excluded from judging"),
    ):
        if count:
            click.echo(f"{count} {one if count == 1 else several}", err=True)
