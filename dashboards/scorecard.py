"""The scorecard for people: as Markdown in the form of seed 000's template, and as one HTML file that loads nothing.

Names and reasons are foreign text, and escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sidejudge.dashboards.pages.rendering import digest, render, stylesheet
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.scorecards.scorecard import Cell, Scorecard, criterion_of, rubric_of
from sidejudge.scoring.scorecards.template import LEGEND, RowKind, ScorecardRow, Unit
from sidejudge.scoring.verdict.verdict import State

UNKNOWN = "—"
MARKS = {"good": "✓", "pass": "✓", "acceptable": "~", "warning": "~", "fail": "✗", "blocker": "[!]"}
"""A sign for each rating, so that no reader needs the colour."""
SIGNS = "✓ good · ~ acceptable · ✗ fails · [!] blocker reached · — unknown, see the note"
HOW = (
    "A metric is the mean over the cases that have a value. A score is the mean over the cases, an invalid case "
    "counting 0 and an incomplete one not at all. A benchmark is the share of cases that reach its threshold; raw is "
    "the mean of the values themselves. [!] also marks a mean that is good where single cases were blocked."
)
_FEWEST, _MOST = 3, 9


def value_text(row: ScorecardRow, cell: Cell) -> str:
    """The value for people; an em dash if it is unknown."""
    value = cell.value
    if value is None:
        return UNKNOWN
    if row.unit is Unit.YES_NO:
        return "Yes" if value else "No"
    if row.unit is Unit.RANK:
        return f"{value:.0f}"
    if row.unit is Unit.DOLLARS:
        return f"${value:,.2f}" if value >= 0.1 or not value else f"${value:.3g}"
    if row.unit is Unit.COUNT:
        return _plain(f"{value:.{_digits(row, value)}f}")
    if row.unit is Unit.PERCENT and row.kind is not RowKind.BENCHMARK:
        return f"{value:.{_digits(row, value) - 2}%}"
    return f"{value:.{_digits(row, value)}f}"


def raw_text(row: ScorecardRow, cell: Cell) -> str:
    """A benchmark's raw mean; empty where there is none."""
    if cell.raw is None:
        return ""
    return f"raw {cell.raw:.1%}" if row.unit is Unit.PERCENT else f"raw {cell.raw:.3f}"


def mark(cell: Cell) -> str:
    """The sign of the cell's rating; empty where nothing is rated."""
    return MARKS.get(cell.rating or "", "")


def _digits(row: ScorecardRow, value: float) -> int:
    """Three decimals, or as many as it takes not to show a value on the wrong side of a bound: 0.9996 is not 1.000."""
    criterion, rubric = criterion_of(row), rubric_of(row)
    bands = criterion.metric.bands if criterion is not None else rubric.bands if rubric is not None else None
    blocker = criterion.blocker if criterion is not None else None

    def side(each: float) -> tuple[object, object]:
        return (None if bands is None else bands.rating(each), blocker is not None and blocker.blocks(each))

    return next((digits for digits in range(_FEWEST, _MOST) if side(round(value, digits)) == side(value)), _MOST)


