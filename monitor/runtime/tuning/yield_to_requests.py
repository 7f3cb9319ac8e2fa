"""Giving way: judging steps aside while a request goes on.

Threads of one interpreter take turns, and a request that goes on wakes the event loop some ten times: each time it
would wait for its turn. What is judged has time. But traffic may never cease, so judging waits for at most as long as
it has worked, and goes on at half its pace at worst.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

_CREDIT_S: Final = 0.02
"""What may be waited for at most before anything more is done, however long nothing was waited for."""


class RequestActivity(Protocol):
    """Whether requests are on their way."""

    @property
    def left_s(self) -> float: ...
    def wait(self, seconds: float, /) -> None: ...


class YieldToRequests:
    """Called by the judging thread wherever it may pause; returns at once where nobody is in a hurry."""

    def __init__(self, passing: RequestActivity, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._passing, self._clock_s = passing, clock_s
        self._credit_s = 0.0
        self._since_s = clock_s()

    def __call__(self) -> None:
        left_s = self._passing.left_s
        if not left_s:
            return
        now_s = self._clock_s()
        self._credit_s = min(_CREDIT_S, self._credit_s + now_s - self._since_s)
        self._passing.wait(min(left_s, self._credit_s))
        self._since_s = self._clock_s()
        self._credit_s -= self._since_s - now_s
