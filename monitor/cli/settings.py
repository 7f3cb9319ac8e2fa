"""The option ``--config``, and a configuration or its mistakes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from .errors import CommandError, warn

if TYPE_CHECKING:
    from monitor.config import Loaded

Function = TypeVar("Function", bound=Callable[..., object])


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
    """``--format table|json``, the same for every command that shows something."""
    return click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)(
        function
    )


def show_json(value: object) -> None:
    """Print a value as indented JSON."""
    import json

    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def own_name(_: click.Context, __: click.Parameter, given: str | Iterable[str] | None) -> str | tuple[str, ...] | None:
    """Callback of options and arguments that name rubrics: an alias becomes the rubric's own name."""
    from monitor.config.values import rubric_named

    if isinstance(given, str):
        return rubric_named(given)
    return given if given is None else tuple(map(rubric_named, given))


def loaded(path: Path | None) -> Loaded:
    """The configuration in force, or a refusal that lists everything that is wrong with it."""
    from monitor.config import ConfigError, resolve  # pydantic is slow to import

    try:
        found = resolve(path, os.environ)
    except ConfigError as error:
        many = len(error.problems) > 1
        remedy = f"mend {'all of these' if many else 'it'}; monitor/CONFIG.md lists every key with its default"
        if all(problem.unreadable for problem in error.problems):
            remedy = "check the path and the permissions"
        raise CommandError(str(error), remedy) from error
    for old, new in found.renamed:
        warn(f"{old} is the old name of {new}; the next version does not read it")
    return found


def runnable(path: Path | None) -> Loaded:
    """The same for a command that judges: refused as well when a part that it needs is not installed."""
    from monitor.config.extras import missing
    from monitor.config.plugins import install_dialects

    found = loaded(path)
    install_dialects()
    for cause, remedy in missing(found.config):
        raise CommandError(cause, remedy)
    return found
