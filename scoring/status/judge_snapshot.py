"""Judge snapshot: whether the judge can be asked, what it has cost, and what waits for it, at one moment.

Metrics, API and status page show the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

CircuitName: TypeAlias = Literal["closed", "open", "half_open"]
"""Calls pass; none does; one does, as a probe."""
CIRCUITS: tuple[CircuitName, ...] = ("closed", "open", "half_open")
Period: TypeAlias = Literal["hour", "day"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeModelSnapshot:
    """One model: its circuit breaker, and why that is not closed (empty when it is). Times in s since the epoch."""

    model: str
    circuit: CircuitName
    reason: str = ""
    since_s: float | None = None
    next_probe_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """US dollars since the running hour or day (UTC) began; ``limit_usd`` None where there is no budget."""

    period: Period
    spent_usd: float
    limit_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSnapshot:
    """The judge, or the panel of judges.

    ``outage`` is why the judge cannot answer now, None when it can. ``shares`` are the shares in [0, 1] of the cases
    that need the judge that its budget can pay for now, by priority. ``under_way`` cases are being judged, ``waiting``
    ones wait until they can be, the oldest since ``oldest_s``. The models of ``estimating`` give no account of their
    tokens: what is spent on them is an estimate.
    """

    name: str
    models: tuple[JudgeModelSnapshot, ...]
    outage: str | None
    spending: tuple[Spending, ...]
    shares: Mapping[str, float]
    under_way: int
    waiting: int
    oldest_s: float | None = None
    estimating: tuple[str, ...] = ()

    @property
    def unreachable(self) -> str | None:
        """Which models do not answer and why, where no majority is known to; None when one is.

        Unlike ``outage`` it lasts while a probe is under way: a provider that hangs keeps a breaker half open for as
        long as a call may take, again and again, and is not back in between.
        """
        shut = [model for model in self.models if model.circuit != "closed"]
        if not self.models or 2 * len(shut) < len(self.models):
            return None
        return "; ".join(f"{model.model}: {model.reason or 'it is being tried'}" for model in shut)
