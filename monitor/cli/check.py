"""``sidejudge check``: is this configuration valid, and what will a monitor do with it?

``sidejudge doctor``: are this machine and this installation fit for it?
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from .errors import DATA, CommandError, warn
from .progress import waiting
from .settings import config_option, format_option, runnable, show_json

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config, Loaded

    from .doctor_checks import CheckResult

Row: TypeAlias = tuple[str, str, str, str]
PROBED = ("", "what", "found", "remedy")
PROBED_KEYS = ("grade", "what", "found", "remedy")
_REMEMBERED = 500
"""Traces of the store that routes are held against."""
_GIVEN = 12
"""Values that are shown without --all."""


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@config_option
@click.option("--all", "--verbose", "everything", is_flag=True, help="Every value in force, alerts and memory.")
@click.option("--probe", is_flag=True, help="Ask what it names, too: judge, Langfuse, datasets, queues, prompts.")
@format_option
def check(file: Path | None, config: Path | None, form: str, *, everything: bool, probe: bool) -> int:
    """Validate FILE (or --config FILE) and the environment, and show what a monitor will do with it.

    Exit 2 with every mistake at once. What is valid but will disappoint is a warning. With --all every value in force
    and where it comes from, what is watched and what raises an alert, and how much memory it takes at most, part by
    part; JSON holds all of it. With --probe everything outside that it names is asked whether it is there, as 'doctor'
    does; the exit code is 1 unless all of it is. Without FILE the embedded defaults and the environment are checked.
    """
    from sidejudge.monitor.alerting.plan import thin_traffic
    from sidejudge.monitor.config.warnings import cautions
    from sidejudge.monitor.runtime.memory_bound import memory_bound

    from .table import table

    resolved = runnable(file or config)
    if form == "json":
        return _show_json(resolved, probe=probe)
    if everything:
        _show_all(resolved)
    else:
        _show_outline(resolved, sum(part.max_bytes for part in memory_bound(resolved.config)))
    for cause, remedy in (*cautions(resolved.config), *thin_traffic(resolved.config), *_silent(resolved)):
        warn(cause, remedy)
    more = "" if everything else "; --all shows every value"
    click.echo(f"\nconfiguration ok, fingerprint {resolved.config.fingerprint[:12]}{more}")
    if not probe:
        return 0
    rows = _probed(resolved)
    click.echo("\n" + table(PROBED, rows) if rows else "\nnothing outside is named")
    return _exit_code(rows)


def _probed(resolved: Loaded) -> list[Row]:
    from .doctor_checks import reached
    from .progress import waiting

    with waiting("asking"):
        return _rows(reached(resolved))


def _rows(findings: Iterable[CheckResult]) -> list[Row]:
    return [(each.grade, each.subject, each.found, each.remedy) for each in findings]


def _records(rows: Iterable[Row]) -> list[dict[str, str]]:
    return [dict(zip(PROBED_KEYS, row, strict=True)) for row in rows]


def _exit_code(rows: Iterable[Row]) -> int:
    return DATA if any(grade == "fail" for grade, *_ in rows) else 0


def _show_outline(resolved: Loaded, memory_bytes: int) -> None:
    from sidejudge.monitor.config.summary import summary

    from .check_outline import left_out, outline
    from .table import paragraph, table, visible

    for what, how in (*outline(resolved.config, memory_bytes), *_costs(resolved.config)):
        click.echo(paragraph(visible(f"{what:<10} {how}"), 11))
    given = [row for row in summary(resolved) if row[2] != "default"]
    if given:
        click.echo("\n" + table(("set", "value", "from"), given[:_GIVEN]))
        if len(given) > _GIVEN:
            click.echo(f"and {len(given) - _GIVEN} more")
    absent = list(left_out(resolved.config))
    if absent:
        click.echo("\n" + table(("what does not happen", "what would do it"), absent))


def _costs(config: Config) -> Iterator[tuple[str, str]]:
    """What judging costs; a judge that cannot be priced, for its extra is not installed, costs the check nothing."""
    from .check_outline import judging_costs

    try:
        yield from judging_costs(config)
    except CommandError as error:
        yield "costs", f"not known: {error.cause}"


def _judging(config: Config) -> list[dict[str, object]]:
    from dataclasses import asdict

    from .check_outline import TYPICAL_TOKENS
    from .plan import costs_of_judging

    try:
        return [asdict(each) for each in costs_of_judging(config, TYPICAL_TOKENS)]
    except CommandError:
        return []


def _show_all(resolved: Loaded) -> None:
    from sidejudge.monitor.alerting.build import WATCHED, watched
    from sidejudge.monitor.config.summary import summary
    from sidejudge.monitor.deliver.langfuse.probe import allowed_rates
    from sidejudge.monitor.runtime.memory_bound import memory_bound

    from .table import table

    click.echo(table(("key", "value", "from"), summary(resolved)))
    click.echo("\nwhat is watched, and when it changes status:")
    click.echo(table(WATCHED, watched(resolved.config)))
    parts = list(memory_bound(resolved.config))
    rows = [(part.name, f"{part.max_bytes / 2**20:,.0f} MiB", part.keys) for part in parts]
    total = sum(part.max_bytes for part in parts) / 2**20
    click.echo("\nmemory, at most:")
    click.echo(table(("for", "at most", "decided by"), [*rows, ("in all", f"{total:,.0f} MiB", "")]))
    if (rates := allowed_rates(resolved.config)) is not None:
        click.echo(f"\nscores to Langfuse, at most:\n{rates}")


def _silent(resolved: Loaded) -> Iterator[tuple[str, str]]:
    """Routes that match none of the traces that the store remembers; none where there is no store yet."""
    from sidejudge.integrations.store.archive import read_traces
    from sidejudge.integrations.store.errors import StoreUnavailable
    from sidejudge.monitor.route.silent_routes import REMEDY, silent_in

    try:
        traces = read_traces(resolved.config.store.path, reason=None, service=None, limit=_REMEMBERED)
    except StoreUnavailable:
        return
    for line in silent_in(resolved.config.routes, traces):
        yield line, REMEDY


def _show_json(resolved: Loaded, *, probe: bool) -> int:
    from sidejudge.monitor.alerting.build import WATCHED, watched
    from sidejudge.monitor.alerting.plan import thin_traffic
    from sidejudge.monitor.config.summary import summary
    from sidejudge.monitor.config.warnings import cautions
    from sidejudge.monitor.runtime.memory_bound import memory_bound

    rows = _probed(resolved) if probe else []
    show_json({
        "values": [dict(zip(("key", "value", "from"), row, strict=True)) for row in summary(resolved)],
        "watched": [dict(zip(WATCHED, row, strict=True)) for row in watched(resolved.config)],
        "memory": [
            {"for": part.name, "max_bytes": part.max_bytes, "keys": part.keys}
            for part in memory_bound(resolved.config)
        ],
        "warnings": [
            {"cause": cause, "remedy": remedy}
            for cause, remedy in (*cautions(resolved.config), *thin_traffic(resolved.config), *_silent(resolved))
        ],
        "judging": _judging(resolved.config),
        "fingerprint": resolved.config.fingerprint,
        **({"probed": _records(rows)} if probe else {}),
    })  # fmt: skip
    return _exit_code(rows)


@click.command()
@config_option
@click.option("--notify", is_flag=True, help="Send a test notice to everybody whom alerts.notify names.")
@format_option
def doctor(config: Path | None, form: str, *, notify: bool) -> int:
    """Examine the installation, the configuration, ports, store, disk and clock. Exit 1 when something fails."""
    from sidejudge.monitor.config import ConfigError, resolve

    from .doctor_checks import examine
    from .table import table

    loaded: Loaded | None = None
    refused: ConfigError | None = None
    try:
        loaded = resolve(config, os.environ)
    except ConfigError as error:
        refused = error
    with waiting("examining"):
        rows = _rows(examine(loaded, refused, notify=notify))
    if form == "json":
        show_json(_records(rows))
    else:
        click.echo(table(PROBED, rows))
    return _exit_code(rows)
