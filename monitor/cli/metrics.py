"""``sidejudge metrics``: the catalogue of metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .settings import config_option, format_option, loaded, own_name, show_json

if TYPE_CHECKING:
    from sidejudge.monitor.config.rubrics import Card


@click.command()
@click.option("--rubric", "only", metavar="NAME", callback=own_name, help="Only the metrics of this rubric.")
@format_option
@config_option
def metrics(only: str | None, form: str, config: Path | None) -> None:
    """List every metric by rubric: weight, who decides it, bands, blocker. 'explain METRIC' shows one in full."""
    from sidejudge.monitor.config.rubrics import cards, configured, run_score_json
    from sidejudge.scoring.runs.scores import FINAL, RUN_SCORES

    from .errors import CommandError

    rubrics = configured(loaded(config).config)
    names = (*rubrics, FINAL)
    if only is not None and only not in names:
        raise CommandError(f"--rubric: there is no rubric {only!r}", f"choose from {', '.join(names)}")
    of_run = RUN_SCORES if only in (None, FINAL) else ()
    found = [card for card in cards(rubrics) if only in (None, card.rubric.id)]
    if form == "json":
        show_json([*(card.to_json() for card in found), *map(run_score_json, of_run)])
        return
    for rubric in dict.fromkeys(card.rubric.id for card in found):
        for line in _section([card for card in found if card.rubric.id == rubric]):
            click.echo(line)
    if of_run:
        from .table import table

        click.echo(_title(FINAL, "computed over a run, by 'sidejudge scorecard'"))
        click.echo(table(("score", "formula", "source"), [(one.id, one.formula, one.source) for one in of_run]))


def _section(cards: list[Card]) -> Iterator[str]:
    """One rubric: what it is and when a case passes, then its metrics."""
    from sidejudge.monitor.config.rubrics import weight_text

    from .table import table

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
    from .table import paragraph

    plain = paragraph(" · ".join((name, *more)), 2)
    return click.style(name, bold=True, fg="cyan") + plain.removeprefix(name)
