"""Trend: the pass ratio over successive stretches of time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sidejudge.scoring.statistics.estimate import Estimate, from_sums


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictSums:
    """Counts and sums of weights over the verdicts of one (service, environment, rubric).

    ``unanswered`` of the incomplete ones are so because a judge or embeddings were out of reach. For ``unreached`` more
    traces, without a verdict, the budget of the judge was spent. ``open_weight`` is that of both.
    """

    service: str | None
    environment: str | None
    rubric: str
    passed: int
    failed: int
    incomplete: int
    weight: float
    failed_weight: float
    squared_weight: float
    unanswered: int = 0
    unreached: int = 0
    open_weight: float = 0.0


def pooled(sums: Collection[VerdictSums], design_effect: float) -> Estimate | None:
    """The pass ratio of all these verdicts, at the design effect of their window; None where none passed or failed."""
    failures = sum(each.failed for each in sums)
    return from_sums(
        n=sum(each.passed for each in sums) + failures, failures=failures, weight=sum(each.weight for each in sums),
        failed_weight=sum(each.failed_weight for each in sums),
        squared_weight=sum(each.squared_weight for each in sums), design_effect=design_effect,
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

    The last ends at ``until_ns`` (ns since the epoch). ``None`` where no verdict passed or failed, or none is kept any
    more: a gap, not a zero. An estimate needs ``enough`` effective samples. ``changes`` are the positions of stretches
    in which another version of the rubric begins: earlier ones are not comparable. About ``unanswered`` traces nobody
    could be asked, in an outage or because the budget was spent; at ``mostly_open`` they are more than the rest.
    """

    until_ns: int
    step_ns: int
    estimates: tuple[Estimate | None, ...]
    enough: float
    changes: tuple[int, ...] = ()
    unanswered: int = 0
    mostly_open: frozenset[int] = frozenset()

    def reported(self) -> list[Estimate | None]:
        """The estimates; None for ones from too few samples, or from less than half of the traces."""
        return [
            each if each is not None and each.effective_n >= self.enough and at not in self.mostly_open else None
            for at, each in enumerate(self.estimates)
        ]

    @property
    def legible(self) -> bool:
        """Whether at least one stretch, and four fifths of the stretches with verdicts, have enough verdicts."""
        reported = sum(each is not None for each in self.reported())
        known = sum(each is not None and at not in self.mostly_open for at, each in enumerate(self.estimates))
        return reported > 0 and 5 * reported >= 4 * known
