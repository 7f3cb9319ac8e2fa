"""Passing: whether a request is on its way through, for threads that can wait meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

_FRESH_S: Final = 0.005
"""How long after it came, or its answer did, a request is taken to need this process; else it waits for upstream."""


class ActiveRequests:
    """Counts requests in the event loop; asked from any thread."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._count = 0
        self._until_s = 0.0
        self._none = threading.Event()

    def begin(self) -> None:
        """A request has come."""
        self._count += 1
        self._none.clear()
        self.go_on()

    def go_on(self) -> None:
        """There is something to do for one again."""
        self._until_s = self._clock_s() + _FRESH_S

    def end(self) -> None:
        """One that came is answered, or given up."""
        self._count -= 1
        if not self._count:
            self._none.set()

    @property
    def left_s(self) -> float:
        """For how long there may be something to do, in seconds; 0 while there is nothing."""
        return max(0.0, self._until_s - self._clock_s()) if self._count else 0.0

    def wait(self, seconds: float) -> None:
        """Until none is left, at most this long."""
        self._none.wait(seconds)
