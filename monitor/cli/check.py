"""``sidejudge check``: is this configuration valid, and which values are in force?"""

from __future__ import annotations

from pathlib import Path

import click

from .settings import config_option, format_option, runnable, show_json


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@config_option
@format_option
def check(file: Path | None, config: Path | None, form: str) -> None:
    """Validate FILE (or --config FILE) and the environment, and show every value in force and where it comes from.

    Then what is watched with these values, what raises an alert, and how much memory it takes at most.
    Exit 2 with every mistake at once. What is valid but will disappoint is a warning. Without FILE the
    embedded defaults and the environment are checked.
    """
    from monitor.alerting.condition_table import WATCHED, watched
    from monitor.config.summary import summary
    from monitor.config.warnings import cautions
    from monitor.deliver.langfuse.probe import allowed_rates
    from monitor.runtime.memory_bound import memory_bound

    from .table import table

    resolved = runnable(file or config)
    if form == "json":
        show_json({
            "values": [dict(zip(("key", "value", "from"), row, strict=True)) for row in summary(resolved)],
            "watched": [dict(zip(WATCHED, row, strict=True)) for row in watched(resolved.config)],
            "memory": [
                {"for": part.name, "max_bytes": part.max_bytes, "keys": part.keys}
                for part in memory_bound(resolved.config)
            ],
            "warnings": [{"cause": cause, "remedy": remedy} for cause, remedy in cautions(resolved.config)],
            "fingerprint": resolved.config.fingerprint,
        })  # fmt: skip
        return
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
    for cause, remedy in cautions(resolved.config):
        click.echo(f"{click.style('warning:', fg='yellow')} {cause}\nremedy: {remedy}", err=True)
    click.echo(f"\nconfiguration ok, fingerprint {resolved.config.fingerprint[:12]}")
