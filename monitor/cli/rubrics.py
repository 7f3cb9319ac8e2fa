"""``sidejudge metrics``: the catalogue of metrics; ``sidejudge rubrics``: ready rubrics to start from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import CommandError, check_known, near
from .settings import config_option, format_option, loaded, own_name, show_json
from .terminal import paragraph, table

if TYPE_CHECKING:
    from sidejudge.monitor.config.library import ReadyRubric
    from sidejudge.monitor.config.rubrics import Card


@click.command()
@click.option("--rubric", "only", metavar="NAME", callback=own_name, help="Only the metrics of this rubric.")
@format_option
@config_option
def metrics(only: str | None, form: str, config: Path | None) -> None:
    """List every metric by rubric: weight, who decides it, bands, blocker. 'explain METRIC' shows one in full."""
    from sidejudge.monitor.config.rubrics import cards, configured, run_score_json
    from sidejudge.scoring.runs.final import FINAL, RUN_SCORES

    rubrics = configured(loaded(config).config)
    check_known(() if only is None else (only,), (*rubrics, FINAL), "--rubric: there is no rubric")
    of_run = RUN_SCORES if only in (None, FINAL) else ()
    found = [card for card in cards(rubrics) if only in (None, card.rubric.id)]
    if form == "json":
        show_json([*(card.to_json() for card in found), *map(run_score_json, of_run)])
        return
    for rubric in dict.fromkeys(card.rubric.id for card in found):
        for line in _section([card for card in found if card.rubric.id == rubric]):
            click.echo(line)
    if of_run:
        click.echo(_title(FINAL, "computed over a run, by 'sidejudge scorecard'"))
        click.echo(table(("score", "formula", "source"), [(one.id, one.formula, one.source) for one in of_run]))


def _section(cards: list[Card]) -> Iterator[str]:
    """One rubric: what it is and when a case passes, then its metrics."""
    from sidejudge.monitor.config.rubrics import weight_text

    rubric = cards[0].rubric
    passes = "its own conditions" if rubric.pass_mark is None else f"composite >= {rubric.pass_mark:g}"
    yield _title(rubric.id, rubric.title, f"passes: {passes}", rubric.source)
    rows = [
        (
            card.id,
            "opt-in" if card.criterion in rubric.opt_in else weight_text(card.criterion.weight),
            ", ".join(card.criterion.metric.methods),
            card.bands.replace("= ", "="),  # a bound stays with its sign where a line ends
            card.blocker,
        )
        for card in cards
    ]
    yield table(("metric", "weight", "decided by", "bands", "blocker"), rows) + "\n"


def _title(name: str, *more: str) -> str:
    """The name and its description, no wider than the terminal."""
    plain = paragraph(" · ".join((name, *more)), 2)
    return click.style(name, bold=True, fg="cyan") + plain.removeprefix(name)


@click.group()
def rubrics() -> None:
    """Ready rubrics: list them, look at one, or add one to your own folder and change it there."""


@rubrics.command("list")
@format_option
def listed(form: str) -> None:
    """List the ready rubrics: what each is for, who decides it, and where its questions come from."""
    from sidejudge.monitor.config.library import library

    rows = [(each.name, each.title, _kinds(each), each.source) for each in library().values()]
    if form == "json":
        show_json([dict(zip(("rubric", "title", "by", "source"), row, strict=True)) for row in rows])
        return
    click.echo(table(("rubric", "title", "by", "source"), rows))
    click.echo("'sidejudge rubrics show NAME' shows one, 'sidejudge rubrics add NAME' writes it into a folder")


@rubrics.command()
@click.argument("name")
def show(name: str) -> None:
    """Show a ready rubric as it would be written."""
    click.echo(_named(name).text, nl=False)


@rubrics.command()
@click.argument("name")
@click.option("--to", "--out", "folder", type=click.Path(path_type=Path), default=Path("rubrics"), show_default=True,
              help="Folder to write it into.")  # fmt: skip
@click.option("--examples", is_flag=True, help="Write its labelled examples as well (JSON Lines of cases).")
def add(name: str, folder: Path, examples: bool) -> None:  # noqa: FBT001  # click's signature
    """Write a ready rubric into a folder of yours. Existing files are left alone."""
    ready = _named(name)
    wanted = {f"{name}.yaml": ready.text}
    if examples:
        import json

        lines = [json.dumps(each, ensure_ascii=False) for each in ready.examples]
        wanted[f"{name}.examples.jsonl"] = "\n".join([*lines, ""])
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in wanted.items():
        path = folder / file
        try:
            with path.open("x", encoding="utf-8") as new:
                new.write(text)
        except FileExistsError:
            raise CommandError(
                f"{path} is there already", "change that one, or name another folder with --to"
            ) from None
        click.echo(f"wrote {path}")
    click.echo(f"put it into force with\n\n  rubric_files: [{folder}/*.yaml]\n  routes:\n    - rubrics: [{name}]\n")


def _named(name: str) -> ReadyRubric:
    from sidejudge.monitor.config.library import library

    found = library()
    if name not in found:
        meant = near(name, found, "'sidejudge rubrics list' lists all")
        raise CommandError(f"there is no ready rubric {name!r}", meant)
    return found[name]


def _kinds(ready: ReadyRubric) -> str:
    metrics = ready.declared.get("metrics")
    kinds = {"ask": "judge", "check": "check", "cel": "CEL", "python": "Python"}
    found = [kinds[kind] for each in metrics or () if isinstance(each, dict) for kind in kinds if kind in each]  # type: ignore[union-attr]  # a list
    return ", ".join(dict.fromkeys(found))
