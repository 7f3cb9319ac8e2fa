"""``sidejudge calibrate``: the agreement of verdicts with people, and the pass rate that people would find.

With ``--prompts A B`` two wordings or judges on the same labelled cases, and what each costs; with ``--embedding`` the
thresholds of a model of embeddings.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from .engine import EngineChoice, engine_of, engine_options, read_verdicts
from .errors import DATA, CommandError, ending
from .settings import config_option, format_option, runnable, show_json
from .terminal import number, progress, table, visible

if TYPE_CHECKING:
    from sidejudge.monitor.offline.engine import Engine
    from sidejudge.scoring.calibration.calibrated import Calibrated, Figure
    from sidejudge.scoring.calibration.calibration import Calibration
    from sidejudge.scoring.calibration.embedding_calibration import FittedThreshold, Separation
    from sidejudge.scoring.calibration.paired_judges import JudgedCases, PairedJudges
    from sidejudge.scoring.result.result import Unavailable
    from sidejudge.scoring.runs.label_line import LabelLine, LabelValue

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
    metric, whose label is true or false, a number, or one of its ratings. Without --verdicts each line also holds our
    verdict, as "verdict". The output has raw agreement, Cohen's kappa, weighted kappa, AC1, true-positive and
    true-negative rate with 95 % intervals, the confusion table, and the pass rate, raw and corrected for the judge's
    errors. An unknown value is a dash with its reason. Bad lines are reported, and the exit code is 1.

    With --embedding no labels are read. PAIRS (JSON Lines) holds pairs that people call the same or different:
    {"kind": "statement", "one": "…", "other": "…", "same": true}; the other kind is "entity", for names. The thresholds
    of evaluators.embedding are fitted to them, and shown beside those of the seeds with how well both separate.

    With --prompts two wordings of a prompt, or two judges, are compared on the same labels, case by case. A and B are
    verdicts that 'score' wrote of these cases, or two configurations: then the cases of --cases are judged by both,
    into A.verdicts.jsonl and B.verdicts.jsonl beside them, from which a second call goes on. Without LABELS, --rubric
    names ready rubrics whose labelled examples both judge. The output has the share of right answers of each (for
    numbers the mean distance), the difference with its 95 % interval, its p-value, and the cost of both.

    --workers and --engine have the verdicts read and compared by several processes; every figure is the same.
    """
    from sidejudge.scoring.calibration.calibration import Calibration

    if pairs is not None:
        return calibrate_embedding(pairs, config, form, write=write)
    _fit(prompts, cases, named, labelled=labels is not None)
    if named and prompts is not None:
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
    """Refuse options without the ones that they need: ``CommandError``."""
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
        repeated = 0
        if verdicts is None:
            calibration.add_stated()
        else:
            source = read_verdicts(verdicts, calibration, shown, engine)
            bad, repeated = bad + source.bad_lines, source.repeated
        for count, words in (
            (bad, "lines that could not be read, and were skipped"),
            (calibration.replaced, "labels that the same person gave again; the last counts"),
            (calibration.unmet, "labels on cases without a verdict by their rubric"),
            (calibration.taught, "labels on cases that teach the judge (examples: labels), which measure nothing"),
            (calibration.again, _AGAIN),
            (
                repeated,
                "verdicts on a case that has one by its rubric already; all count, as if they were several cases",
            ),
        ):
            if count:
                shown.report(f"{words}: {count}")
        for note in calibration.mixed():
            shown.report(note)
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


def _name(category: LabelValue | bool) -> str:  # noqa: FBT001  # a category, not a switch
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


_AGAIN: Final = "verdicts of runs after the first, which are left out: each case counts once"
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
    files = _verdicts_of(files[0], cases, rubrics, choice), _verdicts_of(files[1], cases, rubrics, choice)
    with progress(2 * sum(file.stat().st_size for file in files), "bytes") as shown:
        a, b = (JudgedCases(by_subject) for _ in files)
        for judged, file in zip((a, b), files, strict=True):
            bad += read_verdicts(file, judged, shown, engine).bad_lines
            if judged.again:
                shown.report(f"{file}, {_AGAIN}: {judged.again}")
    for judged, file in zip((a, b), files, strict=True):
        if not judged.cases:
            raise CommandError(
                f"--prompts: {file} holds no verdict on a case that was labelled",
                "judge the labelled cases by both: 'sidejudge score CASES --config … --out …'",
            )
    found = list(compare(a, b))
    if form == "json":
        costs = [{"usd": judged.usd, "verdicts": judged.cases, "unpriced": judged.unpriced} for judged in (a, b)]
        show_json({"metrics": [each.to_json() for each in found], "a": costs[0], "b": costs[1]})
        return DATA if bad else 0
    for name, judged, file in zip("AB", (a, b), files, strict=True):
        click.echo(f"{name}: {file} · {judged.cases} labelled verdicts · {_cost_text(judged)}")
    _show_pairs(found)
    return DATA if bad else 0


