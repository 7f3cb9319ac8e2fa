"""The option ``--config``, and a configuration or its mistakes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from .errors import CommandError, warn

if TYPE_CHECKING:
    from sidejudge.monitor.config import Loaded

Function = TypeVar("Function", bound=Callable[..., object])
_JSON = "sidejudge.json"
_REMEDY = "'sidejudge help KEY' explains a key; /help/reference/configuration of a monitor lists all with defaults"


def config_option(function: Function) -> Function:
    """``--config FILE``, also from ``SIDEJUDGE_CONFIG``."""
    return click.option(
        "--config",
        "config",
        envvar="SIDEJUDGE_CONFIG",
        type=click.Path(path_type=Path),
        help="Configuration file (YAML). Without it the embedded defaults and the environment hold.",
    )(function)


def format_option(function: Function) -> Function:
    """``--format table|json``, and ``--json`` for short: the same for every command that shows something."""
    shown = click.option(
        "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True, callback=_form
    )(function)
    return click.option(
        "--json", is_flag=True, is_eager=True, expose_value=False, callback=_as_json, help="The same as --format json."
    )(shown)


def _as_json(context: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001  # click's signature
    context.meta[_JSON] = wanted


def _form(context: click.Context, _: click.Parameter, given: str) -> str:
    return "json" if context.meta.get(_JSON) else given


def show_json(value: object) -> None:
    """Print a value as indented JSON."""
    import json

    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def own_name(_: click.Context, __: click.Parameter, given: str | Iterable[str] | None) -> str | tuple[str, ...] | None:
    """Callback of options and arguments that name rubrics: an alias becomes the rubric's own name."""
    from sidejudge.monitor.config.section import rubric_named

    if isinstance(given, str):
        return rubric_named(given)
    return given if given is None else tuple(map(rubric_named, given))


def loaded(path: Path | None) -> Loaded:
    """The configuration in force, or a refusal that lists everything that is wrong with it."""
    from sidejudge.monitor.config import ConfigError, resolve  # pydantic is slow to import
    from sidejudge.monitor.config.renamed import old_mode

    try:
        found = resolve(path, os.environ)
    except ConfigError as error:
        many = len(error.problems) > 1
        remedy = f"mend {'all of these' if many else 'it'}; {_REMEDY}"
        if all(problem.unreadable for problem in error.problems):
            remedy = "check the path and the permissions"
        raise CommandError(str(error), remedy) from error
    for old, new in found.renamed:
        warn(f"{old} is the old name of {new}; the next version does not read it")
    for cause, remedy in old_mode(found.config.alerts):
        warn(cause, remedy)
    return found


def runnable(path: Path | None) -> Loaded:
    """The same for a command that judges: refused as well when a part that it needs is not installed."""
    from sidejudge.integrations.dialects import map_attributes
    from sidejudge.monitor.config.extras import missing
    from sidejudge.monitor.config.plugins import install_dialects

    found = loaded(path)
    install_dialects()
    map_attributes(found.config.sources.attributes)
    for cause, remedy in missing(found.config):
        raise CommandError(cause, remedy)
    return found
