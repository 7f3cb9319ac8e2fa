"""Fields of a verdict as a file holds it: read strictly, and refused by their name.

Scorecard, calibration and gates read the same lines; what each of them needs of a line is its own matter, but a number
is a number to all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.label import label

_LARGEST = 1e15
"""No latency, no number of tokens and no composite is larger; sums of such values are exact and finite."""


class VerdictLineError(SidejudgeError, ValueError):
    """A line that is no verdict: the message names the field and what is wrong with it."""


def number(
    fields: Mapping[str, object], field: str, *, default: float | None = None, least: float = -_LARGEST, name: str = ""
) -> float | None:
    """A number, None where there is none; whole numbers are numbers here, truth values are not.

    ``name`` is what the field is called where it is refused, if not by itself.
    """
    value = fields.get(field, default)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= _LARGEST:
        wanted = "a number that can be averaged" if least < 0 else f"a number from {least:g} on that can be averaged"
        raise VerdictLineError(f"{name or field}: is {shown(value)}, not {wanted}")
    return float(value)


def text(fields: Mapping[str, object], field: str) -> str:
    """A text that is not empty."""
    value = fields.get(field)
    if not isinstance(value, str) or not value:
        raise VerdictLineError(f"{field}: is missing" if field not in fields else f"{field}: must be text")
    return value


def sequence(fields: Mapping[str, object], field: str, default: Sequence[object] | None = None) -> Sequence[object]:
    """A list."""
    value = fields.get(field, default)
    if not isinstance(value, list | tuple):
        raise VerdictLineError(f"{field}: is missing" if field not in fields else f"{field}: must be a list")
    return value


def truth(fields: Mapping[str, object], field: str) -> bool | None:
    """True, false, or None for any other value."""
    value = fields.get(field)
    if value is not None and not isinstance(value, bool):
        raise VerdictLineError(f"{field}: is {shown(value)}, neither true, false nor null")
    return value


def scores(fields: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """The lines of the metrics, by their ids."""
    found: dict[str, Mapping[str, object]] = {}
    for line in sequence(fields, "scores"):
        if not isinstance(line, Mapping) or not isinstance(line.get("metric"), str):
            raise VerdictLineError("scores: each must be an object with a metric")
        found[line["metric"]] = line
    return found


def shown(value: object) -> str:
    """A value in a message: short, and harmless."""
    return "missing" if value is None else label(repr(value))
