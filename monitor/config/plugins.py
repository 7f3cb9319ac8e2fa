"""Plugins: extensions from the entry points of installed packages. Each is loaded alone; one that fails is left out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

log = logging.getLogger("sidejudge.plugins")

METRICS: Final = "sidejudge.metrics"
RUBRICS: Final = "sidejudge.rubrics"
DIALECTS: Final = "sidejudge.dialects"
SINKS: Final = "sidejudge.sinks"
NOTIFIERS: Final = "sidejudge.notifiers"
GROUPS: Final = (METRICS, RUBRICS, DIALECTS, SINKS, NOTIFIERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One entry point: its group and name, the package that brings it, and its object or why there is none."""

    group: str
    name: str
    package: str
    value: object = None
    error: str | None = None


@cache
def plugins(group: str) -> tuple[Plugin, ...]:
    """The plugins of a group, loaded once in the life of a process. Those with metrics are loaded in others."""
    return tuple(_loaded(point) for point in sorted(_points()[group], key=lambda each: each.name))


@cache
def _points() -> dict[str, list[EntryPoint]]:
    """The entry points of all groups, read once: reading what all installed packages declare takes some 20 ms."""
    found = entry_points()
    return {group: list(found.select(group=group)) for group in GROUPS}


def _loaded(point: EntryPoint) -> Plugin:
    package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "unknown"
    if point.group == METRICS:
        return Plugin(group=point.group, name=point.name, package=package, value=point.value)
    try:
        return Plugin(group=point.group, name=point.name, package=package, value=point.load())
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a plugin raises, the monitor goes on without it
        cause = f"{type(error).__name__}: {error}"
        # It names all itself: in a notebook, whose logging nobody set up, a warning is its message alone.
        log.warning("plugin %s of %s cannot be loaded: %s", point.name, package, cause)
        return Plugin(group=point.group, name=point.name, package=package, error=cause)


def plugin(group: str, name: str) -> Plugin | None:
    """The plugin of a name; None where no installed package brings it."""
    return next((each for each in plugins(group) if each.name == name), None)


def factory(group: str, name: str) -> object:
    """The object of a plugin. If it cannot be loaded: a function that raises the cause, so that only its use fails."""
    found = plugin(group, name)
    if found is not None and found.error is None:
        return found.value
    cause = (
        f"{name} is not installed" if found is None else f"{name} of {found.package} cannot be loaded: {found.error}"
    )

    def unusable(**_: object) -> object:
        raise ImportError(cause)

    return unusable


def all_plugins() -> Iterator[Plugin]:
    """Those of all groups."""
    for group in GROUPS:
        yield from plugins(group)


def install_dialects() -> None:
    """Put the dialects of plugins before the built-in ones, because they know their own spans."""
    from sidejudge.integrations import dialects  # noqa: PLC0415  # only where traces are read
    from sidejudge.integrations.dialects.reading import Dialect  # noqa: PLC0415  # only where plug-ins are configured

    dialects.install([each.value for each in plugins(DIALECTS) if isinstance(each.value, Dialect)])
