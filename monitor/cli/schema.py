"""``sidejudge schema``: the JSON Schema of the configuration, a case, a scenario or a verdict."""

from __future__ import annotations

import click


@click.command()
@click.option("--configuration", "what", flag_value="configuration", default=True, help="Of the configuration file.")
@click.option("--case", "what", flag_value="case", help="Of a line of cases, as 'score' reads them.")
@click.option("--scenario", "what", flag_value="scenario", help="Of one scenario.")
@click.option("--verdict", "what", flag_value="verdict", help="Of a line of verdicts, as 'score' writes them.")
def schema(what: str) -> None:
    """Print a JSON Schema, for editors, charts and other programs: of the configuration unless an option says else."""
    from sidejudge.monitor.api.json_schemas import schema_text

    click.echo(schema_text(what), nl=False)
