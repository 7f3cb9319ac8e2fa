"""``sidejudge doctor``: examine this machine and this installation."""

from __future__ import annotations

import os
from pathlib import Path

import click

from .errors import DATA
from .progress import waiting
from .settings import config_option, format_option, show_json


@click.command()
@config_option
@click.option("--notify", is_flag=True, help="Send a test notice to everybody whom alerts.notify names.")
@format_option
def doctor(config: Path | None, form: str, *, notify: bool) -> int:
    """Examine the installation, the configuration, ports, store, disk and clock. Exit 1 when something fails."""
    from sidejudge.monitor.config import ConfigError, Loaded, resolve

    from .doctor_checks import examine
    from .table import table

    loaded: Loaded | None = None
    refused: ConfigError | None = None
    try:
        loaded = resolve(config, os.environ)
    except ConfigError as error:
        refused = error
    with waiting("examining"):
        findings = list(examine(loaded, refused, notify=notify))
    rows = [(f.grade, f.subject, f.found, f.remedy) for f in findings]
    if form == "json":
        show_json([dict(zip(("grade", "what", "found", "remedy"), row, strict=True)) for row in rows])
    else:
        click.echo(table(("", "what", "found", "remedy"), rows))
    return DATA if any(f.grade == "fail" for f in findings) else 0
