"""What the monitors of a fleet share of their judges: one budget, and the answers. No call waits for the database.

Budget: a monitor spends slices that were granted to it before a call needs them. A slice lasts for ten minutes of what
this monitor's cases would cost; where the budget does not suffice, all slices shrink by the same factor. While the
database is away a monitor spends what it was granted, and then judges nothing: so the sum of all monitors stays within
the budget. The price is that judging ends about ten minutes into an outage.

Answers: what this monitor paid for is written in the next round, and what others paid for is read into its own store.
The price is that the same question in two monitors within one round is paid for twice.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sidejudge.integrations.postgres import spend
from sidejudge.integrations.postgres.database import Transaction
from sidejudge.integrations.postgres.spend import SpendLimit, SpendTotals, new_answers, put_answers
from sidejudge.integrations.store.errors import StoreError
from sidejudge.monitor.evaluate.judge.budget import AHEAD_S, DAY_S, HOUR_S, JudgeBudget
from sidejudge.monitor.evaluate.judge.judge_backend import JudgeStorage

from .fleet import Fleet

_FIRST: Final = 4
"""What is left is divided by so many times the monitors: that much each may have before it knows what it needs."""
_FEWER: Final = 1.5
"""By this factor the number of monitors has to change before slices are divided anew without traffic."""
_MOVED: Final = 0.2
"""A demand that moved by less than this share is not reported anew."""
MOST_WAITING: Final = 2_000
"""Answers that wait for a round; while the database is away the oldest are dropped."""
AT_ONCE: Final = 200
"""Answers that are written in one round."""
READ_EVERY_S: Final = 60.0
"""How often a monitor without answers of its own reads the others' answers."""
_FIRST_READ_S: Final = 3_600.0
"""How far back answers are read the first time."""
_ROUNDING: Final = 1e-9
"""Largest difference, in US dollars, between two sums of the same costs."""
LARGEST: Final = 20_000
"""Characters of an answer that is shared, at most."""


def granted_usd(
    *,
    limits: Sequence[SpendLimit],
    totals: Sequence[SpendTotals],
    unspent: float,
    demand: float,
    refused: float,
    monitors: int,
) -> float:
    """US dollars to grant a monitor in addition to its present budget.

    Args:
        limits: of the hour and the day.
        totals: of all monitors, this one included, for each limit.
        unspent: what this monitor has left of its slice.
        demand: US dollars a second that judging all its cases would take.
        refused: the dearest call that its slice did not reach for; 0 for none.
        monitors: how many there are.
    """
    free = min(limit.usd - total.granted for limit, total in zip(limits, totals, strict=True))
    if free <= 0.0:
        return 0.0
    left = [(limit.usd - total.spent, limit.left_s) for limit, total in zip(limits, totals, strict=True)]
    pace = min(usd / max(1.0, seconds) for usd, seconds in left)
    others = max(total.demand for total in totals)
    rate = min(demand, pace * demand / others) if others > 0.0 else 0.0
    first = min(usd for usd, _ in left) / (_FIRST * max(1, monitors))
    return min(free, max(0.0, max(rate * AHEAD_S, first, refused) - unspent))


