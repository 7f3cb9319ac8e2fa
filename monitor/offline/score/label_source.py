"""Labels read from their file, line by line; what is no label is complained of by its line's number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import orjson

from sidejudge.scoring.runs.label_line import LabelLine, LabelLineError, read_label

from .case_lines import NumberedLine, lines

MAX_LABEL_LINE = 2**20
"""Bytes of one label, far more than it needs."""


class TakesLabels(Protocol):
    """Takes labels one by one; ``LabelLineError`` for one that does not fit those before it."""

    def take(self, given: LabelLine) -> None:
        """Take a label."""


def read_labels(path: Path, calibration: TakesLabels, complain: Callable[[str], None], *, with_verdicts: bool) -> int:
    """Have every label taken; returns how many lines are none. ``with_verdicts`` asks each to state our verdict too."""
    bad = 0
    with path.open("rb", buffering=1 << 20) as file:
        for line in lines(file, MAX_LABEL_LINE):
            try:
                calibration.take(_label(line, with_verdicts=with_verdicts))
            except LabelLineError as error:
                bad += 1
                complain(f"line {line.number}: {error}")
    return bad


def _label(line: NumberedLine, *, with_verdicts: bool) -> LabelLine:
    label = read_label(_parsed(line))
    if with_verdicts and not label.states_verdict:
        raise LabelLineError("verdict: is missing, and no file of verdicts is named")
    return label


def _parsed(line: NumberedLine) -> object:
    if line.text is None:
        raise LabelLineError(f"is longer than {MAX_LABEL_LINE} bytes")
    try:
        return orjson.loads(line.text)
    except orjson.JSONDecodeError as error:
        raise LabelLineError(f"is not JSON: {error.msg}") from None
