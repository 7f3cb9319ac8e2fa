"""Trend: the pass ratio over stretches of time that follow each other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sidejudge.scoring.statistics.estimate import Estimate, from_sums


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictSums:
    """Counts and sums of weights over the verdicts of one (service, environment, rubric)."""

    service: str | None
    environment: str | None
    rubric: str
    passed: int
    failed: int
    incomplete: int
    weight: float
    failed_weight: float
    squared_weight: float

    @property
    def estimate(self) -> Estimate | None:
        """The pass ratio of these verdicts; None where none passed or failed."""
        return pooled([self])


def pooled(sums: Collection[VerdictSums]) -> Estimate | None:
    """The pass ratio of all these verdicts; None where none passed or failed."""
    failures = sum(each.failed for each in sums)
    return from_sums(
        n=sum(each.passed for each in sums) + failures, failures=failures, weight=sum(each.weight for each in sums),
        failed_weight=sum(each.failed_weight for each in sums),
        squared_weight=sum(each.squared_weight for each in sums),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The sums over the stretch of time of this number, from 0; ``versions`` of the rubric reached its verdicts."""

    number: int
    sums: VerdictSums
    versions: frozenset[str] = frozenset()


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

    @property
    def legible(self) -> bool:
        """Whether four fifths of the stretches with verdicts have enough of them, and one at least."""
        reported = sum(each is not None for each in self.reported())
        return reported > 0 and 5 * reported >= 4 * sum(each is not None for each in self.estimates)
