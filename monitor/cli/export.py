"""``sidejudge export``: files for Prometheus and Grafana; scores that were given up, and a second chance for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from .errors import CALL, DATA, CommandError, ending
from .export_files import dashboards, mixin, objectives, rules
from .settings import config_option, loaded

if TYPE_CHECKING:
    from sidejudge.integrations.store.outbox import Dead
    from sidejudge.scoring.trace.span import JsonRecord

T = TypeVar("T")
_Command = TypeVar("_Command", bound=Callable[..., object])


@click.group()
def export() -> None:
    """Write rules, objectives and dashboards; look after scores that could not be written back."""


for _files in (rules, objectives, dashboards, mixin):
    export.add_command(_files)


def _store_option(command: _Command) -> _Command:
    option = click.option(
        "--store",
        type=click.Path(path_type=Path),
        help="The store's file; without it: store.path of the configuration.",
    )
    return config_option(option(command))


@export.command()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="json: one a line.")
@_store_option
def dead(form: str, store: Path | None, config: Path | None) -> int:
    """List scores that were given up, the oldest first, each with the reason. Exit 1 when there are any."""
    from sidejudge.integrations.store.archive import read_dead

    from .table import table

    found = _from(store, config, read_dead)
    if form == "json":
        for score in found:
            click.echo(json.dumps(_record(score)))
    elif found:
        rows = [(r["id"], r["trace_id"], r["name"] or "(to be deleted)", r["reason"]) for r in map(_record, found)]
        click.echo(table(("score", "trace", "name", "reason"), rows))
        click.echo("\nonce the cause is gone, 'sidejudge export replay --all' sends them again")
    else:
        click.echo("no score was given up")
    return DATA if found else 0


@export.command()
@click.argument("ids", nargs=-1, metavar="[SCORE]…")
@click.option("--all", "every", is_flag=True, help="All that were given up.")
@_store_option
def replay(ids: tuple[str, ...], every: bool, store: Path | None, config: Path | None) -> int:  # noqa: FBT001  # click's signature
    """Send scores again that were given up: these, or --all. A running monitor takes them up within seconds."""
    from sidejudge.integrations.store.archive import replay_dead

    if bool(ids) == every:
        raise CommandError("which scores?", "name them, or give --all; 'sidejudge export dead' lists them", CALL)
    count = _from(store, config, lambda path: replay_dead(path, None if every else ids))
    click.echo(f"{count} {'score waits' if count == 1 else 'scores wait'} to be sent again")
    return DATA if count < len(ids) else 0


def _from(store: Path | None, config: Path | None, use: Callable[[Path], T]) -> T:
    from sidejudge.integrations.store.errors import StoreError

    with ending(StoreError, remedy="give --store, or --config of the monitor"):
        return use(store or loaded(config).config.store.path)


def _record(score: Dead) -> JsonRecord:
    body = json.loads(score.body) if score.body is not None else {}
    return {
        "id": score.id, "trace_id": score.trace_id, "name": body.get("name"), "value": body.get("value"),
        "attempts": score.attempts, "reason": score.reason,
    }  # fmt: skip
