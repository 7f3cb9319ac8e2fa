"""The text of a cell: its number, its mark, and the notes below the table."""

from __future__ import annotations

from collections.abc import Iterator

from sidejudge.scoring.scorecards.scorecard import Cell, Scorecard, criterion_of, rubric_of
from sidejudge.scoring.scorecards.template import RowKind, ScorecardRow, Unit
from sidejudge.scoring.verdict.verdict import State

UNKNOWN = "—"
MARKS = {"good": "✓", "pass": "✓", "acceptable": "~", "warning": "~", "fail": "✗", "blocker": "[!]"}
"""A sign for each rating, so that no reader needs the colour."""
LEGEND = "✓ good · ~ acceptable · ✗ fails · [!] blocker reached · — unknown, see the note"
HOW = (
    "A metric is the mean over the cases that have a value. A score is the mean over the cases, an invalid case "
    "counting 0 and an incomplete one not at all. A benchmark is the share of cases that reach its threshold; raw is "
    "the mean of the values themselves. [!] also marks a mean that is good where single cases were blocked."
)
_FEWEST, _MOST = 3, 9


def value_text(row: ScorecardRow, cell: Cell) -> str:
    """The value for people; an em dash for what is unknown."""
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
    """The notes of all cells, numbered from 1 in the order in which they are first met, each once."""

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
