"""``sidejudge try-judge``: the configured judges on questions with known answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import DATA, CommandError, check_known, ending
from .settings import FiniteRange, config_option, format_option, runnable, show_json
from .terminal import ProgressDisplay, number, progress, share, table, visible

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config
    from sidejudge.monitor.evaluate.judge.panel import JudgeSettings
    from sidejudge.scoring.calibration.judge_leaning import Rate
    from sidejudge.scoring.calibration.judge_report import JudgeReport
    from sidejudge.scoring.judging.golden import GoldenCase


@click.command("try-judge")
@config_option
@format_option
@click.option("--judge", "chosen", multiple=True, metavar="NAME", help="Only this one of the judges; repeatable.")
@click.option(
    "--rubric",
    "named",
    multiple=True,
    metavar="NAME",
    help="Ask the labelled examples of this ready rubric instead, in your wording of it if you have one; repeatable.",
)
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only questions of this metric; repeatable.")
@click.option("--repeats", type=click.IntRange(1, 20), default=2, show_default=True, help="How often all is asked.")
@click.option("--max-usd", type=FiniteRange(min=0, min_open=True), help="Spend no more. The budgets hold too.")
@click.option(
    "--min-accuracy", type=FiniteRange(0, 1), default=0.8, show_default=True,
    help="Share of right answers, of all and in each direction, below which a judge is found wrong.",
)  # fmt: skip
@click.option("--wrong", is_flag=True, help="List the questions that were answered wrongly.")
def try_judge(
    *,
    config: Path | None,
    form: str,
    chosen: tuple[str, ...],
    named: tuple[str, ...],
    metrics: tuple[str, ...],
    repeats: int,
    max_usd: float | None,
    min_accuracy: float,
    wrong: bool,
) -> int:
    """Ask the configured judges questions with known answers, and show how good each judge is.

    Each model is asked alone, and each panel as configured. The output has the shares of questions with an answer, of
    answers that are valid at once, and of repaired ones. Then it has accuracy by metric, with 95 % intervals, and the
    direction of errors, each with its own bound: the share of right answers where yes is right (sensitivity), and where
    no is right (specificity); how far grades are too high (bias), and how much of the difference between good and bad
    they lose (compression); confused options, and the place in the list that draws answers. Traps show bias by pairs
    that differ in nothing else: position, verbosity, authority, injection, language, format, self-praise, sycophancy.
    Stability over repeats, cost and latency of a case follow. With --rubric the questions are those that ready rubrics
    ask about their labelled examples, forty and more of each, good and bad in balance. The exit code is 1 where a judge
    has a fault. Nothing of any trace is sent.
    """
    from sidejudge.monitor.evaluate.build import judge_settings
    from sidejudge.monitor.offline.try_judge.run import golden_set, judges

    given = runnable(config).config
    if given.evaluators.judge is None:
        raise CommandError("no judge is configured", "add evaluators.judge; 'sidejudge help tutorials/judge' shows how")
    settings = judge_settings(given)
    if max_usd is not None:
        least = min(max_usd, settings.section.budget_usd_per_day or max_usd)
        settings = replace(settings, section=settings.section.model_copy(update={"budget_usd_per_day": least}))
    known = judges(settings)
    check_known(chosen, known, "--judge: there is no judge")
    cases = _of_metrics(labelled(given, named) if named else golden_set(), metrics)
    asked = {name: each for name, each in known.items() if not chosen or name in chosen}
    with progress(len(asked) * repeats * sum(len(each.questions) for each in cases), "questions") as shown:
        reports = asyncio.run(_run(asked, cases, shown, repeats, min_accuracy))
    if form == "json":
        show_json([each.to_json() for each in reports])
    else:
        _show(reports, wrong=wrong)
    return DATA if any(each.findings for each in reports) else 0


def report_on_examples(config: Path, named: Sequence[str]) -> JudgeReport:
    """The report on a configuration's default judge (or panel) over the labelled examples of these ready rubrics."""
    from sidejudge.monitor.evaluate.build import judge_settings
    from sidejudge.monitor.offline.try_judge.run import judges

    given = runnable(config).config
    if given.evaluators.judge is None:
        raise CommandError(f"{config}: no judge is configured", "add evaluators.judge")
    known = judges(replace(judge_settings(given), others={}))
    name = list(known)[-1]  # a panel stands behind its members
    cases = labelled(given, named)
    with progress(sum(len(each.questions) for each in cases), "questions") as shown:
        (report,) = asyncio.run(_run({name: known[name]}, cases, shown, 1, 0.0))
    return report


def labelled(config: Config, names: Sequence[str]) -> Sequence[GoldenCase]:
    """The labelled examples of these ready rubrics as questions, in the wording that the configuration has of them."""
    from sidejudge.monitor.config.library import library
    from sidejudge.monitor.config.rubrics import configured
    from sidejudge.monitor.offline.try_judge.run import labelled_cases
    from sidejudge.scoring.declared.metric import Sources
    from sidejudge.scoring.declared.rubric import declared_rubric

    ready, own = library(), configured(config)
    found: list[GoldenCase] = []
    for name in names:
        check_known((name,), ready, "--rubric: there are no examples of")
        rubric = own.get(name) or declared_rubric(name, ready[name].declared, Sources(rubrics=own))
        with ending(ValueError, naming="--rubric: ", remedy="ask for the same kind of answer as the ready rubric"):
            cases = labelled_cases(rubric, ready[name].examples)
        if not cases:
            raise CommandError(f"--rubric: {name} asks no judge", "name one whose questions a judge answers")
        found += cases
    return found


