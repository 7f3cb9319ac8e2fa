"""Reported score: another evaluator's score of a run, from telemetry or a case. Anybody may have written it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from msgspec import Struct, ValidationError, convert

MOST_REPORTED: Final = 200
"""Most reported scores of one run that are read; later ones are left out."""
LONGEST_NAME: Final = 100
WRONG_VALUES: Final = ("a text", "no number", "not a finite number", "an error of the evaluator")
"""Our names for stated values that are no numbers. Other words in ``invalid`` come from the case."""
LONGEST_TEXT: Final = 1000
"""Most characters of an explanation."""


class ReportedScore(Struct, frozen=True, kw_only=True):
    """One score by another evaluator or by a person.

    ``value`` is a finite number, None where there is only a ``label`` or the sent value is no number; then ``invalid``
    describes it. ``by`` is the stated evaluator, ``via`` the way it arrived. ``at_ns`` is its time, ns since the epoch;
    ``span_id`` the step that it is on, None for the run as a whole.
    """

    name: str
    value: float | None = None
    label: str | None = None
    explanation: str | None = None
    by: str | None = None
    via: str = "telemetry"
    at_ns: int = 0
    span_id: str | None = None
    invalid: str | None = None


def read_reported(stated: object) -> Iterator[ReportedScore]:
    """Scores that were written as JSON (``msgspec.to_builtins``); invalid or non-finite ones are left out."""
    for each in stated[:MOST_REPORTED] if isinstance(stated, list | tuple) else ():
        try:
            score = convert(each, ReportedScore)
        except ValidationError:
            continue
        if score.value is None or math.isfinite(score.value):
            yield score


def number(value: object) -> tuple[float | None, str | None]:
    """A stated value as a finite number, else a description of it; a truth value is 1 or 0."""
    if value is None:
        return None, None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None, "a text"
    if not isinstance(value, int | float):
        return None, "no number"
    try:
        found = float(value)
    except OverflowError:
        return None, "not a finite number"
    return (found, None) if math.isfinite(found) else (None, "not a finite number")
