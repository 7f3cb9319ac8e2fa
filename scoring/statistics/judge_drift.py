"""Judge drift: answers to the same prompts before and now in, what moved out.

A prompt that is the same to the last byte excludes the application as a cause. Each measure is compared by the exact
sign test over the prompts in which it differs, so no distribution is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from .sign_test import sign_test

LEAST: Final = 10
"""Prompts below which nothing is concluded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDrift:
    """One measure of the judge's answers to ``n`` prompts: ``higher`` and ``lower`` than before, the others equal.

    ``p`` is two-sided; at ``error`` or below the judge moved. ``error`` is this look's share of the promised chance
    of a false alarm.
    """

    metric: str
    n: int
    higher: int
    lower: int
    p: float
    error: float

    @property
    def moved(self) -> bool | None:
        """Whether chance does not explain it; None for too few prompts."""
        return None if self.n < LEAST else self.p <= self.error

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


def drifts(pairs: Iterable[tuple[Mapping[str, float], Mapping[str, float]]], error: float) -> list[JudgeDrift]:
    """What moved, those that moved most surely first.

    Args:
        pairs: measures before and now, a pair a prompt.
        error: chance of a false alarm of this look, shared by all measures (Bonferroni).
    """
    counted: dict[str, list[int]] = {}
    for before, now in pairs:
        for metric in before.keys() & now.keys():
            counts = counted.setdefault(metric, [0, 0, 0])
            counts[0] += 1
            counts[1] += now[metric] > before[metric]
            counts[2] += now[metric] < before[metric]
    found = [
        JudgeDrift(
            metric=metric, n=n, higher=higher, lower=lower, p=_two_sided(higher, lower),
            error=error / len(counted),
        )
        for metric, (n, higher, lower) in counted.items()
    ]  # fmt: skip
    return sorted(found, key=lambda each: (each.p, each.metric))


def _two_sided(higher: int, lower: int) -> float:
    return min(1.0, 2 * sign_test(max(higher, lower), min(higher, lower)))
