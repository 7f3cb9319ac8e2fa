"""What is wrong with a declaration: all of it at once, each with its place in the declaration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sidejudge.scoring.errors import SidejudgeError


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake. ``path`` is its place below the rubric: keys and positions, such as ``("metrics", 2, "check")``."""

    path: tuple[str | int, ...]
    message: str

    def below(self, *above: str | int) -> Fault:
        """The same mistake seen from further up."""
        return Fault((*above, *self.path), self.message)


class DeclarationError(SidejudgeError, ValueError):
    """A declaration that cannot be used, with all its faults."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{'.'.join(map(str, f.path))}: {f.message}".lstrip(": ") for f in self.faults))


def fault(message: str, *path: str | int) -> DeclarationError:
    """One mistake, to be raised."""
    return DeclarationError([Fault(path, message)])
