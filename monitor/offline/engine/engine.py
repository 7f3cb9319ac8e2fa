"""Engine: where the pieces of a command's input are worked on. Results and their order are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeVar

from sidejudge.scoring.errors import SidejudgeError

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")

AHEAD: Final = 8
"""Pieces a processor that are sent ahead of the one that is waited for, so that a slow one keeps no other waiting."""


class ElsewhereError(SidejudgeError):
    """Other processes cannot work: the cause and the remedy."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause, remedy)  # both, for it is pickled
        self.cause, self.remedy = cause, remedy

    def __str__(self) -> str:
        return self.cause


class WorkersLostError(ElsewhereError):
    """Other processes worked, and were lost: what came of them before stands, and the same command goes on."""


class Engine(Protocol):
    """Works on pieces. At most ``AHEAD`` pieces a processor are held, however many there are."""

    def map(self, make: Callable[[S], Callable[[P], R]], stated: S, pieces: Iterable[P]) -> Iterator[R]:
        """The results of all pieces, in the order of the pieces.

        Args:
            make: Called once with ``stated`` in each process that works; returns what is called with each piece.
                A function or a class of a module, for other processes import it.
            stated: What all pieces need. It is sent to each process once.
            pieces: They and their results are pickled where other processes work.

        Raises:
            ElsewhereError: The other processes cannot start.
            WorkersLostError: They were lost while they worked.
        """
        ...


class Here:
    """This process alone."""

    def map(self, make: Callable[[S], Callable[[P], R]], stated: S, pieces: Iterable[P]) -> Iterator[R]:
        """See ``Engine.map``."""
        return map(make(stated), pieces)
