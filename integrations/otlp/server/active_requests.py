"""Whether this process is busy with a request. Threads whose work can wait read it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

_FRESH_S: Final = 0.005
"""Seconds after a request or its response arrived for which it is assumed to need this process, not upstream."""


class ActiveRequests:
    """The number of open requests. The event loop counts them; any thread may read it."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._count = 0
        self._until_s = 0.0
        self._none = threading.Event()

    def begin(self) -> None:
        """Count a request that has arrived."""
        self._count += 1
        self._none.clear()
        self.go_on()

    def go_on(self) -> None:
        """Record that a request needs this process again: its response has arrived."""
        self._until_s = self._clock_s() + _FRESH_S

    def end(self) -> None:
        """Count a request as ended: answered, or given up."""
        self._count -= 1
        if not self._count:
            self._none.set()

    @property
    def left_s(self) -> float:
        """The seconds for which a request may still need this process; 0 when none does."""
        return max(0.0, self._until_s - self._clock_s()) if self._count else 0.0

    def wait(self, seconds: float) -> None:
        """Wait until no request is open, for at most ``seconds``."""
        self._none.wait(seconds)
