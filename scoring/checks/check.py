"""Check: one rule with its name, its meaning, when it is undefined, and how its argument becomes a test.

Arguments are read strictly: the error for an unknown one lists what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.nearest import ratio_meant
from sidejudge.scoring.questions.question import Begun
from sidejudge.scoring.result.result import Method, Result
from sidejudge.scoring.trace.span import Json

if TYPE_CHECKING:
    import re2


Finding: TypeAlias = "bool | float | Result"
"""What a test returns: whether the rule holds, the degree in [0, 1] to which it holds, or a whole result with its own
reason.
"""
TextTest: TypeAlias = Callable[[str], Finding]
ValueTest: TypeAlias = Callable[[Json], Finding]
CaseTest: TypeAlias = Callable[[Case], Begun]


class Subject(StrEnum):
    """The part of a case that a check reads."""

    TEXT = "text"
    """Each text of its target separately."""
    VALUE = "value"
    """Each value of its target, decoded where it is JSON."""
    PAIR = "pair"
    """Each text of its target together with a text to compare it with."""
    CASE = "case"
    """The whole case; ``on`` has no meaning."""


class CheckError(SidejudgeError, ValueError):
    """The declaration is invalid. ``path`` is the place below the check, empty for the check itself."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True, slots=True)
class Check:
    """A rule. ``build`` reads its argument and returns the test; it raises ``CheckError``.

    ``argument`` describes the argument in words. ``graded`` rules give a degree in [0, 1], the others 1 or 0.
    ``holds`` completes "passes when …". ``extra`` names the extra of the package that the rule needs.
    """

    name: str
    title: str
    holds: str
    argument: str
    build: Callable[[Json], object]
    _: KW_ONLY
    subject: Subject = Subject.TEXT
    graded: bool = False
    method: Method = Method.EXACT
    undefined: str = "its target is not known"
    source: str = "promptfoo's assertion of this name"
    extra: str | None = None


def library(module: str, extra: str, check: str) -> ModuleType:
    """An optional library; ``CheckError`` names the extra that brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise CheckError(
            f"{check} needs the extra {extra!r} ({module.partition('.')[0]}), which is not installed; "
            f"install it: pip install 'sidejudge[{extra}]', or use the image's variant full"
        ) from None


@cache
def linear(pattern: str) -> re2._Regexp[str]:
    """A pattern of our own, compiled at its first use; it takes linear time for any text."""
    import re2  # noqa: PLC0415  # 2.6 MB, for those who have patterns

    return re2.compile(pattern)


MAX_TEXTS: Final = 1000
"""Texts that one check looks for."""
MAX_TEXT: Final = 10_000
"""Characters of one of them."""
EXPECTED: Final = "{{expected}}"
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_UNITS: Final[Mapping[str, float]] = {"ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0}


def text(value: Json, what: str = "") -> str:
    """A non-empty text."""
    if not isinstance(value, str) or not value:
        raise CheckError("must be a text that is not empty", what)
    if len(value) > MAX_TEXT:
        raise CheckError(f"is longer than {MAX_TEXT} characters", what)
    return value


def texts(value: Json) -> tuple[str, ...]:
    """A list of at least one text; a single text counts as a list of one."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_TEXTS:
        raise CheckError(f"must be a text, or a list of 1 to {MAX_TEXTS} texts")
    return tuple(text(each, f"[{at}]") for at, each in enumerate(listed))


def number(value: Json, what: str = "", *, least: float = 0.0, most: float | None = None) -> float:
    """A number in [least, most]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or value < least:  # noqa: PLR0124  # NaN
        quoted = "; write it without quotation marks" if isinstance(value, str) and _NUMBER.fullmatch(value) else ""
        meant = quoted or (ratio_meant(value) if most == 1 else "")
        raise CheckError(f"must be a number of at least {least:g}{meant}", what)
    if most is not None and value > most:
        meant = ratio_meant(value) if (least, most) == (0.0, 1.0) else ""
        raise CheckError(f"must be a number from {least:g} to {most:g}{meant}", what)
    return float(value)


def whole(value: Json, what: str = "", *, least: int = 0) -> int:
    """A whole number from ``least`` up."""
    if type(value) is not int or value < least:
        raise CheckError(f"must be a whole number of at least {least}", what)
    return value


def milliseconds(value: Json) -> float:
    """A duration with its unit, in ms.

    >>> milliseconds("1.5s")
    1500.0
    """
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise CheckError("must be a duration with its unit, such as 800ms, 3s or 2m")
    return float(found[1]) * _UNITS[found[2]]


def keys(value: Json, allowed: Sequence[str], *, short: str | None = None) -> dict[str, Json]:
    """An object with these keys alone; a plain value counts as the value of the key ``short``."""
    if not isinstance(value, dict):
        if short is None:
            raise CheckError(f"must be a map with {', '.join(allowed)}")
        return {} if value is None else {short: value}
    for key in value:
        if key not in allowed:
            raise CheckError(f"is not a key; valid here: {', '.join(allowed)}", str(key))
    return value


def flag(value: Json) -> None:
    """The argument of a check that needs none: ``true``, or nothing."""
    if value is not None and value is not True:
        raise CheckError("takes no argument: write true; its opposite begins with not-")


def limits(value: Json, *, short: str | None = None) -> tuple[float | None, float | None]:
    """``{min: …, max: …}``, at least one of them; a plain number is ``short``."""
    found = keys(value, ("min", "max"), short=short)
    low = number(found["min"], "min") if found.get("min") is not None else None
    high = number(found["max"], "max") if found.get("max") is not None else None
    if low is None and high is None:
        raise CheckError("must name min, max or both")
    if low is not None and high is not None and low > high:
        raise CheckError("min is above max")
    return low, high


def within(value: float, low: float | None, high: float | None) -> bool:
    """Whether a value lies between two limits, both included."""
    return (low is None or value >= low) and (high is None or value <= high)
