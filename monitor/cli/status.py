"""``sidejudge status``: the status of a running monitor."""

from __future__ import annotations

from collections.abc import Mapping

import click

from .ask import ask, url_option


@click.command()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@url_option
def status(url: str, form: str) -> None:
    """Show, for each service and rubric, whether it is healthy, and on what evidence."""
    from .errors import CommandError  # noqa: PLC0415

    answer = ask(url, "/v1/status")
    if not isinstance(answer, Mapping):
        raise CommandError(f"{url}/v1/status does not answer as a monitor does", "name a monitor's address with --url")
    if form == "json":
        import json  # noqa: PLC0415

        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        return
