"""Configuration page: every value in force. Secrets are struck before they come here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from .card import card, table
from .html import escape, frame
from .pills import pill


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value in force, as text. ``given``: somebody said so; otherwise it is the default."""

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
    sections = "".join(
        _section(name, list(settings))
        for name, settings in groupby(page.settings, lambda each: each.key.partition(".")[0].partition("[")[0])
    )
    body = (
        f'<header><h1>Configuration</h1><span class="soft">version {escape(page.version)} · fingerprint '
        f"<code>{escape(page.fingerprint)}</code> · what was given is bold, secrets are never shown"
        f"</span></header>{_cautions(page.cautions)}{sections}"
    )
    return frame("Configuration · sidejudge", body, here="/configuration")


def _cautions(cautions: Sequence[tuple[str, str]]) -> str:
    if not cautions:
        return ""
    items = "".join(
        f'<li>{pill("warning", "caution")}<div>{escape(cause, limit=600)}<div class="why">{escape(remedy, limit=600)}'
        "</div></div></li>"
        for cause, remedy in cautions
    )
    return card("cautions", "Cautions", f'<ul class="alerts">{items}</ul>', note="valid, but not what it may seem")


def _section(name: str, settings: Sequence[Setting]) -> str:
    caption = f"Settings of {name}: key, value, and whether it was given"
    return card(f"section-{escape(name)}", name, table(caption, ("Key", "Value", "From"), map(_row, settings)))


def _row(setting: Setting) -> str:
    value = escape(setting.value, limit=2000)
    return (
        f'<tr class="setting"><th scope="row" class="id">{escape(setting.key, limit=120)}</th>'
        f"<td>{f'<b>{value}</b>' if setting.given else value}<td>{'given' if setting.given else 'default'}</tr>"
    )
