"""The scorecard as Markdown, in the form of seed 000's template. Names and reasons are foreign text, and escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.scorecards.scorecard import Cell, Scorecard
from sidejudge.scoring.scorecards.template import LEGEND, RowKind, ScorecardRow

from . import shown

_MAX_NOTE = 300
_MEANT = re.compile(r"[\\`*<|\[\]~@]")
"""Characters with a meaning in Markdown or HTML, or that end a cell."""

_BETWEEN = re.compile(r"(?<!\\)\|")


def markdown(card: Scorecard, *, aligned: bool = False) -> str:
    """The whole scorecard: the table, the meaning of the signs, and a note for every cell that needs one.

    ``aligned`` pads the cells, for reading the source.
    """
    notes = shown.Footnotes()
    names = [inert(model) for model in card.models]
    filled = [_row(row, [_cell(row, cell, notes) for cell in cells], len(names)) for row, cells in card.rows]
    table = [_line("Metric", names, "Threshold"), "|" + "---|" * (len(names) + 2), *filled]
    cases = list(_cases(card, names))
    lines = [
        "# Scorecard", "", LEGEND, "", *(_aligned(table) if aligned else table),
        "", shown.LEGEND.replace("[!]", "`[!]`").replace("~", "`~`"),
        "", shown.HOW.replace("[!]", "`[!]`"), "",
        *(f"- Option {option.id}: {option.formula}" for option in card.options),
        *(f"- Note: {inert(note)}" for note in card.notes),
        "", *(_aligned(cases) if aligned else cases), "",
        *(f"[^{number}]: {inert(text)}" for number, text in notes),
    ]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def inert(text: str) -> str:
    """Foreign text on one line, cut, with nothing in it that Markdown, HTML or a terminal would act upon."""
    text = "".join(c if c.isprintable() else " " for c in label(text, _MAX_NOTE))
    return _MEANT.sub(r"\\\g<0>", text).replace("://", r":\//").replace("www.", r"www\.").strip()


def _aligned(table: Sequence[str]) -> list[str]:
    """The lines of a table with its columns made equally wide."""
    rows = [[cell.strip() for cell in _BETWEEN.split(line)[1:-1]] for line in table]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows[1] = ["-" * width for width in widths]
    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]


def _row(row: ScorecardRow, cells: Sequence[str], models: int) -> str:
    title = f"**{row.title}**" if row.kind in (RowKind.HEADING, RowKind.SCORE) else row.title
    return _line(f"[!] {title}" if row.blocker else title, cells or [""] * models, row.threshold.replace("|", r"\|"))


def _line(first: str, cells: Sequence[str], last: str) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in (first, *cells, last)) + "|"


def _cell(row: ScorecardRow, cell: Cell, notes: shown.Footnotes) -> str:
    raw, mark, number = shown.raw_text(row, cell), shown.mark(cell), notes.number(cell)
    parts = (shown.value_text(row, cell), mark, f"({raw})" if raw else "")
    return " ".join(part for part in parts if part) + (f" [^{number}]" if number else "")


def _cases(card: Scorecard, names: Sequence[str]) -> Iterator[str]:
    yield "| Cases |" + "".join(f" {name} |" for name in names)
    yield "|" + "---|" * (len(names) + 1)
    for rubric in card.rubrics:
        yield f"| {rubric} |" + "".join(f" {shown.cases_text(card, model, rubric)} |" for model in card.models)
