"""A label: a person's judgement of one case, as one line of a file of labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.shown_text import label

from .verdict_line import LARGEST, VerdictLine, text

PASS = "pass"  # noqa: S105  # a verdict, no password
"""The subject of a label that names no metric: whether the case passes."""
LabelValue: TypeAlias = float | str
"""A number (a boolean is 1 or 0), or the name of a category: for a metric, one of its ratings."""
Subject: TypeAlias = tuple[str, str]
"""``trace_id`` or ``case_id``, and the id."""


class LabelLineError(SidejudgeError):
    """The line is no label; the message names the field and its fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelLine:
    """One label. ``by`` names the person, empty where unknown.

    ``verdict`` is our verdict where the line holds it (``states_verdict``); None when we reached none.
    """

    subject: Subject
    rubric: str
    metric: str
    stated: LabelValue
    by: str
    states_verdict: bool
    verdict: LabelValue | None


def read_label(line: object) -> LabelLine:
    """The label of a parsed line; ``LabelLineError`` for anything else.

    ``rubric``, ``label`` and one of ``trace_id`` and ``case_id`` are required; where both are there the trace counts.
    """
    if not isinstance(line, Mapping):
        raise LabelLineError("is not an object")
    of = "trace_id" if line.get("trace_id") is not None else "case_id"
    if of == "case_id" and line.get("case_id") is None:
        raise LabelLineError("case_id: is missing, and so is trace_id")
    metric = PASS if line.get("metric") is None else text(line, "metric", LabelLineError)
    if line.get("label") is None:
        raise LabelLineError("label: is missing")
    verdict = line.get("verdict")
    return LabelLine(
        subject=(of, text(line, of, LabelLineError)),
        rubric=text(line, "rubric", LabelLineError),
        metric=metric,
        stated=_stated("label", line["label"], metric),
        by="" if line.get("by") is None else text(line, "by", LabelLineError),
        states_verdict="verdict" in line,
        verdict=None if verdict is None else _stated("verdict", verdict, metric),
    )


def _stated(field: str, value: object, metric: str) -> LabelValue:
    if metric == PASS:
        if value not in (0, 1) or not isinstance(value, bool | int | float):
            raise LabelLineError(
                f"{field}: is {label(repr(value))}; without a metric it must be true or false (or 1 or 0)"
            )
        return float(value)
    if isinstance(value, bool | int | float) and abs(value) <= LARGEST:
        return float(value)
    if isinstance(value, str) and value:
        return value
    raise LabelLineError(f"{field}: is {label(repr(value))}, neither true or false, nor a number, nor a category")


def our_value(line: VerdictLine, given: LabelLine) -> LabelValue | None:
    """The verdict's own value for the label's subject, in the label's terms; None where it has no value."""
    if given.metric == PASS:
        return None if line.passed is None else float(line.passed)
    score = line.scores.get(given.metric)
    if score is None:
        return None
    return score.rating if isinstance(given.stated, str) else score.value
