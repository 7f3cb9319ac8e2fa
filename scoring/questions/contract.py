"""A judge's answer read strictly: an answer in another form than the requested one is a breach, never a number.

Every reader raises ``ValueError`` with the field and its fault. ``true`` is not 1, ``"5"`` is not 5, NaN is nothing
(rubrics §1.8, §8).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sidejudge.scoring.case.case import parse_output

MAX_TEXT = 2000
"""Most characters of a judge's text that a verdict keeps."""


def read_object(value: object) -> Mapping[str, object]:
    """A JSON object, decoded or as text; text around it, a code fence included, is a breach.

    >>> read_object('{"score": 5}')
    {'score': 5}
    """
    if isinstance(value, str):
        parsed = parse_output(value)
        if parsed.error is not None or parsed.fenced:
            raise ValueError("not JSON")
        value = parsed.value
    if not isinstance(value, Mapping):
        raise ValueError("not a JSON object")  # noqa: TRY004  # one kind of error for every breach of the contract
    return value


def required(found: Mapping[str, object], key: str) -> object:
    """The value of a required key."""
    if key not in found:
        raise ValueError(f"{key} is missing")
    return found[key]


def whole(found: Mapping[str, object], key: str, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``; 4.0 and ``true`` are rejected."""
    value = required(found, key)
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{key} is not a whole number from {low} to {high}")
    return value


def share(found: Mapping[str, object], key: str) -> float:
    """A number in [0, 1]."""
    value = required(found, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{key} is not a number from 0 to 1")
    return float(value)


def yes_or_no(found: Mapping[str, object], key: str) -> bool:
    """``true`` or ``false``."""
    value = required(found, key)
    if not isinstance(value, bool):
        raise ValueError(f"{key} is neither true nor false")  # noqa: TRY004  # as above
    return value


def one_of(found: Mapping[str, object], key: str, allowed: Collection[str]) -> str:
    """One of a few names, exactly as they are spelt."""
    value = required(found, key)
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{key} is not one of {', '.join(allowed)}")
    return value


def text(found: Mapping[str, object], key: str) -> str:
    """Non-blank text as a verdict can hold it: of bounded length, without half surrogate pairs."""
    value = required(found, key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{key} is empty")
    return value.strip()[:MAX_TEXT].encode(errors="replace").decode()
