"""``sidejudge test``: a test set, or a dataset of Langfuse, is put to an agent, and its answers are judged."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sidejudge.scoring.lexical.shown_text import label

from .errors import DATA, CommandError, check_known, ending
from .settings import config_option, duration_of, own_name, pairs_of, runnable
from .terminal import ProgressDisplay, number, paragraph, progress, share, table, visible

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config
    from sidejudge.monitor.offline.score.tally import Count, Gaps
    from sidejudge.monitor.offline.test.run import Agent, FinishedTest
    from sidejudge.scoring.runs.test_set import TestSet
    from sidejudge.scoring.trace.span import JsonRecord

_FAILURES = 10
_REASON = 300
_HEAD = ("n", "passed", "failed", "incomplete", "pass rate")


@click.command()
@click.argument("testset", required=False, type=click.Path(path_type=Path))
@click.option(
    "--langfuse-dataset",
    "dataset",
    metavar="NAME",
    help="Test with the items of this dataset, as an experiment in the Langfuse of --config; needs the extra langfuse.",
)
@click.option("--agent", "spec", required=True, metavar="http://…|python:module:function", help="Who is tested.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only tests with this tag; repeatable: with all.")
@click.option(
    "--where", multiple=True, metavar="KEY=VALUE", help="Only tests whose field is this; repeatable: all hold."
)
@click.option(
    "--rubric", "chosen", multiple=True, metavar="NAME", callback=own_name,
    help="Judge every test by this rubric; repeatable.",
)  # fmt: skip
@click.option("--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Run every test so often.")
@click.option("--concurrency", type=click.IntRange(1, 256), default=4, show_default=True, help="Tests at a time.")
@click.option("--timeout", default="60s", show_default=True, help="Longest that a test may take, all attempts.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Results (JSON Lines); a run that was cut off goes on there."
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@config_option
def test(  # noqa: PLR0917  # click passes options by name; one error of many names its option
    testset: Path | None,
    dataset: str | None,
    spec: str,
    tags: tuple[str, ...],
    where: tuple[str, ...],
    chosen: tuple[str, ...],
    repeat: int,
    concurrency: int,
    timeout: str,  # it is an option of the command line
    out: Path | None,
    form: str,
    config: Path | None,
) -> int:
    """Put every test of TESTSET (YAML, JSON or JSON Lines) to an agent and judge its answers.

    An agent at http://… receives POST {"input", "test_id", "metadata"} and returns text or {"output": …, …}; one at
    python:module:function is called with the input. Tests and answers: 'sidejudge help reference/test-sets'.

    Rubrics are those of --rubric, else of the configured routes, else of the test's task, else 'dimensions' (with
    'workflow' where a test has a scenario). A second call with the same --out skips answered tests that have not
    changed. With --langfuse-dataset every item of a dataset is put to the agent, and the result becomes an experiment
    in Langfuse. The exit code is 1 unless every test passed, and, of an experiment, every score of it was read back
    from Langfuse.
    """
    import asyncio  # not for --help

    from sidejudge.integrations.embed import EmbeddingError
    from sidejudge.monitor.config.rubrics import configured
    from sidejudge.monitor.offline.score.chunks import JudgeOutError
    from sidejudge.monitor.offline.score.request import run_backends
    from sidejudge.monitor.offline.score.resume import AnotherRunError
    from sidejudge.monitor.offline.score.tally import Expense
    from sidejudge.monitor.offline.test.judge import RunJudge
    from sidejudge.monitor.offline.test.run import AgentUnreachableError, ResultsFile, Runner
    from sidejudge.scoring.runs.summary import repeats, summarize

    from .score import show_causes

    show_causes()
    seconds = duration_of("--timeout", timeout, "90s").seconds
    if seconds <= 0:
        raise CommandError("--timeout: must be more than 0", "for example --timeout 90s")
    settings = runnable(config).config
    expense = Expense()
    check_known(chosen, configured(settings), "--rubric: there is no rubric")
    if (testset is None) == (dataset is None):
        raise CommandError("name a test set or --langfuse-dataset", "'sidejudge test --help' shows both")
    if dataset is not None or testset is None:
        _refuse({"--tag": tags, "--where": where, "--out": out, "--repeat": repeat > 1})
        return experiment(
            settings,
            str(dataset),
            chosen,
            lambda: _agent(spec, 1),
            concurrency=concurrency,
            timeout_s=seconds,
            form=form,
        )
    tests = _tests(testset, tuple(settings.scenarios), tags, where)
    if out is not None and out.exists() and out.samefile(testset):
        raise CommandError(f"--out: {out} is the test set itself", "name another file")
    # What an agent prints is not our result.
    with contextlib.redirect_stdout(sys.stderr):
        agent = _agent(spec, concurrency)
        again = "mend it and call again: what was judged stands in --out, and the run goes on from there"
        again = again if out is not None else "mend it and call again; with --out FILE a run goes on where it ended"
        away = f"no agent answers at {agent.name}: "
        with (
            ending(JudgeOutError, naming="evaluators.judge: ", remedy=again, code=DATA),
            ending(EmbeddingError, naming="evaluators.embedding: ", remedy=again),
            ending(AnotherRunError, remedy="name another --out, or move the file away"),
            ending(AgentUnreachableError, naming=away, remedy="start the agent, or correct --agent"),
            ResultsFile(out, agent.name) as results,
            progress(len(tests.tests) * repeat, "tests") as shown,
        ):
            backends = run_backends(settings, expense, forgetful=repeat > 1)
            judge = RunJudge(settings, chosen, backends=backends)
            runner = Runner(
                agent=agent, judge=judge, results=results, concurrency=concurrency, timeout_s=seconds,
                on_result=_counted(shown),
            )  # fmt: skip
            found = asyncio.run(runner.run(tests.tests, repeat))
    outcomes = [one.outcome for one in found]
    summary = summarize(outcomes)
    if repeat > 1:
        summary["repeats"] = repeats(outcomes)
    if form == "json":
        click.echo(json.dumps(summary, indent=2, ensure_ascii=True))
    else:
        _report(tests, found, summary, expense.reported())
    return 0 if summary.get("passed") == summary.get("total_tests") else DATA


def _refuse(options: Mapping[str, object]) -> None:
    for name in [option for option, value in options.items() if value]:
        raise CommandError(f"{name} does not go with --langfuse-dataset", "leave it out")


def _tests(path: Path, scenarios: Sequence[str], tags: Sequence[str], where: Sequence[str]) -> TestSet:
    from sidejudge.monitor.offline.test.test_file import SelectionError, TestSetError, read_test_set, selected

    pairs = list(pairs_of(where, "--where", "KEY=VALUE", "complexity=high"))
    try:
        tests = read_test_set(path, scenarios)
    except TestSetError as error:
        remedy = "mend all of these" if len(error.problems) > 1 else "mend it"
        remedy += "; 'sidejudge help reference/test-sets' describes test sets"
        if any(problem.unreadable for problem in error.problems):
            remedy = "check the path and the permissions"
        raise CommandError(str(error), remedy) from None
    with ending(SelectionError, remedy="correct it, or leave it out"):
        found = selected(tests, tags, pairs)
    if not found.tests:
        raise CommandError(f"no test of {path} is all of these", "leave out some of --tag and --where")
    return found


def _agent(spec: str, concurrency: int) -> Agent:
    from sidejudge.integrations.agents import NoSuchAgentError

    with ending(NoSuchAgentError, naming="--agent: "):
        if spec.startswith(("http://", "https://")):
            from sidejudge.integrations.agents.http import HttpAgent  # a client is only needed where it asks

            return HttpAgent(spec, concurrency)
        if spec.startswith("python:"):
            from sidejudge.integrations.agents.python import PythonAgent

            return PythonAgent(spec)
    raise CommandError(f"--agent: {spec!r} is no agent", "write http://HOST:PORT/PATH or python:module:function")


def _counted(shown: ProgressDisplay) -> Callable[[FinishedTest], None]:
    """A listener for finished tests, which shows how many there are of each kind."""
    counts = {True: 0, False: 0, None: 0}

    def on_result(finished: FinishedTest) -> None:
        counts[finished.outcome.evaluation.passed] += 1
        shown.step(sum(counts.values()), lambda: (counts[True], counts[False], counts[None]))

    return on_result


def _report(tests: TestSet, found: Sequence[FinishedTest], summary: JsonRecord, expense: str | None) -> None:
    """Print counts by rubric, tag and complexity, and why tests failed. ``expense`` is what a judge has cost."""
    from sidejudge.monitor.offline.score.tally import Count, ScoreTally
    from sidejudge.scoring.runs.test_set import complexity_of, tags_of

    tally, tags, complexities = ScoreTally(), dict[str, Count](), dict[str, Count]()
    for one in found:
        for verdict in one.verdicts:
            tally.add(verdict)
        score = one.outcome.evaluation
        for tag in dict.fromkeys(tags_of(one.outcome.test)):
            tags.setdefault(tag, Count()).add(score.passed, score.overall_score)
        complexities.setdefault(complexity_of(one.outcome.test), Count()).add(score.passed, score.overall_score)
    for title, counts in (("rubric", tally.rubrics), ("tag", tags), ("complexity", complexities)):
        if counts:
            click.echo(table((title, *_HEAD), [_row(name, count) for name, count in counts.items()]) + "\n")
    for line in (*_failures(found, summary), *_incomplete(tally.gaps), *_repeats(summary)):
        click.echo(line)
    if expense is not None:
        click.echo(expense)
    click.echo(_last_line(tests, found, summary))


def _row(name: str, c: Count) -> tuple[str, ...]:
    return (label(name), str(c.n), str(c.passed), str(c.failed), str(c.incomplete), share(c.pass_rate))


def _failures(found: Sequence[FinishedTest], summary: JsonRecord) -> Iterator[str]:
    failed = [one for one in found if one.outcome.evaluation.passed is False]
    if not failed:
        return
    yield click.style(f"FAILED ({len(failed)})", bold=True)
    for one in failed[:_FAILURES]:
        run = f" (run {one.outcome.run})" if "repeats" in summary else ""
        name = click.style(visible(label(str(one.outcome.test["id"]))), fg="red")
        yield paragraph(f"  {name}{run}: {visible(label(_why(one), _REASON))}", 4)
    if len(failed) > _FAILURES:
        yield f"  … and {len(failed) - _FAILURES} more; --format json or --out shows all"
    yield ""


def _why(one: FinishedTest) -> str:
    if one.outcome.error is not None:
        return f"no output: {one.outcome.error}"
    failing = [verdict for verdict in one.verdicts if verdict["passed"] is False]
    return "; ".join(f"{verdict['rubric']}: {verdict.get('reason')}" for verdict in failing)


def _incomplete(gaps: Gaps) -> Iterator[str]:
    """Why there are verdicts that neither passed nor failed, and what to do."""
    if gaps.count:
        yield click.style(f"INCOMPLETE VERDICTS ({gaps.count})", bold=True)
        yield from (paragraph(f"  {visible(line)}", 4) for line in gaps.reported())
        yield ""


def _repeats(summary: JsonRecord) -> Iterator[str]:
    if "repeats" not in summary:
        return
    reported = summary["repeats"]
    rows = [
        (name, *(number(reported[key][part]) for part in ("mean", "sd")), " ".join(map(number, reported[key]["each"])))
        for key, name in (("pass_rate", "pass rate"), ("overall_score", "mean overall score"))
    ]
    yield table((f"over {reported['runs']} runs", "mean", "sd", "each"), rows) + "\n"


def _last_line(tests: TestSet, found: Sequence[FinishedTest], summary: JsonRecord) -> str:
    parts = [f"{summary[name]} {name}" for name in ("passed", "failed", "incomplete")]
    if summary["errors"]:
        parts[1] += f" ({summary['errors']} without an output)"
    resumed = sum(one.resumed for one in found)
    again = f"; {resumed} stood already and {'was' if resumed == 1 else 'were'} not run again" if resumed else ""
    return f"{visible(label(tests.name))}: {len(found)} run: {', '.join(parts)}{again}"


def experiment(
    settings: Config,
    dataset: str,
    rubrics: Sequence[str],
    agent: Callable[[], Agent],
    *,
    concurrency: int,
    timeout_s: float,
    form: str,
) -> int:
    """Run it and show the result; the exit code is 1 unless all items passed and all scores arrived."""
    from sidejudge.monitor.config.extras import LANGFUSE, installed
    from sidejudge.monitor.offline.experiment.dataset_run import NoDatasetError, UnfitSdkError, run_dataset
    from sidejudge.scoring.runs.summary import SEED_RUBRIC

    project = settings.langfuse
    if project is None:
        raise CommandError("--langfuse-dataset: no Langfuse is configured", "give sinks.langfuse in --config")
    if not installed(LANGFUSE):
        raise CommandError("--langfuse-dataset needs Langfuse's SDK", LANGFUSE.remedy)
    fitting = "upgrade Langfuse to 4.59 or later, or install the SDK that fits: pip install 'langfuse>=4.18,<5'"
    readable = "'sidejudge doctor' shows what the keys can read"
    with (
        ending(UnfitSdkError, naming="--langfuse-dataset: ", remedy=fitting),
        ending(NoDatasetError, naming="--langfuse-dataset: ", remedy=readable),
    ):
        found = run_dataset(
            project.access, dataset, agent=agent, rubrics=rubrics or (SEED_RUBRIC,), config=settings, name=dataset,
            concurrency=concurrency, timeout_s=timeout_s,
        )  # fmt: skip
    if form == "json":
        click.echo(json.dumps({**asdict(found), "passed": found.passed}, indent=2))
    else:
        rows = [
            (
                name, str(each.passed), str(each.failed), str(each.not_judged),
                "" if each.lower is None else f"{each.lower:.3f}–{each.upper:.3f}",
            )
            for name, each in found.rubrics.items()
        ]  # fmt: skip
        click.echo(f"{found.items} items of {dataset}")
        click.echo(table(("rubric", "passed", "failed", "no verdict", "pass rate, 95 %"), rows))
        click.echo(
            f"\n{found.url}" if found.url else "\nthe experiment's page is not known: the project cannot be read"
        )
    if found.missing:
        click.echo(f"{found.missing} of {found.scores} scores are not in Langfuse, which took them", err=True)
    elif found.missing is None:
        click.echo(f"whether the scores are in Langfuse is not known: {found.unread}", err=True)
    return 0 if found.passed else DATA
