"""``sidejudge calibrate``: how far verdicts agree with people, and what pass rate people would have found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .engine import EngineChoice, engine_of, engine_options, read_verdicts
from .errors import DATA, CommandError
from .settings import config_option, format_option, show_json
from .terminal import progress, table, visible

if TYPE_CHECKING:
    from sidejudge.monitor.offline.engine.engine import Engine
    from sidejudge.scoring.calibration.calibrated import Calibrated, Figure
    from sidejudge.scoring.calibration.calibration import Calibration
    from sidejudge.scoring.runs.label_line import Said

_READINGS = 2


@click.command()
@click.argument("labels", type=click.Path(path_type=Path), required=False)
@click.option("--verdicts", type=click.Path(path_type=Path), help="What 'score' or the monitor wrote of these cases.")
@format_option
@click.option("--embedding", "pairs", metavar="PAIRS", help="Fit the model's thresholds; 'shipped': to our pairs.")
@click.option("--write", is_flag=True, help="With --embedding: write the thresholds into the file of --config.")
@click.option(
    "--prompts",
    nargs=2,
    type=click.Path(path_type=Path),
    metavar="A B",
    help="Two configurations (YAML), or files of verdicts: which judge or wording do people agree with more?",
)
@click.option(
    "--cases", type=click.Path(path_type=Path), help="With two configurations: the labelled cases, which both judge."
)
@click.option(
    "--rubric", "named", multiple=True, metavar="NAME",
    help="With two configurations: compare on the labelled examples of this ready rubric; repeatable.",
)  # fmt: skip
@engine_options
@config_option
def calibrate(
    labels: Path | None,
    verdicts: Path | None,
    form: str,
    *,
    pairs: str | None,
    write: bool,
    prompts: tuple[Path, Path] | None,
    cases: Path | None,
    named: tuple[str, ...],
    config: Path | None,
    engine: EngineChoice,
) -> int:
    """Compare verdicts with the labels that people gave in LABELS (JSON Lines), rubric by rubric.

    A label: {"case_id": "c1", "rubric": "qa", "label": true, "by": "ann"}. It may name a trace_id instead, and a
    metric, whose label is true or false, a number, or one of its ratings. Without --verdicts each line states our
    verdict too, as "verdict". Shown are raw agreement, Cohen's kappa, weighted kappa, AC1, true-positive and
    true-negative rate with 95 % intervals, the confusion table, and the pass rate, raw and corrected for the judge's
    errors. What is unknown is a dash with its reason. Bad lines are reported, and the exit code is 1.

    With --embedding no labels are read. PAIRS (JSON Lines) holds pairs that people call the same or different:
    {"kind": "statement", "one": "…", "other": "…", "same": true}; the other kind is "entity", for names. The thresholds
    of evaluators.embedding are fitted to them, and shown beside those of the seeds with how well both separate.

    With --prompts two wordings of a prompt, or two judges, are compared on the same labels, case by case. A and B are
    verdicts that 'score' wrote of these cases, or two configurations: then the cases of --cases are judged by both,
    into A.verdicts.jsonl and B.verdicts.jsonl beside them, from which a second call goes on. Without LABELS, --rubric
    names ready rubrics whose labelled examples both judge. Shown are the share of right answers of each (for numbers
    the mean distance), the difference with its 95 % interval, its p-value, and the cost of both.

    --workers and --engine have the verdicts read and compared by several processes; every figure is the same.
    """
    from sidejudge.scoring.calibration.calibration import Calibration

    if pairs is not None:
        from .calibrate_embedding import calibrate_embedding

        return calibrate_embedding(pairs, config, form, write=write)
    _fit(prompts, cases, named, labelled=labels is not None)
    if named and prompts is not None:
        from .calibrate_prompts import calibrate_examples

        return calibrate_examples(prompts, named, form)
    if labels is None:
        raise CommandError("no LABELS are given, and no --embedding", "'sidejudge calibrate --help' shows both")
    if prompts is not None and verdicts is not None:
        raise CommandError("--prompts and --verdicts are both given", "--prompts names both files of verdicts")
    for name, file in (("LABELS", labels), ("--verdicts", verdicts), *(("--prompts", each) for each in prompts or ())):
        if file is not None and not file.is_file():
            cause = "is no regular file" if file.exists() else "does not exist"
            raise CommandError(f"{name}: {file} {cause}", "name a file of JSON Lines; 'sidejudge calibrate --help'")
    if prompts is not None:
        from .calibrate_prompts import calibrate_prompts

        with engine_of(engine) as working:
            return calibrate_prompts(labels, prompts, form, working, cases=cases, choice=engine)
    calibration = Calibration()
    with engine_of(engine) as working:
        clean = _read(labels, verdicts, calibration, working)
    found = calibration.report()
    if form == "json":
        show_json([each.to_json() for each in found])
    else:
        for each in found:
            _show(each)
    return 0 if clean else DATA


def _fit(prompts: tuple[Path, Path] | None, cases: Path | None, named: tuple[str, ...], *, labelled: bool) -> None:
    """Refuse options that are given without what they go with: ``CommandError``."""
    if (named or cases is not None) and (prompts is None or labelled == bool(named)):
        raise CommandError(
            "--rubric goes with --prompts and no LABELS, --cases with --prompts and LABELS",
            "'sidejudge calibrate --help' shows both",
        )


def _read(labels: Path, verdicts: Path | None, calibration: Calibration, engine: Engine) -> bool:
    """Have labels and verdicts compared; whether every line was one."""
    from sidejudge.monitor.offline.score.verdict_source import read_labels

    total = None if verdicts is None else _READINGS * verdicts.stat().st_size
    with progress(total, "bytes") as shown:
        bad = read_labels(
            labels, calibration.take, lambda text: shown.report(f"{labels}, {text}"), with_verdicts=verdicts is None
        )
        if not calibration.labels:
            raise CommandError(f"LABELS: {labels} holds no label", "'sidejudge calibrate --help' shows one")
        if verdicts is None:
            calibration.add_stated()
        else:
            bad += read_verdicts(verdicts, calibration, shown, engine).bad_lines
        for count, words in (
            (bad, "lines that could not be read, and were skipped"),
            (calibration.replaced, "labels that the same person gave again; the last counts"),
            (calibration.unmet, "labels on cases without a verdict by their rubric"),
            (calibration.taught, "labels on cases that teach the judge (examples: labels), which measure nothing"),
        ):
            if count:
                shown.report(f"{words}: {count}")
    if calibration.unmet == calibration.labels:
        raise CommandError(
            "LABELS: no label is about a case that has a verdict by its rubric",
            "name the verdicts of the cases that were labelled, with the same case_id or trace_id and rubric",
        )
    return not bad


def _show(found: Calibrated) -> None:
    from sidejudge.scoring.lexical.shown_text import label
    from sidejudge.scoring.statistics.agreement import Confusion

    about = f"{label(found.rubric)} · {label(found.metric)}"
    undecided = f", {found.undecided} without a value of ours" if found.undecided else ""
    click.echo(click.style(visible(about), bold=True, fg="cyan") + f" · {found.n} pairs{undecided}")
    rows = [(name, *_cells(figure)) for name, figure in found.figures.items()]
    click.echo(table(("figure", "value", "lower", "upper", "note"), rows))
    if isinstance(found.confusion, Confusion) and found.n:
        names = [_name(each) for each in found.categories]
        counts = [(name, *map(str, row)) for name, row in zip(names, found.confusion.counts, strict=True)]
        click.echo("\n" + table(("people \\ verdicts", *names), counts))
    click.echo()


def _name(category: Said | bool) -> str:  # noqa: FBT001  # a category, not a switch
    if isinstance(category, bool):
        return "pass" if category else "fail"
    return category if isinstance(category, str) else f"{category:g}"


def _cells(figure: Figure) -> tuple[str, str, str, str]:
    from sidejudge.scoring.result.result import Unavailable
    from sidejudge.scoring.statistics.ppi import Corrected

    if isinstance(figure, Unavailable):
        return "-", "-", "-", figure.reason
    if isinstance(figure, float):
        return f"{figure:.4f}", "-", "-", ""
    value = figure.rate if isinstance(figure, Corrected) else figure.value
    return f"{value:.4f}", f"{figure.lower:.4f}", f"{figure.upper:.4f}", ""
