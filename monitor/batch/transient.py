"""Transient: judged answers and their cost for the length of one run, in bounded memory.

The store belongs to a running monitor; a run over a file has its own memory, and none of it when it is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Transient:
    """A cache of judged answers, the least lately used forgotten first, and dollars by the hour.

    ``forgetful``: no answer is kept.
    """

    def __init__(self, *, forgetful: bool = False) -> None:
        self._forgetful = forgetful
        self._answers: dict[str, str] = {}
        self._spent: dict[int, float] = {}

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, str]:  # noqa: ARG002  # order tells the age
        found = {key: self._answers.pop(key) for key in keys if key in self._answers}
        self._answers.update(found)
        return found

    async def put(self, answers: Mapping[str, str], now_ns: int, most: int) -> None:  # noqa: ARG002  # likewise
        if self._forgetful:
            return
        self._answers.update(answers)
        for key in list(self._answers)[: max(0, len(self._answers) - most)]:
            del self._answers[key]

    async def spend(self, hour_s: int, usd: float) -> None:
        self._spent[hour_s] = self._spent.get(hour_s, 0.0) + usd

    def spent_since(self, since_s: int) -> dict[int, float]:
        return {hour_s: usd for hour_s, usd in self._spent.items() if hour_s >= since_s}
