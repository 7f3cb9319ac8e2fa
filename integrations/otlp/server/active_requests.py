"""Whether a request is on its way through this process, for threads that can wait meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

_FRESH_S: Final = 0.005
"""How long after it came, or its response did, a request is assumed to need this process; later it is upstream's."""


class ActiveRequests:
    """Counts requests in the event loop; may be read from any thread."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._count = 0
        self._until_s = 0.0
        self._none = threading.Event()

    def begin(self) -> None:
        """Count a request that has come."""
        self._count += 1
        self._none.clear()
        self.go_on()

    def go_on(self) -> None:
        """Note that one of the requests needs this process again."""
        self._until_s = self._clock_s() + _FRESH_S

    def end(self) -> None:
        """Count a request as answered, or as given up."""
        self._count -= 1
        if not self._count:
            self._none.set()

    @property
    def left_s(self) -> float:
        """For how many seconds a request may need this process; 0 when none does."""
        return max(0.0, self._until_s - self._clock_s()) if self._count else 0.0

    def wait(self, seconds: float) -> None:
        """Wait until no request is left, at most this long."""
        self._none.wait(seconds)
