"""``sidejudge metrics``: the catalogue of metrics."""

from __future__ import annotations

import click


@click.command()
@click.option("--rubric", "only", metavar="NAME", help="Only the metrics of this rubric.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def metrics(only: str | None, form: str) -> None:
    """List every metric: its rubric, weight, bands, blocker and source. 'explain METRIC' shows one in full."""
    from monitor.catalogue import cards, run_score_json  # noqa: PLC0415
    from scoring.rubrics import RUBRICS  # noqa: PLC0415
    from scoring.runs.scores import FINAL, RUN_SCORES  # noqa: PLC0415

    from .errors import CommandError  # noqa: PLC0415
    from .table import table  # noqa: PLC0415

    names = (*RUBRICS, FINAL)
    if only is not None and only not in names:
        raise CommandError(f"--rubric: there is no rubric {only!r}", f"choose from {', '.join(names)}")
    of_run = RUN_SCORES if only in (None, FINAL) else ()
    found = [card for card in cards() if only in (None, card.rubric.id)]
    if form == "json":
        import json  # noqa: PLC0415

        click.echo(
            json.dumps(
                [*(card.to_json() for card in found), *map(run_score_json, of_run)], indent=2, ensure_ascii=False
            )
        )
        return
    head = ("metric", "rubric", "weight", "bands", "blocker", "source")
    rows = [
        (c.id, c.rubric.id, f"{c.criterion.weight:g}", c.bands, c.blocker, c.criterion.metric.source) for c in found
    ]
    rows += [(score.id, FINAL, "-", "-", "-", score.source) for score in of_run]
    click.echo(table(head, rows))
