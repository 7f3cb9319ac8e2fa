"""Parts of pages, rendered on their own."""

from __future__ import annotations

from sidejudge.dashboards.pages.rendering import environment, render


def card(name: str, **values: object) -> str:
    """A card of the status page; empty where it has nothing to show."""
    return render(f"status/{name}.html", **{"now_ns": 0, **values}).strip()


def macro(template: str, name: str, *values: object) -> str:
    """What a macro of a template makes of these values."""
    return str(getattr(environment().get_template(template).module, name)(*values)).strip()
