"""``sidejudge export rules|objectives|dashboards|mixin``: what others load to watch by this configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from sidejudge.scoring.notices.notice import check_runbooks

from .errors import CALL, CommandError
from .settings import config_option, loaded

_runbooks = click.option(
    "--runbooks", metavar="URL", help="Where runbooks lie, in place of `alerts.links.runbooks`, for links to them."
)
_FOR_ALERTMANAGER = ("alertmanager", "inhibit")
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
    type=click.Choice(["prometheus", "operator", "alertmanager", "inhibit", "grafana"]),
    default="prometheus",
    help="A rule file, a PrometheusRule object; a configuration of Alertmanager by severity, or its inhibitions alone; "
    "alerts as Grafana provisions them, beside the rule file, where there is no Alertmanager.",
)
@click.option(
    "--data-source", metavar="UID", default="prometheus", show_default=True, help="Grafana's data source (grafana)."
)
@_runbooks
@config_option
def rules(form: str, data_source: str, runbooks: str | None, config: Path | None) -> None:
    """Print recording and alerting rules with the guards, windows and mode of the configuration."""
    from sidejudge.dashboards.grafana.alert_rules import alert_rules
    from sidejudge.dashboards.rules.alertmanager import alertmanager, inhibit_rules
    from sidejudge.dashboards.rules.groups import prometheus_rule, rule_file
    from sidejudge.monitor.alerting.build import declaration

    settings = loaded(config).config
    declared, runbooks = declaration(settings), _checked(runbooks) or settings.alerts.links.runbooks
    if form in _FOR_ALERTMANAGER:
        text = (inhibit_rules if form == "inhibit" else alertmanager)(declared)
    elif form == "grafana":
        text = alert_rules(declared, runbooks, source=data_source)
    else:
        text = (rule_file if form == "prometheus" else prometheus_rule)(declared, runbooks)
    click.echo(text, nl=False)


@click.command()
@click.option("--form", type=click.Choice(["openslo", "sloth", "pyrra"]), required=True, help="Who reads them.")
@click.option(
    "--service",
    "services",
    multiple=True,
    metavar="NAME",
    help="A service that has objectives of its own; repeatable. Without: one a rubric, of all services together.",
)
@config_option
def objectives(form: str, services: tuple[str, ...], config: Path | None) -> int:
    """Print the pass rates that `alerts` asks for as service level objectives, over 30 days."""
    from sidejudge.dashboards.rules.objectives import objectives as declared_objectives
    from sidejudge.dashboards.rules.objectives import written_objectives
    from sidejudge.monitor.alerting.build import declaration
    from sidejudge.monitor.config.rubrics import reached, rubrics_of

    settings = loaded(config).config
    declared, known = declaration(settings), reached(settings)
    found = [
        each
        for service in dict.fromkeys(services) or (None,)
        for each in declared_objectives(
            declared,
            known if service is None else sorted(known.keys() & set(rubrics_of(settings, service))),
            () if service is None else (service,),
        )
    ]
    if not found:
        raise CommandError(
            "no rubric has an objective", "give a route a rubric, or alerts.thresholds.warning below 1", CALL
        )
    click.echo(written_objectives(form, found), nl=False)
    return 0


@click.command()
@_folder
@_runbooks
@config_option
def dashboards(folder: Path, runbooks: str | None, config: Path | None) -> None:
    """Write the Grafana dashboards as JSON, with a ConfigMap and provisioning.

    They ask for what the rules under the same configuration record: window and thresholds are those of --config.
    """
    from sidejudge.dashboards.grafana import forms
    from sidejudge.monitor.alerting.build import declaration

    settings = loaded(config).config
    declared, runbooks = declaration(settings), _checked(runbooks) or settings.alerts.links.runbooks
    more = {
        "configmap.yaml": forms.config_map(declared, runbooks),
        "provider.yaml": forms.provider(),
        "datasource.yaml": forms.data_source(),
    }
    _write(folder, {**forms.dashboards(declared, runbooks), **more})


@click.command()
@_folder
@_runbooks
@config_option
def mixin(folder: Path, runbooks: str | None, config: Path | None) -> None:
    """Write rules and dashboards as a mixin for jsonnet."""
    from sidejudge.dashboards.mixin import mixin as files
    from sidejudge.monitor.alerting.build import declaration

    settings = loaded(config).config
    _write(folder, files(declaration(settings), _checked(runbooks) or settings.alerts.links.runbooks))


def _checked(runbooks: str | None) -> str | None:
    try:
        return None if runbooks is None else check_runbooks(runbooks)
    except ValueError as error:
        raise CommandError(f"--runbooks {error}", "see 'sidejudge help alerts.links.runbooks'", CALL) from None


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
