"""``sidejudge scorecard``: verdict files of several models side by side."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sidejudge.monitor.offline.whole_file import write_whole

from .engine import EngineChoice, engine_of, engine_options, read_verdicts
from .errors import DATA, CommandError, check_known, ending, warn
from .settings import config_option, loaded
from .terminal import ProgressDisplay, progress, visible

if TYPE_CHECKING:
    from sidejudge.monitor.offline.engine import Engine
    from sidejudge.scoring.runs.final import Option
    from sidejudge.scoring.runs.tally import ModelTally
    from sidejudge.scoring.scorecards.scorecard import Scorecard
    from sidejudge.scoring.verdict.rubric import Rubric

_MAX_NAME = 60
_READINGS = 2


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL=VERDICTS.jsonl...")
@click.option("--cost", "costs", multiple=True, metavar="MODEL=USD", help="US dollars per 1000 calls; repeatable.")
@click.option("--weight", "weights", multiple=True, metavar="TASK=SHARE", help="Share of your calls; repeatable.")
@click.option(
    "--format", "form", type=click.Choice(["markdown", "html", "json"]), default="markdown", show_default=True
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write here, not to standard output.")
@engine_options
@config_option
def scorecard(
    *,
    models: tuple[str, ...],
    costs: tuple[str, ...],
    weights: tuple[str, ...],
    form: str,
    out: Path | None,
    engine: EngineChoice,
    config: Path | None,
) -> int:
    """Compare models by their verdicts: every metric, final score (option A or B), cost-adjusted rank, blockers.

    Each MODEL=FILE is one column: verdicts as 'score' writes them, of the rubrics qa, entity, text, translation and
    benchmarks, and of those that --config declares. The cost is that of --cost, else the mean cost_usd of the calls.
    --weight divides the tasks' weight as your production workload is divided (qa=0.5 entity=0.5: the others count
    nothing). A later revision of a verdict replaces the earlier one. An unknown value is a dash with its reason. Bad
    lines are reported, and the exit code is 1.

    --workers and --engine have the lines read and counted by several processes; every figure is the same.
    """
    files = {name: Path(file) for name, file in _pairs("MODEL=VERDICTS.jsonl", models).items()}
    reported = {name: _cost(name, text) for name, text in _pairs("--cost", costs).items()}
    check_known(reported, files, "--cost: there is no model")
    options = _options({name: _share(name, text) for name, text in _pairs("--weight", weights).items()})
    for name, file in files.items():
        if not file.is_file():
            cause = "is no regular file, and it is read twice" if file.exists() else "does not exist"
            raise CommandError(f"{name}: {file} {cause}", "name a file of verdicts, as 'sidejudge score' writes it")
        if out is not None and out.exists() and out.samefile(file):
            raise CommandError(f"--out: {out} is the verdicts of {name}", "name another file")

    from sidejudge.scoring.scorecards.scorecard import scorecard as filled

    own = loaded(config).config.declared
    with engine_of(engine) as working:
        tallies, clean = _read(files, own, working)
    card = filled(tallies, costs=reported, options=options, own=own)
    for note in card.notes:
        warn(visible(note))
    text = _rendered(card, form, aligned=out is None and sys.stdout.isatty())
    if out is None:
        click.echo(text, nl=False)
    else:
        write_whole(out, text)
    return 0 if clean else DATA


def _pairs(what: str, given: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` arguments by name."""
    pairs: dict[str, str] = {}
    for each in given:
        name, sign, value = each.partition("=")
        name = name.encode(errors="replace").decode()  # bytes that are no UTF-8 can be given, and not written
        if not (sign and name.strip() and value):
            raise CommandError(f"{what}: {each!r} is not NAME=VALUE", f"write {what if '=' in what else 'NAME=VALUE'}")
        if len(name) > _MAX_NAME:
            raise CommandError(f"{what}: a name of {len(name)} characters", f"use {_MAX_NAME} at most")
        if name in pairs:
            raise CommandError(f"{what}: {name!r} is given twice", "give each name once")
        pairs[name] = value
    return pairs


def _number(text: str) -> float:
    """The number that is written; NaN where none is."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _cost(name: str, text: str) -> float:
    if not 0 < (number := _number(text)) <= 1e12:
        raise CommandError(f"--cost: {name}={text!r} is not a cost", "give US dollars per 1000 calls, above 0")
    return number


def _share(name: str, text: str) -> float:
    if not math.isfinite(number := _number(text)):
        raise CommandError(f"--weight: {name}={text!r} is not a number", "give each task its share, together 1")
    return number


def _options(split: Mapping[str, float]) -> tuple[Option, Option]:
    from sidejudge.scoring.runs.final import OPTION_A, OPTION_B, TASKS, with_split

    if not split:
        return OPTION_A, OPTION_B
    with ending(ValueError, naming="--weight: ", remedy=f"give {', '.join(TASKS)} their shares, together 1"):
        return with_split(OPTION_A, split), with_split(OPTION_B, split)


def _read(files: Mapping[str, Path], own: Mapping[str, Rubric], engine: Engine) -> tuple[dict[str, ModelTally], bool]:
    """The tally of each model, and whether every line was a verdict."""
    from sidejudge.scoring.scorecards.scorecard import empty_tally

    tallies, clean, before = {}, True, 0
    sizes = {name: _READINGS * file.stat().st_size for name, file in files.items()}
    with progress(sum(sizes.values()), "bytes") as shown:
        for name, file in files.items():
            tallies[name] = empty_tally(own)
            clean &= _read_one(name, file, tallies[name], shown, before=before, engine=engine)
            before += sizes[name]
    return tallies, clean


def _read_one(name: str, file: Path, tally: ModelTally, shown: ProgressDisplay, *, before: int, engine: Engine) -> bool:
    source = read_verdicts(file, tally, shown, engine, name=f"{name}: ", before=before)
    others = ", ".join(sorted(tally.others))
    for count, words in (
        (source.bad_lines, "no verdicts, and were skipped"),
        (source.replaced, "replaced by a later revision"),
        (source.repeated, "about a case that has a verdict of the same rubric already; all count"),
        (sum(tally.others.values()), f"of rubrics that the scorecard does not show ({others})"),
    ):
        if count:
            shown.report(f"{name}: lines that are {words}: {count}")
    if not tally.rubrics:
        raise CommandError(
            visible(f"{name}: {file} has no verdict that the scorecard shows"),
            "score the cases with --rubric qa, entity, text, translation or benchmarks, or name the --config that "
            "declares their rubric",
        )
    return not source.bad_lines


def _rendered(card: Scorecard, form: str, *, aligned: bool) -> str:
    if form == "json":
        import json

        return json.dumps(card.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    from sidejudge.dashboards.scorecard import markdown, scorecard_page

    return scorecard_page(card) if form == "html" else markdown(card, aligned=aligned)
