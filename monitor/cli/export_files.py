"""``sidejudge export rules|dashboards|mixin``: what Prometheus and Grafana load, under this configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from .errors import CALL, CommandError
from .settings import config_option, loaded

_runbooks = click.option("--runbooks", metavar="URL", help="Address of the folder of runbooks, for links in alerts.")
_folder = click.option(
    "--to",
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder to write into.",
)


@click.command()
@click.option(
    "--form",
    type=click.Choice(["prometheus", "operator", "inhibit"]),
    default="prometheus",
    help="A rule file, a PrometheusRule object, or inhibitions for Alertmanager.",
)
@_runbooks
@config_option
def rules(form: str, runbooks: str | None, config: Path | None) -> None:
    """Print recording and alerting rules with the guards, windows and mode of the configuration."""
    from dashboards.rules.forms import inhibit_rules, prometheus_rule, rule_file
    from monitor.alerting.build import declaration

    declared = declaration(loaded(config).config)
    if form == "inhibit":
        text = inhibit_rules(declared)
    else:
        text = (rule_file if form == "prometheus" else prometheus_rule)(declared, runbooks)
    click.echo(text, nl=False)


@click.command()
@_folder
@config_option
def dashboards(folder: Path, config: Path | None) -> None:
    """Write the Grafana dashboards as JSON, with a ConfigMap and provisioning.

    They ask for what the rules under the same configuration record: window and thresholds are those of --config.
    """
    from dashboards.grafana import forms
    from monitor.alerting.build import declaration

    declared = declaration(loaded(config).config)
    more = {
        "configmap.yaml": forms.config_map(declared),
        "provider.yaml": forms.provider(),
        "datasource.yaml": forms.data_source(),
    }
    _write(folder, {**forms.dashboards(declared), **more})


@click.command()
@_folder
@_runbooks
@config_option
def mixin(folder: Path, runbooks: str | None, config: Path | None) -> None:
    """Write rules and dashboards as a mixin for jsonnet."""
    from dashboards.mixin import mixin as files
    from monitor.alerting.build import declaration

    _write(folder, files(declaration(loaded(config).config), runbooks))


def _write(folder: Path, files: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
            click.echo(str(folder / name))
    except OSError as error:
        raise CommandError(
            f"cannot write into {folder}: {error.strerror}", "give another folder with --to", CALL
        ) from None
