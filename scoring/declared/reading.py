"""Reading a declaration strictly: each key must be known, each value of its type. Faults are collected.

A declaration's faults are reported together, each with its place in the declaration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.nearest import ratio_meant
from sidejudge.scoring.trace.span import Json


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. ``path`` is its place below the rubric: keys and positions, such as ``("metrics", 2, "check")``."""

    path: tuple[str | int, ...]
    message: str

    def below(self, *above: str | int) -> Fault:
        """The same fault with its path from a higher level."""
        return Fault((*above, *self.path), self.message)


class DeclarationError(SidejudgeError, ValueError):
    """The declaration is invalid; holds all its faults."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{'.'.join(map(str, f.path))}: {f.message}".lstrip(": ") for f in self.faults))


def fault(message: str, *path: str | int) -> DeclarationError:
    """A ``DeclarationError`` with one fault, to be raised."""
    return DeclarationError([Fault(path, message)])


MAX_TEXT: Final = 8000
"""Most characters of one text of a declaration."""
_ID: Final = re.compile(r"[a-z][a-z0-9_-]{0,60}")


class Reading:
    """One map of a declaration, with the faults found in it."""

    def __init__(self, given: Mapping[str, Json], known: Sequence[str]) -> None:
        self.given = given
        self.faults: list[Fault] = []
        for key in given:
            if key not in known:
                near = get_close_matches(str(key), known, n=1)
                meant = f"did you mean {near[0]}?" if near else f"valid here: {', '.join(known)}"
                self.complain(f"is not a key; {meant}", str(key))

    def complain(self, message: str, *path: str | int) -> None:
        """Note a fault."""
        self.faults.append(Fault(path, message))

    def take(self, error: DeclarationError, *above: str | int) -> None:
        """Note the faults of a nested declaration."""
        self.faults += [each.below(*above) for each in error.faults]

    def check(self) -> None:
        """Raise ``DeclarationError`` if there is a fault."""
        if self.faults:
            raise DeclarationError(self.faults)

    def has(self, key: str) -> bool:
        """Whether a key has a value."""
        return self.given.get(key) is not None

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        value = self.given.get(key)
        if value is None:
            return default
        if not isinstance(value, str) or not value.strip() or len(value) > MAX_TEXT:
            self.complain(f"must be a text of 1 to {MAX_TEXT} characters", key)
            return default
        return value

    def name(self, key: str) -> str:
        """An id: lower-case letters, digits, '-' and '_', a letter first."""
        value = self.given.get(key)
        if value is None:
            self.complain(f"is missing: each has a name of its own, such as {key}: no_apology", key)
            return "?"
        if not isinstance(value, str) or not _ID.fullmatch(value):
            self.complain("must be a name of lower-case letters, digits, '_' and '-', with a letter first", key)
            return "?"
        return value

    def truth(self, key: str) -> bool:
        """True or false."""
        value = self.given.get(key, False)
        if not isinstance(value, bool):
            self.complain("must be true or false", key)
            return False
        return value

    def number(self, key: str, low: float = -math.inf, high: float = math.inf) -> float | None:
        """A number in [low, high]; None where there is none."""
        value = self.given.get(key)
        if value is None:
            return None
        if not is_number(value) or not low <= value <= high:  # type: ignore[operator]  # a number, by the first condition
            span = (
                "" if low == -math.inf else f" from {low:g} to {high:g}" if high < math.inf else f" of at least {low:g}"
            )
            meant = ratio_meant(value) if (low, high) == (0.0, 1.0) else ""
            self.complain(f"must be a number{span}{meant}", key)
            return None
        return float(value)  # type: ignore[arg-type]  # as above

    def one_of(self, key: str, allowed: Sequence[str], default: str) -> str:
        """One of a few words."""
        value = self.given.get(key, default)
        if not isinstance(value, str) or value not in allowed:
            self.complain(f"must be one of {', '.join(allowed)}", key)
            return default
        return value

    def texts(self, key: str, most: int = 100) -> tuple[str, ...]:
        """A list of texts; none where there is none."""
        value = self.given.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or len(value) > most or not all(is_text(each) for each in value):
            self.complain(f"must be a list of at most {most} texts", key)
            return ()
        return tuple(str(each) for each in value)


def is_text(value: Json) -> bool:
    """Whether a value is a text, neither empty nor too long."""
    return isinstance(value, str) and bool(value.strip()) and len(value) <= MAX_TEXT


def is_number(value: object) -> bool:
    """Whether a value is a finite number and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def as_number(value: object) -> float | None:
    """The value as a finite number; None where it is none."""
    return value if isinstance(value, int | float) and is_number(value) else None
