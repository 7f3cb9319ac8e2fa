"""Cost: what judging the past took, and what it would have taken, as far as its verdicts record it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from sidejudge.scoring.status.snapshots import JudgeSnapshot, Spending
from sidejudge.scoring.verdict.documents import VerdictDocument

HOUR_S = 3_600
DAY_S = 24 * HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """US dollars as verdicts state them; ``judged`` of ``verdicts`` needed the judge and state its cost.

    ``paid_usd`` is for what was drawn then. ``whole_usd`` estimates, by inverse probability, what judging all of the
    traffic would have taken; ``at_rate_usd`` the same at a base rate of ``rate``, without what rules keep beyond it.
    ``dearest_hour_usd`` and ``dearest_day_usd`` (UTC) are of what was paid. Where no verdict states a cost all are
    ``None``: nothing is known of it.
    """

    verdicts: int
    judged: int
    models: tuple[str, ...]
    rate: float
    paid_usd: float | None
    whole_usd: float | None
    at_rate_usd: float | None
    dearest_hour_usd: float | None
    dearest_day_usd: float | None


@dataclass(slots=True, kw_only=True)
class Costs:
    """Adds up what verdicts cost, hour by hour. ``hour_usd`` and ``day_usd`` are the configured budgets."""

    rate: float
    hour_usd: float | None = None
    day_usd: float | None = None
    _verdicts: int = 0
    _costs: list[float] = field(default_factory=list)
    _whole: list[float] = field(default_factory=list)
    _hours: dict[int, float] = field(default_factory=dict)
    _models: dict[str, None] = field(default_factory=dict)

    def add(self, verdict: VerdictDocument, at_ns: int, *, counted: bool) -> None:
        """Take a verdict; one that is not ``counted`` (it came before the period) is only spent."""
        judge = verdict.get("judge") or {}
        usd = float(judge.get("cost_usd") or 0.0)
        hour = at_ns // 10**9 // HOUR_S
        self._hours[hour] = self._hours.get(hour, 0.0) + usd
        if not counted:
            return
        self._verdicts += 1
        if usd > 0:
            self._costs.append(usd)
            self._whole.append(usd / float(verdict["sampling_probability"]))
            self._models[str(judge.get("model") or "unknown")] = None

    def snapshot(self, now_ns: int) -> JudgeSnapshot:
        """The judge as a condition on its budget sees it; of its reach nothing is known, so nothing is wrong."""
        hour = now_ns // 10**9 // HOUR_S
        day = hour - hour % 24
        return JudgeSnapshot(
            name="", models=(), outage=None, shares={}, under_way=0, waiting=0,
            spending=(
                Spending(period="hour", spent_usd=self._hours.get(hour, 0.0), limit_usd=self.hour_usd),
                Spending(
                    period="day", spent_usd=sum(self._hours.get(each, 0.0) for each in range(day, hour + 1)),
                    limit_usd=self.day_usd,
                ),
            ),
        )  # fmt: skip

    def reported(self, begin_ns: int) -> Judging:
        """The total from ``begin_ns`` on."""
        known = bool(self._costs)
        whole = math.fsum(self._whole)
        first = begin_ns // 10**9 // HOUR_S
        hours = {hour: usd for hour, usd in self._hours.items() if hour >= first}
        days: dict[int, float] = {}
        for hour, usd in hours.items():
            days[hour // 24] = days.get(hour // 24, 0.0) + usd
        return Judging(
            verdicts=self._verdicts, judged=len(self._costs), models=tuple(self._models), rate=self.rate,
            paid_usd=math.fsum(self._costs) if known else None, whole_usd=whole if known else None,
            at_rate_usd=whole * self.rate if known else None,
            dearest_hour_usd=_largest(list(hours.values())) if known else None,
            dearest_day_usd=_largest(list(days.values())) if known else None,
        )  # fmt: skip


def _largest(values: Sequence[float]) -> float | None:
    return max(values, default=None)
