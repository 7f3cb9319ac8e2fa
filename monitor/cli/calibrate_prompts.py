"""``sidejudge calibrate --prompts A B``: two wordings or judges on the same labelled cases, and what each costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import DATA, CommandError
from .progress import ProgressDisplay, progress
from .settings import show_json
from .table import number, table

if TYPE_CHECKING:
    from sidejudge.monitor.offline.engine.engine import Engine
    from sidejudge.scoring.runs.label_line import LabelLine
    from sidejudge.scoring.runs.paired_judges import JudgedCases, PairedJudges


@dataclass(slots=True)
class _Labels:
    taken: list[LabelLine] = field(default_factory=list)

    def take(self, given: LabelLine) -> None:
        self.taken.append(given)


def calibrate_prompts(labels: Path, files: tuple[Path, Path], form: str, engine: Engine) -> int:
    """Read labels and both files of verdicts, and show which judge people agree with more."""
    from sidejudge.monitor.offline.score.label_source import read_labels
    from sidejudge.scoring.runs.paired_judges import JudgedCases, compare, grouped

    taken = _Labels()
    with progress(2 * sum(file.stat().st_size for file in files), "bytes") as shown:
        bad = read_labels(labels, taken, lambda text: shown.report(f"{labels}, {text}"), with_verdicts=False)
        if not taken.taken:
            raise CommandError(f"LABELS: {labels} holds no label", "'sidejudge calibrate --help' shows one")
        by_subject = grouped(taken.taken)
        a, b = (JudgedCases(by_subject) for _ in files)
        for judged, file in zip((a, b), files, strict=True):
            bad += _read(judged, file, shown, engine)
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
    heads = ("rubric", "metric", "figure", "n", "A", "B", "B - A", "95 % interval", "p", "people agree more with")
    click.echo(table(heads, list(map(_row, found))))
    return DATA if bad else 0


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


def _read(judged: JudgedCases, file: Path, shown: ProgressDisplay, engine: Engine) -> int:
    from sidejudge.monitor.offline.score.verdict_source import VerdictSource

    source = VerdictSource(path=file, complain=lambda text: shown.report(f"{file}, {text}"), engine=engine)
    source.read_into(judged, lambda read: shown.step(read, None))
    return source.bad_lines