def _plain(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


class Footnotes:
    """The notes of all cells, each once, numbered from 1 in order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, cell: Cell) -> int | None:
        """The number of this cell's note; ``None`` when it has none."""
        text = "; ".join(cell.notes)
        return self._numbers.setdefault(text, len(self._numbers) + 1) if text else None

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter((number, text) for text, number in self._numbers.items())


def cases_text(card: Scorecard, model: str, rubric: str) -> str:
    """``500: 3 invalid, 12 incomplete``: the verdicts of one model under one rubric."""
    states = card.cases[model].get(rubric)
    if states is None:
        return UNKNOWN
    odd = [f"{states[state]:,} {state.value}" for state in State if state is not State.VALID and states[state]]
    return f"{sum(states.values()):,}" + (f": {', '.join(odd)}" if odd else "")


_MAX_NOTE = 300
_MEANT = re.compile(r"[\\`*<|\[\]~@]")
"""Characters with a meaning in Markdown or HTML, or that end a cell."""

_BETWEEN = re.compile(r"(?<!\\)\|")


def markdown(card: Scorecard, *, aligned: bool = False) -> str:
    """The whole scorecard: the table, the meaning of the signs, and a note for every cell that needs one.

    ``aligned`` pads the cells, for reading the source.
    """
    notes = Footnotes()
    names = [inert(model) for model in card.models]
    filled = [
        _markdown_row(row, [_markdown_cell(row, cell, notes) for cell in cells], len(names)) for row, cells in card.rows
    ]
    table = [_line("Metric", names, "Threshold"), "|" + "---|" * (len(names) + 2), *filled]
    cases = list(_cases(card, names))
    lines = [
        "# Scorecard", "", LEGEND, "", *(_aligned(table) if aligned else table),
        "", SIGNS.replace("[!]", "`[!]`").replace("~", "`~`"),
        "", HOW.replace("[!]", "`[!]`"), "",
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


def _markdown_row(row: ScorecardRow, cells: Sequence[str], models: int) -> str:
    title = f"**{row.title}**" if row.kind in (RowKind.HEADING, RowKind.SCORE) else row.title
    return _line(f"[!] {title}" if row.blocker else title, cells or [""] * models, row.threshold.replace("|", r"\|"))


def _line(first: str, cells: Sequence[str], last: str) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in (first, *cells, last)) + "|"


def _markdown_cell(row: ScorecardRow, cell: Cell, notes: Footnotes) -> str:
    raw, number = raw_text(row, cell), notes.number(cell)
    parts = (value_text(row, cell), mark(cell), f"({raw})" if raw else "")
    return " ".join(part for part in parts if part) + (f" [^{number}]" if number else "")


def _cases(card: Scorecard, names: Sequence[str]) -> Iterator[str]:
    yield "| Cases |" + "".join(f" {name} |" for name in names)
    yield "|" + "---|" * (len(names) + 1)
    for rubric in card.rubrics:
        yield f"| {rubric} |" + "".join(f" {cases_text(card, model, rubric)} |" for model in card.models)


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
    return (Path(__file__).parent / "pages" / "scorecard.css").read_text(encoding="utf-8")


def scorecard_page(card: Scorecard) -> str:
    """The page as HTML."""
    notes = Footnotes()
    style = _style()
    styles = digest(stylesheet() + style)
    return render(
        "scorecard.html", title="Scorecard", card=card, style=style, rubrics=card.rubrics, parts=_parts,
        signs=SIGNS, how=HOW, cases_text=cases_text,
        layout="wide" if len(card.models) > _FEW else "", template_legend=LEGEND.replace("`", ""),
        policy=f"default-src 'none'; style-src {styles}; img-src data:; base-uri 'none'; form-action 'none'",
        groups=_groups(card, notes), notes=list(notes),
    )  # fmt: skip


def _groups(card: Scorecard, notes: Footnotes) -> list[tuple[ScorecardRow, list[tuple[ScorecardRow, list[ShownCell]]]]]:
    """The rows under their headings."""
    groups: list[tuple[ScorecardRow, list[tuple[ScorecardRow, list[ShownCell]]]]] = []
    for row, cells in card.rows:
        if row.kind is RowKind.HEADING:
            groups.append((row, []))
        else:
            groups[-1][1].append((row, [_shown_cell(row, cell, notes) for cell in cells]))
    return groups


def _parts(model: str) -> Sequence[tuple[str, str]]:
    """The parts of a model's name, each with the sign that ends it."""
    name = model if len(model) <= _MAX_NAME else f"{model[: _MAX_NAME - 1]}…"
    return _NAME_PARTS.findall(name)


def _shown_cell(row: ScorecardRow, cell: Cell, notes: Footnotes) -> ShownCell:
    rated = (f"{cell.rating or 'not rated'}, n = {cell.n:,}",) if cell.n else ()
    return ShownCell(
        style=cell.rating if cell.rating in MARKS else "unrated", title="; ".join((*rated, *cell.notes)),
        value=value_text(row, cell), sign=mark(cell), raw=raw_text(row, cell),
        note=notes.number(cell),
    )  # fmt: skip
