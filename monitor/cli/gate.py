"""``sidejudge gate``: whether a run may be released."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import DATA, CommandError, ending, warn
from .settings import FiniteRange, format_option, show_json
from .terminal import table, visible, waiting

if TYPE_CHECKING:
    from sidejudge.monitor.offline.score.runs import Runs
    from sidejudge.scoring.result.result import Unavailable
    from sidejudge.scoring.runs.metadata import MetadataReport
    from sidejudge.scoring.scorecards.gates import GateResult, Release, RunReport
    from sidejudge.scoring.statistics.descriptive import MeanAndDeviation

_COUNTS = ("n", "passed", "failed", "incomplete", "evaluator_errors", "timed_out")
_MOST_COLUMNS = 5


_RATIOS = 100
"""From here up a figure is a time or a count, shown without four decimals."""


@click.command()
@click.argument("verdicts", nargs=-1, type=click.Path(path_type=Path))
@click.option("--rubric", default="answer", show_default=True, help="Rubric whose verdicts are held against gates.")
@click.option("--pass-rate", type=FiniteRange(0, 1), help="Least pass rate; not for 'answer', whose gates are fixed.")
@click.option("--run-metadata", "metadata", type=click.Path(path_type=Path), help="The run's metadata (YAML or JSON).")
@click.option("--release", is_flag=True, help="A release, no rehearsal: metadata and pinned models are required.")
@click.option("--metadata-template", is_flag=True, help="Print run metadata to be filled in, and do nothing else.")
@format_option
def gate(
    *,
    verdicts: tuple[Path, ...],
    rubric: str,
    pass_rate: float | None,
    metadata: Path | None,
    release: bool,
    metadata_template: bool,
    form: str,
) -> int:
    """Check the verdicts of one rubric in VERDICTS (JSON Lines) against the release gates, each with value and bound.

    The gates of 'answer' are fixed. Those of any other rubric, yours too, are the pass rate (--pass-rate, 0.85), and at
    most 5 % of the cases without a decision.

    Several files are several runs of one benchmark, and so are the runs that 'score --repeat' writes into one; every
    run must meet every gate. From three runs on, mean and standard deviation are shown. Each verdict weighs the inverse
    of its sampling_probability; counts and totals are of the verdicts themselves. An unknown figure meets no gate. The
    four gates of 'answer' decide by themselves whether a run is release-ready; evaluator_error_rate and
    incomplete_rate show separately whether it is reliable. Exit 0 when it is both, 1 when it is not, 2 when the input
    is unusable.
    """
    from sidejudge.monitor.offline.score.runs import RUBRIC, Runs
    from sidejudge.scoring.scorecards.gates import GATES, PASS_RATE, decide, gates_of_any

    if rubric == RUBRIC and pass_rate is not None:
        raise CommandError(f"--pass-rate: the gates of {RUBRIC!r} are fixed", "leave it out, or name another --rubric")
    runs = Runs(rubric)
    gates = GATES if rubric == RUBRIC else gates_of_any(PASS_RATE if pass_rate is None else pass_rate)
    if metadata_template:
        _read(runs, verdicts)
        click.echo(_template(runs))
        return 0
    if not verdicts:
        raise CommandError("VERDICTS: no file of verdicts is named", "name what 'sidejudge score --out' wrote")
    if release and metadata is None:
        raise CommandError(
            "--run-metadata: a release needs the run's metadata", "'sidejudge gate --metadata-template' prints a page"
        )
    report = None if metadata is None else _metadata(metadata)
    _read(runs, verdicts)
    decision = decide(runs.aggregates(), report, strict=release, remarks=runs.remarks(), gates=gates)
    if form == "json":
        show_json(decision.to_json())
    else:
        _show(decision, every=rubric == RUBRIC)
    return 0 if decision.ready and decision.reliable else DATA


def _read(runs: Runs, files: tuple[Path, ...]) -> None:
    from sidejudge.monitor.offline.score.case_lines import lines
    from sidejudge.monitor.offline.score.runs import UnusableError

    known: set[Path] = set()
    for path in files:
        if path.resolve() in known:
            raise CommandError(f"VERDICTS: {path} is named twice", "name each run once")
        known.add(path.resolve())
        remedy = f"name a file that 'sidejudge score --rubric {runs.rubric}' wrote"
        with (
            ending(UnusableError, remedy=remedy), path.open("rb", buffering=1 << 20) as file,
            waiting(f"reading {path}"),
        ):  # fmt: skip
            runs.read(str(path), lines(file))


def _metadata(path: Path) -> MetadataReport:
    from sidejudge.monitor.offline.score.runs import MetadataError, read_metadata
    from sidejudge.scoring.runs.metadata import check_metadata

    remedy = "write a YAML or JSON object; --metadata-template prints one"
    with ending(MetadataError, naming="--run-metadata: ", remedy=remedy):
        return check_metadata(read_metadata(path, os.environ))


def _template(runs: Runs) -> str:
    from sidejudge.scoring.runs.metadata import template

    first = runs.first or {}
    judge = first.get("judge")
    stated = {
        "timestamp_utc": first.get("created_at"),
        "evaluator_model_id": judge.get("model") if isinstance(judge, dict) else None,
        "evaluator_prompt_template_version_or_hash": judge.get("prompt_version") if isinstance(judge, dict) else None,
    }
    return template({name: value for name, value in stated.items() if isinstance(value, str)})


def _show(decision: Release, *, every: bool) -> None:
    runs = [(f"run {number}", run) for number, run in enumerate(decision.runs, 1)]
    for label, run in runs:
        click.echo(visible(f"{label}: {run.name}"))
    rows = [
        ("ok" if g.met else "fail", label, g.gate.figure, _beside_bound(g), f"{g.gate.comparison} {g.gate.shown_bound}")
        for label, run in runs
        for g in run.gates
    ]
    click.echo("\n" + table(("", "run", "gate", "value", "bound"), rows))
    for label, run in runs:
        for result in run.gates:
            if not result.met:
                click.echo(visible(f"  {label}: {result.gate.figure}: {result.reason}"))
    click.echo("\n" + table(*_figures(runs[:_MOST_COLUMNS], every=every)))
    if len(runs) > _MOST_COLUMNS:
        click.echo(f"  and {len(runs) - _MOST_COLUMNS} runs more: --format json shows all")
    click.echo("\n" + table(("over runs", "mean", "sd", ""), [_spread(*each) for each in decision.repeats.items()]))
    click.echo()
    for refusal in decision.refusals:
        click.echo(visible(f"refused: {refusal}"))
    for warning in decision.warnings:
        warn(visible(warning))
    click.echo(click.style(*(("release-ready", "green") if decision.ready else ("not release-ready", "red"))))
    if not decision.reliable:
        click.echo(click.style("not reliable: too many samples have no grade or no decision", fg="red"))


def _beside_bound(result: GateResult) -> str:
    return "-" if result.value is None else result.gate.shown(result.value)


def _figures(runs: Sequence[tuple[str, RunReport]], *, every: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    reported = [run.aggregates for _, run in runs]
    rows = [(name, *(str(getattr(each, name)) for each in reported)) for name in _COUNTS]
    rows += [
        (name, *(_shown(each.figures[name]) for each in reported))
        for name in reported[0].figures
        if every or any(isinstance(each.figures[name], float) for each in reported)
    ]
    return ("figure", *(label for label, _ in runs)), rows


def _spread(figure: str, found: MeanAndDeviation | Unavailable) -> tuple[str, ...]:
    from sidejudge.scoring.result.result import Unavailable

    if isinstance(found, Unavailable):
        return figure, "-", "-", found.reason
    return figure, _shown(found.mean), _shown(found.sd), f"of {found.n} runs"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < _RATIOS else f"{value:.1f}"
    return str(value) if isinstance(value, int) else "-"
