"""The scorecard as one HTML file that loads nothing. Names and reasons are foreign text, and escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sidejudge.dashboards.pages.rendering import digest, render, stylesheet
from sidejudge.scoring.scorecards.scorecard import Cell, Scorecard
from sidejudge.scoring.scorecards.template import LEGEND, RowKind, ScorecardRow

from . import shown

_MAX_NAME = 60
_FEW = 4
"""Models that a page has room for at full width."""
_NAME_PARTS = re.compile(r"([^/@:_-]*)([/@:_-]?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCell:
    """A cell as it is written; ``note`` is the number of its note, None without one."""

    style: str
    title: str
    value: str
    sign: str
    raw: str
    note: int | None


@cache
def _style() -> str:
    return Path(__file__).with_name("scorecard.css").read_text(encoding="utf-8")


def scorecard_page(card: Scorecard) -> str:
    """The page as HTML."""
    notes = shown.Footnotes()
    style = _style()
    styles = digest(stylesheet() + style)
    return render(
        "scorecard.html", title="Scorecard", card=card, style=style, shown=shown, rubrics=card.rubrics, parts=_parts,
        layout="wide" if len(card.models) > _FEW else "", template_legend=LEGEND.replace("`", ""),
        policy=f"default-src 'none'; style-src {styles}; img-src data:; base-uri 'none'; form-action 'none'",
        groups=_groups(card, notes), notes=list(notes),
    )  # fmt: skip


def _groups(
    card: Scorecard, notes: shown.Footnotes
) -> list[tuple[ScorecardRow, list[tuple[ScorecardRow, list[ShownCell]]]]]:
    """The rows under their headings."""
    groups: list[tuple[ScorecardRow, list[tuple[ScorecardRow, list[ShownCell]]]]] = []
    for row, cells in card.rows:
        if row.kind is RowKind.HEADING:
            groups.append((row, []))
        else:
            groups[-1][1].append((row, [_cell(row, cell, notes) for cell in cells]))
    return groups


def _parts(model: str) -> Sequence[tuple[str, str]]:
    """The parts of a model's name, each with the sign that ends it."""
    name = model if len(model) <= _MAX_NAME else f"{model[: _MAX_NAME - 1]}…"
    return _NAME_PARTS.findall(name)


def _cell(row: ScorecardRow, cell: Cell, notes: shown.Footnotes) -> ShownCell:
    rated = (f"{cell.rating or 'not rated'}, n = {cell.n:,}",) if cell.n else ()
    return ShownCell(
        style=cell.rating if cell.rating in shown.MARKS else "unrated", title="; ".join((*rated, *cell.notes)),
        value=shown.value_text(row, cell), sign=shown.mark(cell), raw=shown.raw_text(row, cell),
        note=notes.number(cell),
    )  # fmt: skip
