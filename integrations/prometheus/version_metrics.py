"""Counters by the application's version: those seen last have a label, so that each new deployment gets one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from scoring.status.service_status import OTHER

from . import families as f
from .collect import MetricValues
from .labels import clean
from .recent import Recent

log = logging.getLogger("sidejudge.metrics")

IDLE_S: Final = 6 * 3600.0
"""Seconds without a trace after which a version may lose its label and series, once another one needs the room.

Longer than what marks of deployments look back, so that a rollback finds its version; and a sender of ever new
versions makes at most ``label_cap`` of them new series in this time.
"""
_PLACES_PER_CAP: Final = 4
"""Combinations of service, environment and version that are kept apart, per value a label may have."""
_UNKNOWN: Final = "unknown"


class VersionMetrics:
    """Counts by version. Versions come from traces, so they are cleaned, and only those seen last are kept apart."""

    def __init__(self, counted: MetricValues, *, label_cap: int, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._counted, self._cap, self._warned = counted, label_cap, False
        self._versions = Recent[str](label_cap, idle_s=IDLE_S, clock_s=clock_s, forgotten=self._forget_version)
        self._places = Recent[tuple[str, str, str]](
            _PLACES_PER_CAP * label_cap, idle_s=IDLE_S, clock_s=clock_s, forgotten=self._forget_place
        )

    def trace(self, where: tuple[str, str], version: str | None, weight: float) -> None:
        """Count a trace.

        Args:
            where: Label values of its service and environment.
            version: The application's; None where it names none.
            weight: How many traces it stands for, 1/probability.
        """
        self._counted.counter(f.APPLICATION_TRACES, *where, self._label(where, version)).inc(weight)

    def _label(self, where: tuple[str, str], version: str | None) -> str:
        text = clean(version or _UNKNOWN) or _UNKNOWN
        if text != OTHER and self._versions.admits(text) and self._places.admits((*where, text)):
            return text
        if text != OTHER and not self._warned:
            self._warned = True
            log.warning(
                "label version has no room for %r, so it is counted as %s: more than %d versions, or %d of all "
                "services, were seen within %d hours. Raise metrics.label_cap, or give fewer names",
                text, OTHER, self._cap, _PLACES_PER_CAP * self._cap, IDLE_S // 3600,
            )  # fmt: skip
        return OTHER

    def _forget_version(self, version: str) -> None:
        for place in self._places:
            if place[2] == version:
                self._places.forget(place)

    def _forget_place(self, place: tuple[str, str, str]) -> None:
        self._counted.remove(f.APPLICATION_TRACES, *place)
