"""Anchors: the meanings of an answer's values, declared or derived from the bands.

Without an explanation of its ends, each judge reads a scale differently: for one 1 is the best, another never gives
less than 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from sidejudge.scoring.questions.kinds import AnswerKind

from .reading import MAX_TEXT, Reading, as_number, is_number, is_text

Anchors: TypeAlias = tuple[tuple[str, str], ...]
"""(value as the judge reads it, its meaning), ascending."""
_BEST: Final = "the best"
_WORST: Final = "the worst"


def read_anchors(reading: Reading, kind: AnswerKind, choices: Sequence[str | float]) -> Anchors:
    """The anchors of a question; where none are declared, those of both ends and of ``good`` and ``acceptable``.

    A mistake is noted in ``reading``.
    """
    given = reading.given.get("anchors")
    if given is not None and (not isinstance(given, dict) or not given or not all(map(is_text, given.values()))):
        reading.complain(
            "must be a map from values to their meanings, such as {1: insulting, 5: very friendly}", "anchors"
        )
        return ()
    declared = {str(at): str(meaning) for at, meaning in (given or {}).items()}
    if sum(map(len, declared.values())) > MAX_TEXT:
        reading.complain(f"are longer than {MAX_TEXT} characters together", "anchors")
    if kind == "one_of":
        for name in declared:
            if name not in choices:
                reading.complain(f"{name[:40]!r} is no category; valid here: {', '.join(map(str, choices))}", "anchors")
        return tuple(declared.items())
    if kind not in ("scale", "number") or not choices:
        if declared:
            reading.complain("belong to a scale, to categories, or to a number with both ends", "anchors")
        return ()
    found = _implied(reading, float(choices[0]), float(choices[1]))
    for at, meaning in declared.items():
        value = _number(at)
        if value is None or not float(choices[0]) <= value <= float(choices[1]):
            reading.complain(f"{at[:40]!r} is no value from {choices[0]:g} to {choices[1]:g}", "anchors")
        else:
            found[value] = meaning
    return tuple((f"{value:g}", meaning) for value, meaning in sorted(found.items()))


def _implied(reading: Reading, low: float, high: float) -> dict[float, str]:
    """The meanings of the ends and of the bands' beginnings; without bands and weight the most is no better."""
    bands = {name: as_number(reading.given.get(name)) for name in ("good", "acceptable")}
    known = {name: value for name, value in bands.items() if value is not None}
    if not known and not is_number(reading.given.get("weight")):
        return {low: "the least", high: "the most"}
    falling = len(known) == 2 and known["good"] < known["acceptable"]
    found = {low: _BEST if falling else _WORST, high: _WORST if falling else _BEST}
    side = "up to here" if falling else "from here on"
    for name in ("acceptable", "good"):
        if name in known and low <= known[name] <= high:
            band = f"{name} {side}"
            here = found.get(known[name])
            found[known[name]] = band if here is None else f"{here}; {band}"
    return found


def _number(text: str) -> float | None:
    try:
        return as_number(float(text))
    except ValueError:
        return None
