"""Configuration page: every value in force. Secrets are struck before they come here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from .rendering import render


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value in force, as text. ``given``: the configuration names it; otherwise it is the default."""

    key: str
    value: str
    given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationPage:
    """The settings in the order of the declaration, and (cause, remedy) of what they ask for and will not get."""

    settings: Sequence[Setting]
    cautions: Sequence[tuple[str, str]]
    version: str
    fingerprint: str


def configuration_page(page: ConfigurationPage) -> str:
    """The page as HTML."""
    by_section = groupby(page.settings, lambda each: each.key.partition(".")[0].partition("[")[0])
    sections = [(name, list(settings)) for name, settings in by_section]
    return render(
        "configuration.html", title="Configuration · sidejudge", here="/configuration", page=page, sections=sections
    )
