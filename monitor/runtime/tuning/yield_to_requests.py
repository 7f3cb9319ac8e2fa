"""Judging yields while a request is forwarded.

Threads of one interpreter run one at a time, and a forwarded request wakes the event loop about ten times; each time it
would wait for the judging thread. Judging can wait. Because traffic may never pause, it waits at most as long as it has
worked: at worst it runs at half speed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

_CREDIT_S: Final = 0.02
"""The longest wait at once, in seconds, however long judging has worked without waiting."""


class RequestActivity(Protocol):
    """Whether requests are in progress."""

    @property
    def left_s(self) -> float: ...
    def wait(self, seconds: float, /) -> None: ...


class YieldToRequests:
    """Called by the judging thread where it may pause; returns at once when no request is in progress."""

    def __init__(self, active: RequestActivity, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._active, self._clock_s = active, clock_s
        self._credit_s = 0.0
        self._since_s = clock_s()

    def __call__(self) -> None:
        left_s = self._active.left_s
        if not left_s:
            return
        now_s = self._clock_s()
        self._credit_s = min(_CREDIT_S, self._credit_s + now_s - self._since_s)
        self._active.wait(min(left_s, self._credit_s))
        self._since_s = self._clock_s()
        self._credit_s -= self._since_s - now_s
