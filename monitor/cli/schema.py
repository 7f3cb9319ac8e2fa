"""``sidejudge schema``: the JSON Schema of the configuration."""

from __future__ import annotations

import json

import click


@click.command()
def schema() -> None:
    """Print the JSON Schema of the configuration, for editors and charts."""
    from monitor.config.summary import json_schema

    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
