"""Answers of judges that a fleet shares, beside the cache that each monitor has in its own store.

What this monitor paid for is written in the next round, and what others paid for is read into its own store. So no call
waits for the database. The price: the same question in two monitors within one round is paid for twice.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sidejudge.integrations.postgres.database import Transaction
from sidejudge.integrations.postgres.spend import new_answers, put_answers
from sidejudge.integrations.store.errors import StoreError
from sidejudge.monitor.evaluate.judge.judge_backend import JudgeStorage

from .fleet import Fleet

MOST_WAITING: Final = 2_000
"""Answers that wait for a round; while the database is away the oldest are let go."""
AT_ONCE: Final = 200
READ_EVERY_S: Final = 60.0
"""How often a monitor without answers of its own reads those of others."""
_FIRST_S: Final = 3_600.0
"""How far back answers are read the first time."""
LARGEST: Final = 20_000
"""Characters of an answer that is shared."""


class SharedAnswers:
    """A monitor's own storage, which also shares what is put into it."""

    def __init__(self, own: JudgeStorage, fleet: Fleet, clock_ns: Callable[[], int], *, most: int) -> None:
        self._own, self._clock_ns = own, clock_ns
        self._waiting: OrderedDict[str, str] = OrderedDict()
        self._read_s = clock_ns() / 1e9 - _FIRST_S
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
        """Write what this monitor paid for, and read what others did."""
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
