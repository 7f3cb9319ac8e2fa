"""Check: one rule with its name, its meaning, when it is undefined, and how its argument becomes a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.errors import SidejudgeError
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