def _verdicts_of(file: Path, cases: Path | None, rubrics: tuple[str, ...], engine: EngineChoice) -> Path:
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
    _show_pairs(found)
    return 0


def _show_pairs(found: Sequence[PairedJudges]) -> None:
    heads = ("rubric", "metric", "figure", "n", "A", "B", "B - A", "95 % interval", "p", "people agree more with")
    click.echo(table(heads, list(map(_pair_row, found))))


def _pair_row(each: PairedJudges) -> tuple[str, ...]:
    between = "-" if each.lower is None else f"{number(each.lower)} to {number(each.upper)}"
    chance = "< 0.001" if each.p is not None and each.p < 0.001 else number(each.p)
    figures = map(number, (each.a, each.b, each.difference))
    return each.rubric, each.metric, each.unit, str(each.n), *figures, between, chance, each.better


def _cost_text(judged: JudgedCases) -> str:
    known = judged.cases - judged.unpriced
    if not known:
        return "what they cost is not known"
    rest = f", {judged.unpriced} without a cost" if judged.unpriced else ""
    return f"${judged.usd:.4f}, ${judged.usd / known:.6f} each{rest}"


def calibrate_embedding(pairs: str, config: Path | None, form: str, *, write: bool) -> int:
    """Fit the thresholds of the configured model to pairs, show them, and write them where that is wanted."""
    from sidejudge.integrations.embed import EmbeddingError
    from sidejudge.monitor.offline.calibrate_embedding import PairFileError, fit_thresholds, read_pairs
    from sidejudge.scoring.calibration.embedding_calibration import Separation

    section = runnable(config).config.evaluators.embedding
    if section is None:
        raise CommandError("no embeddings are configured", "name the model: evaluators.embedding, in --config")
    remedy = "'sidejudge calibrate --help' shows a line; 'shipped' stands for our pairs"
    with (
        ending(PairFileError, naming=f"--embedding: {pairs}: ", remedy=remedy),
        ending(EmbeddingError, naming="evaluators.embedding: ", remedy="try it again"),
    ):
        found = asyncio.run(fit_thresholds(section, read_pairs(pairs)))
    fitted: dict[str, float] = {
        each.kind: each.fitted.threshold for each in found if isinstance(each.fitted, Separation)
    }
    if form == "json":
        show_json([asdict(each) for each in found])
    else:
        _show_thresholds(section.model, found, fitted)
    if write and fitted:
        _write_thresholds(config, fitted)
    return 0 if len(fitted) == len(found) else DATA


def _show_thresholds(model: str, found: Sequence[FittedThreshold], fitted: dict[str, float]) -> None:
    rows = []
    for each in found:
        for name, separation in (("fitted", each.fitted), ("seeds'", each.seed)):
            expected = number(each.expected) if name == "fitted" else "-"
            rows.append(
                (each.kind, name, f"{each.n_same} / {each.n_different}", *_threshold_cells(separation), expected)
            )
    head = ("kind", "threshold", "same / different", "cosine", "same found", "different found", "balanced")
    click.echo(click.style(model, bold=True, fg="cyan"))
    click.echo(table((*head, "95 % interval", "on pairs left out"), rows))
    for each in found:
        if each.excluded:
            click.echo(f"{each.kind}: {each.excluded} pairs are left out: figures or denials decide them, or a judge")
        if each.kind not in fitted:
            click.echo(f"{each.kind}: {getattr(each.fitted, 'reason', '')}")
    if fitted:
        stated = ", ".join(f"{name}: {value:g}" for name, value in fitted.items())
        click.echo(f"evaluators.embedding:\n  thresholds: {{{stated}}}")


def _threshold_cells(found: Separation | Unavailable) -> tuple[str, ...]:
    from sidejudge.scoring.calibration.embedding_calibration import Separation

    if not isinstance(found, Separation):
        return ("-",) * 5
    return (
        number(found.threshold), number(found.same), number(found.different), number(found.balanced),
        f"{found.lower:.2f}–{found.upper:.2f}",
    )  # fmt: skip


def _write_thresholds(config: Path | None, fitted: dict[str, float]) -> None:
    from sidejudge.monitor.config import ConfigError, resolve
    from sidejudge.monitor.offline.calibrate_embedding import NotWrittenError, write_thresholds

    if config is None:
        raise CommandError("--write: there is no configuration file", "name it with --config")
    with ending(NotWrittenError, ConfigError, naming="--write: ", remedy="copy the lines above into the configuration"):
        write_thresholds(config, fitted, lambda path: resolve(path, os.environ))
    click.echo(f"{config}: written; rubrics that embeddings answer have another version now", err=True)
