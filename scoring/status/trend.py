"""Trend: the pass ratio over stretches of time that follow each other."""

from __future__ import annotations

from dataclasses import dataclass

from scoring.statistics.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One (service, environment, rubric): an estimate for each stretch of ``step_ns``, the oldest first.

    The last ends at ``until_ns`` (ns since the epoch). ``None`` where no verdict passed or failed, or where none is
    known any more: a gap, not a zero. ``enough`` effective samples are what an estimate needs. ``changes`` are the
    positions of stretches in which another version of the rubric begins: what is before them is of another kind.
    """

    until_ns: int
    step_ns: int
    estimates: tuple[Estimate | None, ...]
    enough: float
    changes: tuple[int, ...] = ()

    def reported(self) -> list[Estimate | None]:
        """The estimates with those that rest on too little left out."""
        return [each if each is not None and each.effective_n >= self.enough else None for each in self.estimates]
