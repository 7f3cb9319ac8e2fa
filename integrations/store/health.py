"""Health of the store: whether its last reads and its last write worked. A full disk cannot flood the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .errors import StoreCorrupt, StoreError, StoreUnavailable

_log = logging.getLogger("sidejudge.store")

_LOG_EVERY_S: Final = 60.0
"""A failure that lasts is logged this often, with how many calls it refused."""


@dataclass(slots=True)
class _Failure:
    error: StoreError
    count: int
    logged_s: float


class StoreHealth:
    """What does not work now, by operation: ``write``, or the name of a query. Any thread may report."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._failing: dict[str, _Failure] = {}

    @property
    def trouble(self) -> str | None:
        """Why the store cannot be read or written now; None while it can."""
        return next((str(failure.error) for failure in [*self._failing.values()]), None)

    def failed(self, operation: str, error: StoreError) -> None:
        """Record a refused call. The first of a kind is logged at once, the others once a minute.

        A refusal for what is in the data (neither unavailable nor corrupt) is logged, and does not count against the
        store.
        """
        if not isinstance(error, StoreUnavailable | StoreCorrupt):
            _log.error("%s", error, extra={"operation": operation})
            return
        now_s, known = self._clock_s(), self._failing.get(operation)
        if known is None or str(known.error) != str(error):
            count = 1 if known is None else known.count + 1
            self._failing[operation] = _Failure(error, count, now_s)
        else:
            known.count += 1
            if now_s - known.logged_s < _LOG_EVERY_S:
                return
            known.logged_s = now_s
        _log.error("%s", error, extra={"operation": operation, "refused": self._failing[operation].count})

    def worked(self, operation: str) -> None:
        """Record a call that was answered: what failed before works again."""
        if self._failing and (over := self._failing.pop(operation, None)) is not None:
            _log.warning("the store works again", extra={"operation": operation, "refused": over.count})
