"""``sidejudge langfuse``: one-time work in a Langfuse."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import CALL, DATA, CommandError, ending
from .settings import config_option, instant_of, loaded

if TYPE_CHECKING:
    from sidejudge.monitor.offline.prune import ExcessScore

_DEFAULT_DAYS = 30


@click.group()
def langfuse() -> None:
    """Look after data in Langfuse."""


@langfuse.command()
@click.option("--from", "since", metavar="TIME", help=f"Scores from then on; default: {_DEFAULT_DAYS} days ago.")
@click.option("--dry-run", is_flag=True, help="Count what would be deleted, and delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def prune(since: str | None, dry_run: bool, yes: bool, config: Path | None) -> int:  # noqa: FBT001  # click's signature
    """Delete scores of ours that sinks.langfuse.scores does not ask for; a change of the setting leaves them there.

    The pass and the composite always stay. Each deletion is one request; Langfuse Cloud allows some hundred a day, and
    the next call goes on where one ended. Langfuse queues deletions (one in two minutes by default): open ones are
    counted, and not requested again within a week. Exit 1 when some could not be requested.
    """
    from sidejudge.integrations.langfuse.client import Langfuse
    from sidejudge.integrations.langfuse.errors import LangfuseError
    from sidejudge.integrations.langfuse.existing_scores import read_back
    from sidejudge.integrations.langfuse.probe import probe
    from sidejudge.monitor.config.rubrics import configured
    from sidejudge.monitor.offline.prune import AskedDeletions, ExcessScores, delete
    from sidejudge.scoring.trace.time_units import DAY_NS

    settings = loaded(config).config
    sink = settings.sinks.langfuse
    if sink is None:
        raise CommandError("no sinks.langfuse is configured", "name the configuration with --config", CALL)
    now_ns = time.time_ns()
    from_ns = now_ns - _DEFAULT_DAYS * DAY_NS if since is None else instant_of("--from", since)

    async def find() -> list[ExcessScore]:
        async with Langfuse(sink.access) as server:
            known = await probe(server)
            excess = ExcessScores(server, configured(settings).values(), sink.scores, v3=known.scores_v3)
            return [each async for found in excess.found(from_ns=from_ns, to_ns=now_ns + DAY_NS) for each in found]

    async def remove(found: list[ExcessScore]) -> tuple[list[str], LangfuseError | None, int]:
        async with Langfuse(sink.access) as server:
            done, error = await delete(server, found)
            asked.add(done)
            known = await probe(server)
            return done, error, len(await read_back(server, done, v3=known.scores_v3))

    asked = AskedDeletions(settings.store.path, sink.base_url)
    with ending(LangfuseError, naming=f"{sink.base_url}: ", remedy="'sidejudge doctor' shows what is wrong"):
        everything = asyncio.run(find())
        found = [each for each in everything if each.id not in asked]
        _report(everything, found, sink.scores)
        if not found:
            return 0
        if dry_run:
            click.echo(f"{len(found)} scores would be deleted")
            return DATA
        if not yes and not click.confirm(f"Delete {len(found)} scores at {sink.base_url}?"):
            return DATA
        done, error, left = asyncio.run(remove(found))
    click.echo(f"asked for {len(done)} of {len(found)} deletions; {left} of these scores are still there")
    if error is not None:
        click.echo(f"it ended early: {error}; call it again later", err=True)
        return DATA
    return 0


def _report(everything: Sequence[ExcessScore], found: Sequence[ExcessScore], which: str) -> None:
    before = len(everything) - len(found)
    if before:
        click.echo(f"asked for before, and still there: {before}")
    for name, count in sorted(Counter(each.name for each in found).items()):
        click.echo(f"{name}: {count}")
    if not found:
        every = f"nothing to delete: every score there is one that scores: {which} asks for"
        click.echo("nothing more to ask for" if before else every)
