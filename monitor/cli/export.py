"""``sidejudge export``: files for Prometheus and Grafana; scores that were given up, and resending them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from sidejudge.monitor.offline.whole_file import write_whole
from sidejudge.scoring.notices.notice import check_runbooks

from .errors import CALL, DATA, CommandError, ending
from .settings import config_option, loaded
from .terminal import table

if TYPE_CHECKING:
    from sidejudge.integrations.store.outbox import Dead
    from sidejudge.scoring.alerts.declaration import Declaration
    from sidejudge.scoring.trace.span import JsonRecord


@click.group()
def export() -> None:
    """Write rules, objectives and dashboards; look after scores that could not be written back."""


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


@export.command()
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
    from sidejudge.dashboards.grafana.files import alert_rules
    from sidejudge.dashboards.rules.alertmanager import alertmanager, inhibit_rules
    from sidejudge.dashboards.rules.groups import prometheus_rule, rule_file

    declared, runbooks = _declared(config, runbooks)
    if form in _FOR_ALERTMANAGER:
        text = (inhibit_rules if form == "inhibit" else alertmanager)(declared)
    elif form == "grafana":
        text = alert_rules(declared, runbooks, source=data_source)
    else:
        text = (rule_file if form == "prometheus" else prometheus_rule)(declared, runbooks)
    click.echo(text, nl=False)


@export.command()
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
    from sidejudge.scoring.lexical.shown_text import clean

    settings = loaded(config).config
    if not all(map(clean, services)):
        raise CommandError("--service: is empty", "name a service as its spans do, or leave it out", CALL)
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


@export.command()
@_folder
@_runbooks
@config_option
def dashboards(folder: Path, runbooks: str | None, config: Path | None) -> None:
    """Write the Grafana dashboards as JSON, with a ConfigMap and provisioning.

    They query the records of the rules under the same configuration: window and thresholds are those of --config.
    """
    from sidejudge.dashboards.grafana import files

    declared, runbooks = _declared(config, runbooks)
    more = {
        "configmap.yaml": files.config_map(declared, runbooks),
        "provider.yaml": files.provider(),
        "datasource.yaml": files.data_source(),
    }
    _write(folder, {**files.dashboards(declared, runbooks), **more})


@export.command()
@_folder
@_runbooks
@config_option
def mixin(folder: Path, runbooks: str | None, config: Path | None) -> None:
    """Write rules and dashboards as a mixin for jsonnet."""
    from sidejudge.dashboards.generated import mixin as files

    _write(folder, files(*_declared(config, runbooks)))


def _declared(config: Path | None, runbooks: str | None) -> tuple[Declaration, str | None]:
    """What the configuration watches, and where runbooks lie."""
    from sidejudge.monitor.alerting.build import declaration

    settings = loaded(config).config
    with ending(ValueError, naming="--runbooks ", remedy="see 'sidejudge help alerts.links.runbooks'"):
        given = None if runbooks is None else check_runbooks(runbooks)
    return declaration(settings), given or settings.alerts.links.runbooks


def _write(folder: Path, files: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_whole(folder / name, text)
            click.echo(str(folder / name))
    except OSError as error:
        raise CommandError(
            f"cannot write into {folder}: {error.strerror}", "give another folder with --to", CALL
        ) from None


T = TypeVar("T")
_Command = TypeVar("_Command", bound=Callable[..., object])


def _store_option(command: _Command) -> _Command:
    option = click.option(
        "--store",
        type=click.Path(path_type=Path),
        help="The store's file; without it: store.path of the configuration.",
    )
    return config_option(option(command))


@export.command()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="json: one a line.")
@_store_option
def dead(form: str, store: Path | None, config: Path | None) -> int:
    """List scores that were given up, the oldest first, each with the reason. Exit 1 when there are any."""
    from sidejudge.integrations.store.archive import read_dead

    found = _from(store, config, read_dead)
    if form == "json":
        for score in found:
            click.echo(json.dumps(_record(score)))
    elif found:
        rows = [(r["id"], r["trace_id"], r["name"] or "(to be deleted)", r["reason"]) for r in map(_record, found)]
        click.echo(table(("score", "trace", "name", "reason"), rows))
        click.echo("\nonce the cause is gone, 'sidejudge export replay --all' sends them again")
    else:
        click.echo("no score was given up")
    return DATA if found else 0


@export.command()
@click.argument("ids", nargs=-1, metavar="[SCORE]…")
@click.option("--all", "every", is_flag=True, help="All that were given up.")
@_store_option
def replay(ids: tuple[str, ...], every: bool, store: Path | None, config: Path | None) -> int:  # noqa: FBT001  # click's signature
    """Resend scores that were given up: these, or --all. A running monitor takes them up within seconds."""
    from sidejudge.integrations.store.archive import replay_dead

    if bool(ids) == every:
        raise CommandError("which scores?", "name them, or give --all; 'sidejudge export dead' lists them", CALL)
    count = _from(store, config, lambda path: replay_dead(path, None if every else ids))
    click.echo(f"{count} {'score waits' if count == 1 else 'scores wait'} to be sent again")
    return DATA if count < len(set(ids)) else 0


def _from(store: Path | None, config: Path | None, use: Callable[[Path], T]) -> T:
    from sidejudge.integrations.store.errors import StoreError

    with ending(StoreError, remedy="give --store, or --config of the monitor"):
        return use(store or loaded(config).config.store.path)


def _record(score: Dead) -> JsonRecord:
    body = json.loads(score.body) if score.body is not None else {}
    return {
        "id": score.id, "trace_id": score.trace_id, "name": body.get("name"), "value": body.get("value"),
        "attempts": score.attempts, "reason": score.reason,
    }  # fmt: skip
