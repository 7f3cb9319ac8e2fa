"""Cost-adjusted rank: final score per normalised dollar (seed 000, Cost-Adjusted Ranking; rubrics §7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A model's place. ``efficiency`` in [0, 1] and ``rank`` from 1 are None together, with the ``reason``."""

    efficiency: float | None = None
    rank: int | None = None
    reason: str = ""


def rank_by_cost(finals: Mapping[str, float | None], costs: Mapping[str, float | None]) -> dict[str, Ranked]:
    """Every model of ``finals`` with its place; ``costs`` are US dollars per 1000 calls, None where unknown.

    ``efficiency = final / (cost / cheapest cost)``, rank descending. Equal efficiencies (to 9 decimals) share a rank,
    and the ranks after them are left out: 1, 1, 3. A cost of 0 cannot be divided by: such a model has no rank, and
    does not count as the cheapest.

    >>> places = rank_by_cost({"a": 0.9, "b": 0.8}, {"a": 2.0, "b": 1.0})
    >>> [(place.efficiency, place.rank) for place in places.values()]
    [(0.45, 2), (0.8, 1)]
    """
    known = {model: cost for model, cost in costs.items() if cost is not None and cost > 0}
    cheapest = min(known.values(), default=0.0)
    efficiencies = {
        model: round(final * (cheapest / known[model]), _DIGITS)
        for model, final in finals.items()
        if final is not None and model in known
    }
    return {
        model: Ranked(
            efficiency=efficiencies[model],
            rank=1 + sum(other > efficiencies[model] for other in efficiencies.values()),
        )
        if model in efficiencies
        else Ranked(reason=_why_not(finals[model], costs.get(model)))
        for model in finals
    }


def _why_not(final: float | None, cost: float | None) -> str:
    if final is None:
        return "there is no final score"
    if cost is None:
        return "the cost is unknown"
    return "a cost of 0 cannot be compared"
