"""``sidejudge store``: the file that holds a monitor's working state.

``sidejudge forget``: remove the data of traces, a user, a session, or a period.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sidejudge.scoring.lexical.amount import amount

from .errors import CALL, DATA, CommandError, ending
from .settings import config_option, instant_of, loaded
from .terminal import waiting

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config


@click.group()
def store() -> None:
    """Look after the store of a monitor."""


@store.command()
@click.option("--store", "path", type=click.Path(path_type=Path), help="The file; default: store.path of --config.")
@config_option
def recover(path: Path | None, config: Path | None) -> int:
    """Move the readable rows of a damaged store into a new one in its place; the damaged file is kept beside it.

    The monitor must not run. Exit 1 when something was lost, with a list of it.
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


@click.command()
@click.argument("trace_ids", nargs=-1, metavar="[TRACE_ID]...")
@click.option("--user", "users", multiple=True, metavar="ID", help="All traces of this user.")
@click.option("--session", "sessions", multiple=True, metavar="ID", help="All traces of this session.")
@click.option("--before", metavar="TIME", help="All traces that ended before, as 2026-11-01 or 2026-11-01T12:00Z.")
@click.option("--langfuse", is_flag=True, help="Delete their scores in Langfuse too, and items made of them.")
@click.option("--store", type=click.Path(path_type=Path), help="The store's file; default: store.path of --config.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def forget(  # noqa: PLR0917  # click passes options by name
    trace_ids: tuple[str, ...], users: tuple[str, ...], sessions: tuple[str, ...], before: str | None,
    langfuse: bool, store: Path | None, yes: bool, config: Path | None,  # noqa: FBT001  # click's signature
) -> int:  # fmt: skip
    """Forget traces: spans, turns, verdicts, quotations, cached answers and vectors are erased and overwritten.

    The monitor may run. Cached answers of judges and vectors cannot be assigned to traces, so all of them are erased;
    repeated questions cost again. Exit 1 when nothing of them was held.
    """
    from sidejudge.integrations.store.erasure import erase, held_traces
    from sidejudge.integrations.store.errors import StoreError
    from sidejudge.monitor.offline.forget import Selection, histories

    if not (trace_ids or users or sessions or before):
        raise CommandError("what is to be forgotten?", "name trace ids, --user, --session or --before", CALL)
    settings = loaded(config).config
    path = store or settings.store.path
    selection = Selection(
        traces=frozenset(map(_trace_id, trace_ids)), users=frozenset(users), sessions=frozenset(sessions),
        before_ns=instant_of("--before", before) if before is not None else None,
    )  # fmt: skip
    with ending(StoreError, remedy="name the file with --store, and check its permissions"):
        with waiting("looking for them"):
            found = list(selection.selected(held_traces(path)))
        requests = [selection.request(found, destination) for destination in histories(settings)]
        if not found and not requests:
            click.echo("nothing is held of them")
            if langfuse and selection.traces:
                _forget_items({trace.hex() for trace in selection.traces}, settings)
            return DATA
        if not yes and not click.confirm(f"Erase {amount(len(found), 'trace')} from {path}?"):
            return 0
        with waiting("erasing and overwriting"):
            erased = erase(path, found, scores=langfuse, now_ns=time.time_ns(), entries=requests)
    rows = ", ".join(f"{count} {name}" for name, count in sorted(erased.rows.items()))
    click.echo(f"forgot {amount(erased.traces, 'trace')} ({rows})")
    if not erased.rewritten:
        click.echo("a monitor uses the store: what was deleted is overwritten, the file keeps its size")
    for place in histories(settings).values():
        click.echo(f"their rows in {place} are erased as the monitor delivers")
    if settings.sinks.jsonl is not None:
        click.echo(
            f"verdicts that were written to {settings.sinks.jsonl.path} are still there: remove them by trace_id"
        )
    if langfuse:
        click.echo("their scores in Langfuse are deleted as the monitor delivers")
        _forget_items({trace.hex() for trace in (*selection.traces, *found)}, settings)
    return 0


def _forget_items(trace_ids: set[str], settings: Config) -> None:
    """Delete the items that were made of these traces because they failed."""
    import asyncio

    from sidejudge.integrations.langfuse.client import Langfuse
    from sidejudge.integrations.langfuse.datasets import delete_items
    from sidejudge.integrations.langfuse.errors import LangfuseError

    sink = settings.sinks.langfuse
    if sink is None or sink.failure_dataset is None:
        return
    name = sink.failure_dataset.name

    async def delete() -> int:
        async with Langfuse(sink.access) as langfuse:
            return await delete_items(langfuse, name, trace_ids)

    remedy = f"everything else is erased; call it again with their trace ids: {' '.join(sorted(trace_ids))}"
    with ending(LangfuseError, naming=f"dataset {name}: ", remedy=remedy):
        click.echo(f"dataset {name}: deleted {amount(asyncio.run(delete()), 'item')}")


def _trace_id(text: str) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != 16:
        raise CommandError(f"{text!r} is no trace id", "a trace id has 32 hexadecimal digits", CALL)
    return found
