"""``sidejudge calibrate --prompts A B``: two wordings or judges on the same labelled cases, and what each costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from .engine import EngineChoice, read_verdicts
from .errors import DATA, CommandError
from .settings import show_json
from .terminal import number, progress, table

if TYPE_CHECKING:
    from sidejudge.monitor.offline.engine.engine import Engine
    from sidejudge.scoring.calibration.paired_judges import JudgedCases, PairedJudges
    from sidejudge.scoring.runs.label_line import LabelLine


_CONFIGURATIONS: Final = (".yaml", ".yml")


def calibrate_prompts(
    labels: Path, files: tuple[Path, Path], form: str, engine: Engine, *, cases: Path | None, choice: EngineChoice
) -> int:
    """Read labels and both files of verdicts, and show which judge people agree with more.

    Of a configuration in place of verdicts the verdicts are made, of ``cases`` by the rubrics of the labels.
    """
    from sidejudge.monitor.offline.score.verdict_source import read_labels
    from sidejudge.scoring.calibration.paired_judges import JudgedCases, compare, grouped

    taken: list[LabelLine] = []
    with progress(2 * sum(file.stat().st_size for file in files), "bytes") as shown:
        bad = read_labels(labels, taken.append, lambda text: shown.report(f"{labels}, {text}"), with_verdicts=False)
        if not taken:
            raise CommandError(f"LABELS: {labels} holds no label", "'sidejudge calibrate --help' shows one")
        by_subject = grouped(taken)
    rubrics = tuple(dict.fromkeys(given.rubric for given in taken))
    files = _judged(files[0], cases, rubrics, choice), _judged(files[1], cases, rubrics, choice)
    with progress(2 * sum(file.stat().st_size for file in files), "bytes") as shown:
        a, b = (JudgedCases(by_subject) for _ in files)
        for judged, file in zip((a, b), files, strict=True):
            bad += read_verdicts(file, judged, shown, engine).bad_lines
    for judged, file in zip((a, b), files, strict=True):
        if not judged.cases:
            raise CommandError(
                f"--prompts: {file} holds no verdict on a case that was labelled",
                "judge the labelled cases by both: 'sidejudge score CASES --config … --output …'",
            )
    found = list(compare(a, b))
    if form == "json":
        costs = [{"usd": judged.usd, "verdicts": judged.cases, "unpriced": judged.unpriced} for judged in (a, b)]
        show_json({"metrics": [each.to_json() for each in found], "a": costs[0], "b": costs[1]})
        return DATA if bad else 0
    for name, judged, file in zip("AB", (a, b), files, strict=True):
        click.echo(f"{name}: {file} · {judged.cases} labelled verdicts · {_cost(judged)}")
    _show(found)
    return DATA if bad else 0


def _judged(file: Path, cases: Path | None, rubrics: tuple[str, ...], engine: EngineChoice) -> Path:
    """The verdicts of a configuration on the labelled cases; a file of verdicts is itself."""
    if file.suffix not in _CONFIGURATIONS:
        return file
    if cases is None:
        raise CommandError(
            f"--prompts: {file} is a configuration, and no --cases are given for it to judge",
            "name the labelled cases: --cases FILE",
        )
    from .score import score

    verdicts = file.with_suffix(".verdicts.jsonl")
    judge: Callable[..., int] = score.callback  # type: ignore[assignment]  # click's type of it is that of any command
    judge(
        cases=str(cases), out=str(verdicts), shards=None, chosen=rubrics, form=None, overwrite=False, repeat=None,
        keep_outputs=False, config=file, **engine._asdict(),
    )  # fmt: skip
    return verdicts


def calibrate_examples(configs: tuple[Path, Path], named: tuple[str, ...], form: str) -> int:
    """Ask the default judges of two configurations about the labelled examples of ready rubrics, and compare them."""
    from sidejudge.scoring.calibration.paired_judges import compare_answers

    from .try_judge import report_on_examples

    a, b = (report_on_examples(config, named) for config in configs)
    found = list(compare_answers(a.answers, b.answers))
    if form == "json":
        show_json(
            {"metrics": [each.to_json() for each in found],
             **{name: {"judge": of.judge, "usd": of.usd, "cases": of.cases} for name, of in (("a", a), ("b", b))}}
        )  # fmt: skip
        return 0
    for name, of, config in (("A", a, configs[0]), ("B", b, configs[1])):
        cost = "what it costs is not known" if of.usd is None else f"${of.usd:.4f}"
        click.echo(f"{name}: {config} · {of.judge} · {of.questions} questions in {of.cases} cases · {cost}")
    _show(found)
    return 0


def _show(found: Sequence[PairedJudges]) -> None:
    heads = ("rubric", "metric", "figure", "n", "A", "B", "B - A", "95 % interval", "p", "people agree more with")
    click.echo(table(heads, list(map(_row, found))))


def _row(each: PairedJudges) -> tuple[str, ...]:
    between = "-" if each.lower is None else f"{number(each.lower)} to {number(each.upper)}"
    chance = "< 0.001" if each.p is not None and each.p < 0.001 else number(each.p)
    figures = map(number, (each.a, each.b, each.difference))
    return each.rubric, each.metric, each.unit, str(each.n), *figures, between, chance, each.better


def _cost(judged: JudgedCases) -> str:
    known = judged.cases - judged.unpriced
    if not known:
        return "what they cost is not known"
    rest = f", {judged.unpriced} without a cost" if judged.unpriced else ""
    return f"${judged.usd:.4f}, ${judged.usd / known:.6f} each{rest}"
