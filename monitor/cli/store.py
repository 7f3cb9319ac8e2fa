"""``sidejudge store``: the file that holds a monitor's working state."""

from __future__ import annotations

from pathlib import Path

import click

from .errors import DATA, ending
from .settings import config_option, loaded


@click.group()
def store() -> None:
    """Look after the store of a monitor."""


@store.command()
@click.option("--store", "path", type=click.Path(path_type=Path), help="The file; default: store.path of --config.")
@config_option
def recover(path: Path | None, config: Path | None) -> int:
    """Put what can be read of a damaged store into a new one, in its place; the damaged file is kept beside it.

    The monitor must not run. Exits with 1 when something was lost, and names what.
    """
    from sidejudge.integrations.store.errors import StoreError
    from sidejudge.integrations.store.salvage import is_damaged, salvage

    file = path or loaded(config).config.store.path
    with ending(StoreError, remedy="stop the monitor that uses it, and make its folder writable"):
        if not is_damaged(file):
            click.echo(f"{file}: nothing is damaged" if file.exists() else f"{file}: there is no such file")
            return 0 if file.exists() else DATA
        found = salvage(file)
    click.echo(f"{file}: what could be read is in a new store; the damaged one is {found.kept_as}")
    for table, rows in found.rows.items():
        lost = found.lost.get(table, 0)
        if rows or lost != 0:
            missing = "how many are lost is not known" if lost is None else f"{lost} lost"
            click.echo(f"  {table:24} {rows} rows, {missing}")
    return DATA if found.lost else 0
