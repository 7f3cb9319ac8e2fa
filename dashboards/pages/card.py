"""Card: a section of a page with its heading, and tables as screen readers want them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .html import escape


def card(name: str, title: str, body: str, *, note: str = "") -> str:
    """A section under a heading of its own. ``note`` and ``body`` are HTML already; ``name`` is its id on the page."""
    beside = f'<span class="soft">{note}</span>' if note else ""
    return (
        f'<section class="card" id="{name}" aria-labelledby="{name}-title"><div class="head">'
        f'<h2 id="{name}-title">{escape(title)}</h2>{beside}</div>{body}</section>'
    )


def table(caption: str, columns: Sequence[str], rows: Iterable[str], *, stacked: bool = False) -> str:
    """A table of rows that are HTML already; ``columns`` are names, one that ends in ``#`` is of numbers.

    The caption is for those who do not see the heading. ``stacked`` rows stand on end on a narrow screen.
    """
    heads = "".join(
        f'<th scope="col" class="number">{escape(name[:-1])}</th>'
        if name.endswith("#")
        else f'<th scope="col">{escape(name)}</th>'
        for name in columns
    )
    kind = ' class="stacked"' if stacked else ""
    return (
        f'<div class="scroll"><table{kind}><caption class="unseen">{escape(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and values beside each other; both are escaped."""
    shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return f"<dl>{shown}</dl>"


def name_cell(value: object, style: str = "") -> str:
    """A name, cut to what a column holds; the whole of it shows on pointing."""
    return f'<span class="{style}" title="{escape(value)}">{escape(value, limit=48)}</span>'