def _of_metrics(cases: Sequence[GoldenCase], metrics: Sequence[str]) -> Sequence[GoldenCase]:
    known = dict.fromkeys(question.metric for each in cases for question in each.questions)
    check_known(metrics, known, "--metric: there are no questions of")
    if not metrics:
        return cases
    kept = (
        replace(each, questions=tuple(question for question in each.questions if question.metric in metrics))
        for each in cases
    )
    return [each for each in kept if each.questions]


async def _run(
    asked: dict[str, JudgeSettings],
    cases: Sequence[GoldenCase],
    shown: ProgressDisplay,
    repeats: int,
    min_accuracy: float,
) -> list[JudgeReport]:
    from sidejudge.integrations.judge.client import JudgeClient
    from sidejudge.integrations.provider.errors import ProviderError
    from sidejudge.integrations.provider.library import LiteLLM
    from sidejudge.monitor.offline.score.request import Transient
    from sidejudge.monitor.offline.try_judge.run import try_judge as one_judge

    library, memory, done = LiteLLM(), Transient(), 0

    def step(count: int) -> None:
        nonlocal done
        done += count
        shown.step(done, None)

    try:
        await library.start()
        return [
            await one_judge(
                name, settings, cases, client=JudgeClient(library), memory=memory, repeats=repeats,
                min_accuracy=min_accuracy, done=step,
            )
            for name, settings in asked.items()
        ]  # fmt: skip
    except ProviderError as error:
        raise CommandError(f"evaluators.judge: {error}", "check that the extra 'judge' is installed whole") from None
    finally:
        await library.close()


def _show(reports: Sequence[JudgeReport], *, wrong: bool) -> None:
    from sidejudge.scoring.calibration.judge_report import unproven

    head = (
        "judge",
        "answered",
        "parsed",
        "repaired",
        "right",
        "95 % interval",
        "same again",
        "USD a case",
        "p50 s",
        "p95 s",
    )
    rows = [
        (
            each.judge,
            *(_cells(rate)[1] for rate in (each.answered, each.parsed, each.repaired)),
            *_cells(each.accuracy)[1:],
            _cells(each.same)[1],
            number(each.usd_per_case, 6),
            *(number(seconds, 2) for seconds in each.latency_s),
        )
        for each in reports
    ]
    click.echo(table(head, rows))
    for each in reports:
        often = "once" if each.repeats == 1 else f"{each.repeats} times"
        asked = f"{each.questions} questions in {each.cases} cases, {often}"
        click.echo("\n" + click.style(visible(each.judge), bold=True, fg="cyan") + f" · {asked}")
        rights = [(name, *_cells(rate)) for name, rate in each.metrics.items()]
        click.echo(table(("metric", "n", "right", "95 % interval"), rights))
        click.echo("\n" + table(("direction", "n", "value", "95 % interval"), _directions(each)))
        click.echo("\n" + table(("trap", "pairs", "made wrong", "made right", "p", ""), [
            (one.trap, *map(str, (one.pairs, one.worse, one.better)), number(one.p, 4), "warn" if one.biased else "ok")
            for one in each.biases
        ]))  # fmt: skip
        for one in each.wrong if wrong else ():
            right, given = (
                ", ".join(f"{k} {v}" for k, v in stated.items()) for stated in (one.question.right, one.first or {})
            )
            click.echo(visible(f"wrong: {one.question.name} ({one.question.metric}): expected {right}; given {given}"))
        for finding in each.findings:
            click.echo(click.style("finding: ", fg="red") + visible(finding))
        if not each.findings and (few := unproven(each)):
            click.echo(
                click.style(
                    visible(f"nothing wrong was found, but too little was asked: {'; '.join(few)}"), fg="yellow"
                )
            )
        elif not each.findings:
            click.echo(click.style("nothing is wrong with this judge", fg="green"))


def _directions(report: JudgeReport) -> list[tuple[str, str, str, str]]:
    from sidejudge.scoring.statistics.agreement import ScaleError

    leaning = report.leaning
    rates = [(name, *_cells(rate)) for name, rate in leaning.rates().items()]
    errors = [
        (name, str(error.n), f"{error.value:+.2f}", f"{error.lower:+.2f} to {error.upper:+.2f}")
        if isinstance(error, ScaleError)
        else (name, "0", "-", "-")
        for name, error in leaning.errors().items()
    ]
    return rates + errors


def _cells(rate: Rate) -> tuple[str, str, str]:
    """How many, which share of them, and its interval."""
    from sidejudge.scoring.calibration.calibrated import ErrorRate

    if not isinstance(rate, ErrorRate):
        return "0", "-", "-"
    return f"{rate.n:.0f}", share(rate.value), f"{100 * rate.lower:.0f}–{100 * rate.upper:.0f} %"
