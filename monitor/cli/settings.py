"""Options that several commands have, those with a form of their own, and a configuration or its mistakes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from sidejudge.scoring.trace.time_units import MINUTE_NS

from .errors import CommandError, ending, warn

if TYPE_CHECKING:
    from sidejudge.integrations.langfuse.observations import Window
    from sidejudge.monitor.config import Loaded
    from sidejudge.monitor.config.match import MatchSection
    from sidejudge.monitor.config.units import Duration

Function = TypeVar("Function", bound=Callable[..., object])
_JSON = "sidejudge.json"
_REMEDY = "'sidejudge help KEY' explains a key; /help/reference/configuration of a monitor lists all with defaults"
_WHOLE_NS = 30 * MINUTE_NS
"""Traces of Langfuse that began this long ago count as complete."""


class FiniteRange(click.FloatRange):
    """A finite number within bounds: ``nan`` lies outside none of them."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Raises ``click.BadParameter``."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a finite number", param, ctx)
        return found


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


def instant_of(option: str, text: str) -> int:
    """The time in ns since the epoch, UTC where it names no zone; ``CommandError`` names the option."""
    from sidejudge.integrations.langfuse.observations import instant_ns

    found = instant_ns(text)
    if found is None:
        raise CommandError(f"{option}: {text!r} is no time", f"for example {option} 2026-11-01T12:00Z")
    return found


def window_of(since: str, until: str | None) -> Window:
    """The start times of ``--from`` and ``--to``, which is half an hour ago where it is not given."""
    from sidejudge.integrations.langfuse.observations import Window

    from_ns = instant_of("--from", since)
    to_ns = time.time_ns() - _WHOLE_NS if until is None else instant_of("--to", until)
    if to_ns <= from_ns:
        raise CommandError("--to: is not after --from", "name a later time")
    return Window(from_ns=from_ns, to_ns=to_ns)


def duration_of(option: str, text: str, example: str) -> Duration:
    """A length of time; ``CommandError`` names the option."""
    from sidejudge.monitor.config.units import parse_duration

    with ending(ValueError, naming=f"{option}: ", remedy=f"for example {option} {example}"):
        return parse_duration(text)


def pairs_of(given: Iterable[str], option: str, form: str, example: str) -> Iterator[tuple[str, str]]:
    """The two sides of each, as in ``KEY=VALUE``; ``CommandError`` names the option."""
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CommandError(f"{option}: {text!r} is not {form}", f"for example {option} {example}")
        yield key, value


def match_of(where: Iterable[str], option: str) -> MatchSection:
    """The condition that all ``where`` make together; a key that is given several times has a list of values.

    ``CommandError`` names the option and the key of a wrong one.
    """
    from pydantic import ValidationError

    from sidejudge.monitor.config.match import MatchSection

    given: dict[str, list[str]] = {}
    for key, value in pairs_of(where, option, "KEY=GLOB", "environment=production"):
        given.setdefault(key, []).append(value)
    try:
        return MatchSection.model_validate({key: found if found[1:] else found[0] for key, found in given.items()})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise CommandError(f"{option}: {place}: {first['msg']}", "the keys are those of a route's match") from None


def loaded(path: Path | None) -> Loaded:
    """The configuration in force, or an error that lists all its mistakes."""
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
