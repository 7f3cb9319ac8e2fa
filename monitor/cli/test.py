"""``sidejudge test``: a test set, or a dataset of Langfuse, is put to an agent, and what it answers is judged."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import DATA, CommandError
from .progress import ProgressDisplay, progress
from .settings import config_option, own_name, runnable

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config
    from sidejudge.monitor.offline.test.run import Agent, FinishedTest, Results
    from sidejudge.scoring.runs.test_set import TestSet


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
def test(  # noqa: C901, PLR0917  # click passes options by name; one error of many names its option
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
    """Put every test of TESTSET (YAML, JSON or JSON Lines) to an agent and judge what it answers.

    An agent at http://… gets POST {"input", "test_id", "metadata"} and answers text or {"output": …, …}; one at
    python:module:function is called with the input. Tests and answers: 'sidejudge help reference/test-sets'.

    Rubrics are those of --rubric, else of the configured routes, else of the test's task, else 'dimensions' (with
    'workflow' where a test has a scenario). Called again with the same --out, tests that were answered and have not
    changed are not put to the agent again. With --langfuse-dataset every item of a dataset is put to the agent, and
    the result stands in Langfuse as an experiment. The exit code is 1 unless every test passed, and, of an experiment,
    every score of it was read back from Langfuse.
    """
    import asyncio  # not for --help

    from sidejudge.integrations.embed.encoder import EmbeddingError
    from sidejudge.monitor.config.rubrics import configured
    from sidejudge.monitor.evaluate.build import build_backends
    from sidejudge.monitor.offline.score.chunks import JudgeOutError
    from sidejudge.monitor.offline.score.resume import AnotherRunError
    from sidejudge.monitor.offline.score.run_memory import MOST_VECTORS, LruCache, Transient
    from sidejudge.monitor.offline.score.tally import Expense
    from sidejudge.monitor.offline.test.judge import RunJudge
    from sidejudge.monitor.offline.test.run import AgentUnreachableError, Runner
    from sidejudge.scoring.runs.summary import repeats, summarize

    from .test_report import report

    seconds = _seconds(timeout)
    settings = runnable(config).config
    rubrics = configured(settings)
    section, memory, expense = settings.evaluators.judge, Transient(forgetful=repeat > 1), Expense()
    for name in chosen:
        if name not in rubrics:
            raise CommandError(f"--rubric: there is no rubric {name!r}", f"choose from {', '.join(rubrics)}")
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
        try:
            with _results(out, agent.name) as results, progress(len(tests.tests) * repeat, "tests") as shown:
                runner = Runner(
                    agent=agent,
                    judge=RunJudge(
                        rubrics,
                        settings.routes,
                        settings.scenarios,
                        chosen,
                        backends=build_backends(
                            settings,
                            memory=memory,
                            vectors=LruCache(MOST_VECTORS),
                            observer=expense,
                            clock_ns=time.time_ns,
                        ),
                        max_wait_s=section.max_wait.seconds if section is not None else 0.0,
                    ),
                    results=results,
                    concurrency=concurrency,
                    timeout_s=seconds,
                    on_result=_counted(shown),
                )
                found = asyncio.run(runner.run(tests.tests, repeat))
        except JudgeOutError as error:
            again = "mend it and call again: what was judged stands in --out, and the run goes on from there"
            raise CommandError(f"evaluators.judge: {error}", again, DATA) from None
        except EmbeddingError as error:
            raise CommandError(f"evaluators.embedding: {error.cause}", error.remedy) from None
        except AnotherRunError as error:
            raise CommandError(str(error), "name another --out, or move the file away") from None
        except AgentUnreachableError as error:
            raise CommandError(
                f"no agent answers at {agent.name}: {error}", "start the agent, or correct --agent"
            ) from None
    outcomes = [one.outcome for one in found]
    summary = summarize(outcomes)
    if repeat > 1:
        summary["repeats"] = repeats(outcomes)
    if form == "json":
        click.echo(json.dumps(summary, indent=2, ensure_ascii=True))
    else:
        report(tests, found, summary, expense.reported())
    return 0 if summary.get("passed") == summary.get("total_tests") else DATA


def _refuse(options: Mapping[str, object]) -> None:
    for name in [option for option, value in options.items() if value]:
        raise CommandError(f"{name} does not go with --langfuse-dataset", "leave it out")


def _tests(path: Path, scenarios: Sequence[str], tags: Sequence[str], where: Sequence[str]) -> TestSet:
    from sidejudge.monitor.offline.test.test_file import SelectionError, TestSetError, read_test_set, selected

    pairs = []
    for text in where:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CommandError(f"--where: {text!r} is not KEY=VALUE", "for example --where complexity=high")
        pairs.append((key, value))
    try:
        tests = read_test_set(path, scenarios)
        found = selected(tests, tags, pairs)
    except TestSetError as error:
        remedy = "mend all of these" if len(error.problems) > 1 else "mend it"
        remedy += "; 'sidejudge help reference/test-sets' describes test sets"
        if any(problem.unreadable for problem in error.problems):
            remedy = "check the path and the permissions"
        raise CommandError(str(error), remedy) from None
    except SelectionError as error:
        raise CommandError(str(error), "correct it, or leave it out") from None
    if not found.tests:
        raise CommandError(f"no test of {path} is all of these", "leave out some of --tag and --where")
    return found


def _agent(spec: str, concurrency: int) -> Agent:
    from sidejudge.integrations.agents.reply import NoSuchAgentError

    try:
        if spec.startswith(("http://", "https://")):
            from sidejudge.integrations.agents.http import HttpAgent  # a client is only needed where it asks

            return HttpAgent(spec, concurrency)
        if spec.startswith("python:"):
            from sidejudge.integrations.agents.python import PythonAgent

            return PythonAgent(spec)
    except NoSuchAgentError as error:
        raise CommandError(f"--agent: {error.cause}", error.remedy) from error
    raise CommandError(f"--agent: {spec!r} is no agent", "write http://HOST:PORT/PATH or python:module:function")


def _seconds(text: str) -> float:
    from sidejudge.monitor.config.units import parse_duration

    try:
        seconds = parse_duration(text).seconds
    except ValueError as error:
        raise CommandError(f"--timeout: {error}", "for example --timeout 90s") from None
    if seconds <= 0:
        raise CommandError("--timeout: must be more than 0", "for example --timeout 90s")
    return seconds


@contextlib.contextmanager
def _results(out: Path | None, agent: str) -> Iterator[Results]:
    from sidejudge.monitor.offline.test.run import NoResults, ResultsFile

    if out is None:
        yield NoResults()
    else:
        with ResultsFile(out, agent) as results:
            yield results


def _counted(shown: ProgressDisplay) -> Callable[[FinishedTest], None]:
    """A listener for finished tests, which shows how many there are of each kind."""
    counts = {True: 0, False: 0, None: 0}

    def on_result(finished: FinishedTest) -> None:
        counts[finished.outcome.evaluation.passed] += 1
        shown.step(sum(counts.values()), lambda: (counts[True], counts[False], counts[None]))

    return on_result


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
    """Run it and show what came of it; the exit code, 1 unless all items passed and all scores arrived."""
    from sidejudge.monitor.config.extras import LANGFUSE, installed
    from sidejudge.monitor.offline.experiment.dataset_run import NoDatasetError, UnfitSdkError, run_dataset
    from sidejudge.scoring.runs.summary import SEED_RUBRIC

    from .table import table

    project = settings.langfuse
    if project is None:
        raise CommandError("--langfuse-dataset: no Langfuse is configured", "give sinks.langfuse in --config")
    if not installed(LANGFUSE):
        raise CommandError("--langfuse-dataset needs Langfuse's SDK", LANGFUSE.remedy)
    try:
        found = run_dataset(
            project.access, dataset, agent=agent, rubrics=rubrics or (SEED_RUBRIC,), config=settings, name=dataset,
            concurrency=concurrency, timeout_s=timeout_s,
        )  # fmt: skip
    except UnfitSdkError as error:
        remedy = "upgrade Langfuse to 4.59 or later, or install the SDK that fits: pip install 'langfuse>=4.18,<5'"
        raise CommandError(f"--langfuse-dataset: {error}", remedy) from error
    except NoDatasetError as error:
        raise CommandError(f"--langfuse-dataset: {error}", "'sidejudge doctor' shows what the keys can read") from error
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
