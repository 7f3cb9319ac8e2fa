"""Emotion of a call: which is the strongest (seed 000, Task 3, Part 3; rubrics §5)."""

from __future__ import annotations

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.lexical.text import normalise
from sidejudge.scoring.result.reason import Reason, ReasonPart, own, quoted
from sidejudge.scoring.result.result import Result, Scored, Unavailable
from sidejudge.scoring.trace.json_kind import kind
from sidejudge.scoring.trace.span import Json

from .structure import reference, shown

_DIGITS = 9


def top_emotions(emotions: dict[str, Json]) -> frozenset[str]:
    """The emotions with the highest percentage, several when they tie; none when none is above 0.

    >>> sorted(top_emotions({"anger": 45, "Fear": 45.0, "joy": 10}))
    ['anger', 'fear']
    """
    reported = {
        name: round(value, _DIGITS)
        for name, value in emotions.items()
        if kind(value) == "number" and isinstance(value, int | float)
    }
    most = max(reported.values(), default=0)
    return frozenset(normalise(name) for name, value in reported.items() if value == most) if most > 0 else frozenset()


def expected_emotions(case: Case) -> dict[str, Json] | Unavailable:
    """The reference's emotions; unavailable when they cannot be used."""
    expected = reference(case)
    if isinstance(expected, Unavailable):
        return expected
    wanted = expected.get("emotion") if isinstance(expected, dict) else None
    if not isinstance(wanted, dict):
        return Unavailable(Reason("expected_outcome.emotion is not an object"))
    for name, value in wanted.items():
        if kind(value) != "number" or not isinstance(value, int | float) or value < 0:
            return Unavailable(
                Reason("expected_outcome.emotion.{name} is not a number of 0 or more", name=quoted(label(name)))
            )
    return wanted


def dominant_emotion(case: Case) -> Result:
    """1 when both sides have the same top emotions, ties included, else 0."""
    wanted = expected_emotions(case)
    if isinstance(wanted, Unavailable):
        return wanted
    given = case.output.value.get("emotion") if isinstance(case.output.value, dict) else None
    top, found = top_emotions(wanted), top_emotions(given if isinstance(given, dict) else {})
    return Scored(
        value=float(top == found),
        reason="" if top == found else Reason("{found}, expected {top}", found=_named(found), top=_named(top)),
        details={"top": shown(sorted(found)), "expected": shown(sorted(top))},
    )


def _named(emotions: frozenset[str]) -> ReasonPart:
    return quoted(" and ".join(map(str, shown(sorted(emotions)[:3])))) if emotions else own("none")