class FleetBudget:
    """Reports spending and gets new budget, in each round of the fleet."""

    def __init__(self, budget: JudgeBudget, fleet: Fleet, clock_s: Callable[[], float]) -> None:
        self._budget, self._fleet, self._clock_s = budget, fleet, clock_s
        self._hour: int | None = None
        budget.grants = {}
        self._reported: tuple[float, float] | None = None
        self._members = 1
        fleet.each_round("judge budget", self.round, when=self._is_due)
        fleet.at_end(self._give_back)

    def _is_due(self) -> bool:
        """Whether something was spent, is wanted or is given back: a monitor without traffic has nothing to report."""
        now = self._clock_s()
        grants, hour = self._budget.grants or {}, int(now // HOUR_S) * HOUR_S
        if self._reported is None or self._hour != hour or self._budget.refused_usd:
            return True
        if not self._members / _FEWER < self._fleet.count < self._members * _FEWER:
            return True
        if hour + HOUR_S - now < AHEAD_S and hour + HOUR_S not in grants:
            return True
        spent, demand = self._reported
        moved = abs(self._budget.demand(now) - demand) > _MOVED * demand
        return moved or self._budget.committed(now) != spent

    async def round(self, transaction: Transaction) -> Callable[[], None]:
        """Report and be granted; the result puts it into force, once that is committed."""
        now, budget = self._clock_s(), self._budget
        hour = int(now // HOUR_S) * HOUR_S
        if self._hour != hour:
            await self._settle_accounts(transaction, hour)
        members, reported = self._fleet.count, (budget.committed(now), budget.demand(now))
        granted = {hour: await self._granted(transaction, hour, now, committed=budget.committed(now))}
        if hour + HOUR_S - now < AHEAD_S:  # an outage over the full hour leaves something to spend
            granted[hour + HOUR_S] = await self._granted(transaction, hour + HOUR_S, hour + HOUR_S, committed=0.0)

        def in_force() -> None:
            self._hour, self._reported, self._members = hour, reported, members
            budget.grants = granted

        return in_force

    async def _settle_accounts(self, transaction: Transaction, hour: int) -> None:
        """Give back what earlier hours of the day left over, and count what this monitor's store lacks.

        A new store, or an older backup, lacks what was reported; then all that was granted may have been spent.
        """
        name, budget = self._fleet.name, self._budget
        for each, granted, reported in await spend.known(transaction, name, hour // DAY_S * DAY_S, hour):
            if reported > budget.spent_in(each) + _ROUNDING:
                budget.count(each, granted)
            if each < hour:
                await spend.settle(transaction, name, each, budget.spent_in(each))

    async def _give_back(self, transaction: Transaction) -> None:
        """This monitor ends: what it does not spend is there for others."""
        now, budget = self._clock_s(), self._budget
        granted, budget.grants = budget.grants or {}, {}  # given back here before it is there
        reserved = budget.committed(now) - budget.spent(HOUR_S, now)
        for hour in granted:
            held = reserved if hour <= now else 0.0
            await spend.settle(transaction, self._fleet.name, hour, budget.spent_in(hour), reserved=held)

    async def _granted(self, transaction: Transaction, hour: int, now: float, *, committed: float) -> float:
        budget, name = self._budget, self._fleet.name
        demand = budget.demand(now)
        first = min(usd for _, usd in budget.limits) / (_FIRST * self._fleet.count)
        keep = committed + max(2 * demand * AHEAD_S, 2 * first, budget.refused_usd)
        grants = budget.grants
        if grants is not None and grants.get(hour, 0.0) > keep:
            budget.grants = {**grants, hour: keep}  # given back here before it is there
        mine = await spend.report(
            transaction, name, hour, spent=budget.spent_in(hour), committed=committed, demand=demand, keep=keep
        )
        refused = budget.take_refused()
        if mine > committed and mine - committed >= demand * AHEAD_S / 2 and not refused:
            return mine  # enough for now: most rounds take no lock
        await spend.begin(transaction)
        limits = [
            SpendLimit(usd, begun := hour // length * length, begun + length, begun + length - now)
            for length, usd in budget.limits
        ]
        alive_s = 4 * self._fleet.every_s
        totals = await spend.totals(transaction, hour, limits, alive_s=alive_s)
        more = granted_usd(
            limits=limits, totals=totals, unspent=mine - committed, demand=demand, refused=refused,
            monitors=self._fleet.count,
        )  # fmt: skip
        return await spend.grant(transaction, name, hour, more) if more > 0.0 else mine


class SharedAnswers:
    """A monitor's own storage, which also shares what is put into it."""

    def __init__(self, own: JudgeStorage, fleet: Fleet, clock_ns: Callable[[], int], *, most: int) -> None:
        self._own, self._clock_ns = own, clock_ns
        self._waiting: OrderedDict[str, str] = OrderedDict()
        self._read_s = clock_ns() / 1e9 - _FIRST_READ_S
        self._most, self._read_due_s = most, 0.0
        fleet.each_round("judge answers", self.round, when=self._is_due)

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, str]:
        """The known answers by key."""
        return self._own.get(keys, now_ns)

    async def put(self, answers: Mapping[str, str], now_ns: int, most: int) -> None:
        """Keep answers here, and share them in the next round."""
        for key, body in answers.items():
            if len(body) <= LARGEST:
                self._waiting[key] = body
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        await self._own.put(answers, now_ns, most)

    async def spend(self, hour_s: int, usd: float) -> None:
        """Add dollars to an hour."""
        await self._own.spend(hour_s, usd)

    def spent_since(self, since_s: int) -> dict[int, float]:
        """Dollars by the hour."""
        return self._own.spent_since(since_s)

    def _is_due(self) -> bool:
        return bool(self._waiting) or time.monotonic() >= self._read_due_s

    async def round(self, transaction: Transaction) -> Callable[[], None]:
        """Write the answers that this monitor paid for, and read the others'."""
        shared = dict(list(self._waiting.items())[:AT_ONCE])
        await put_answers(transaction, shared)
        self._read_due_s = time.monotonic() + READ_EVERY_S
        found, read_s = await new_answers(transaction, self._read_s)
        others = {key: body for key, body in found.items() if key not in shared}
        if others and self._most:
            try:
                await self._own.put(others, self._clock_ns(), self._most)
            except StoreError:
                read_s = self._read_s  # read again in the next round

        def committed() -> None:
            self._read_s = read_s
            for key in shared:
                self._waiting.pop(key, None)

        return committed
