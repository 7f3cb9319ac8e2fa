"""The scorecard as one HTML file that loads nothing. Names and reasons are foreign text, and escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from dashboards.pages.html import escape, standalone
from scoring.runs.cells import Cell
from scoring.runs.scorecard import Scorecard
from scoring.runs.template import LEGEND, SHOWN, RowKind, ScorecardRow

from . import shown

_MAX_NAME = 60
_FEW = 4
"""Models that a page has room for at full width."""


@cache
def _style() -> str:
    return Path(__file__).with_name("scorecard.css").read_text(encoding="utf-8")


def scorecard_page(card: Scorecard) -> str:
    """The page as HTML."""
    notes = shown.Footnotes()
    rows = "".join(_row(row, cells, notes, len(card.models)) for row, cells in card.rows)
    names = "".join(f'<th scope="col" class="model" title="{escape(model)}">{_name(model)}' for model in card.models)
    head = f'<th scope="col">Metric{names}<th scope="col" class="threshold">Threshold'
    legend = escape(LEGEND.replace("`", ""))
    body = (
        f'<header><h1>Scorecard</h1><span class="soft">{legend}</span></header>{_warnings(card)}'
        f'<table class="scorecard"><thead><tr>{head}</tr></thead>{rows}</tbody></table>'
        f"{_legend(card)}{_cases(card)}{_notes(notes)}"
    )
    return standalone("Scorecard", body, style=_style(), layout="wide" if len(card.models) > _FEW else "")


def _name(model: str) -> str:
    """A model's name, which may break after its parts: ``provider/model@version``."""
    return re.sub(r"[/@:_-]", r"\g<0><wbr>", escape(model, limit=_MAX_NAME))


def _warnings(card: Scorecard) -> str:
    return "".join(f'<p class="caution"><b>Note</b> {escape(note)}</p>' for note in card.notes)


def _row(row: ScorecardRow, cells: Sequence[Cell], notes: shown.Footnotes, models: int) -> str:
    if row.kind is RowKind.HEADING:
        begin = "<tbody>" if row.rubric == next(iter(SHOWN)) else "</tbody><tbody>"
        title = f'<th colspan="{models + 2}" scope="rowgroup"><span>{escape(row.title)}</span>'
        return f'{begin}<tr class="heading">{title}</tr>'
    flag = '<abbr class="flag" title="blocker">[!]</abbr> ' if row.blocker else ""
    filled = "".join(_cell(row, cell, notes) for cell in cells)
    return (
        f'<tr class="{row.kind.value}"><th scope="row">{flag}{escape(row.title)}{filled}'
        f'<td class="threshold">{escape(row.threshold)}</tr>'
    )


def _cell(row: ScorecardRow, cell: Cell, notes: shown.Footnotes) -> str:
    sign, raw, number = shown.mark(cell), shown.raw_text(row, cell), notes.number(cell)
    rating = cell.rating if cell.rating in shown.MARKS else "unrated"
    told = (
        "; ".join((f"{cell.rating or 'not rated'}, n = {cell.n:,}", *cell.notes)) if cell.n else "; ".join(cell.notes)
    )
    note = f'<a href="#note-{number}">{number}</a>' if number else ""
    return (
        f'<td class="{rating}" title="{escape(told)}"><span class="value">{escape(shown.value_text(row, cell))}</span>'
        f'<span class="sign">{escape(sign)}</span><sup>{note}</sup>'
        + (f'<span class="raw">{escape(raw)}</span>' if raw else "")
    )


def _legend(card: Scorecard) -> str:
    options = "".join(
        f"<div><dt>Option {escape(option.id)}</dt><dd>{escape(option.formula)}</dd></div>" for option in card.options
    )
    return (
        f'<section class="legend"><p><b>{escape(shown.LEGEND)}</b></p><p>{escape(shown.HOW, limit=1000)}</p>'
        f"<dl>{options}</dl></section>"
    )


def _cases(card: Scorecard) -> str:
    head = "".join(f'<th scope="col" class="model">{_name(model)}' for model in card.models)
    rows = "".join(
        f'<tr><th scope="row">{escape(rubric)}'
        + "".join(f"<td>{escape(shown.cases_text(card, model, rubric))}" for model in card.models)
        + "</tr>"
        for rubric in SHOWN
    )
    return (
        f'<h2 class="part">Cases judged</h2><table class="cases"><thead><tr><th scope="col">Rubric{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _notes(notes: shown.Footnotes) -> str:
    listed = "".join(f'<li id="note-{number}">{escape(text, limit=600)}</li>' for number, text in notes)
    return f'<h2 class="part">Notes</h2><ol class="notes">{listed}</ol>' if listed else ""
