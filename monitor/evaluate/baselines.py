"""Baselines: the usual effort of each service's runs, learned from the latest judged runs.

A baseline holds the latest ``REMEMBERED`` runs of a service, each with its weight, so that different sampling rates
cause no bias. Below ``ENOUGH`` runs there is no baseline. Baselines are committed to the store every minute and at the
end, so a restart goes on with them; a crash loses a minute.
"""

from __future__ import annotations

import json
import logging
import math
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from sidejudge.integrations.store.part import TextsByName
from sidejudge.monitor.ingest.outcomes import NAME_LENGTH
from sidejudge.scoring.case.case import Usual
from sidejudge.scoring.metrics.run_effort import UNITS
from sidejudge.scoring.statistics.descriptive import outer_fence

if TYPE_CHECKING:
    from .result import TraceResult

log = logging.getLogger("sidejudge.baselines")

REMEMBERED: Final = 128
"""Runs of a service that are remembered."""
ENOUGH: Final = 50
"""Runs that report a measure before anything is usual."""
SERVICES: Final = 100
"""Services that have a baseline; a further one takes the place of the one whose latest run is the oldest."""
_STEP: Final = 8
"""Runs after which the fences are computed again."""
EFFORT: Final = "effort"
"""Key of a run's effort in the details of a result."""


class _Service:
    """The latest runs of one service, each with its weight and measures, and the ``usual`` effort by them."""

    def __init__(self, runs: list[tuple[float, Mapping[str, float]]]) -> None:
        self.runs = deque(runs, maxlen=REMEMBERED)
        self.changed = False
        self._added = len(runs)
        self.usual = self._compute()

    def add(self, weight: float, effort: Mapping[str, float]) -> None:
        self.runs.append((weight, effort))
        self.changed = True
        self._added += 1
        if self._added % _STEP == 0:
            self.usual = self._compute()

    def _compute(self) -> Usual:
        limits: dict[str, float] = {}
        medians: dict[str, float] = {}
        for measure in UNITS if len(self.runs) >= ENOUGH else ():
            values = [(effort[measure], weight) for weight, effort in self.runs if measure in effort]
            fence = outer_fence(values) if len(values) >= ENOUGH else None
            if fence is not None:
                limits[measure], medians[measure] = fence.limit, fence.median
        return Usual(limits=limits, medians=medians, runs=len(self.runs), needed=ENOUGH)


class Baselines:
    """The usual effort by service and environment. ``committed`` is a listener of the commit."""

    def __init__(self, memory: TextsByName) -> None:
        self._memory = memory
        self._services: dict[tuple[str | None, str | None], _Service] = {}
        self._gone: set[tuple[str | None, str | None]] = set()

    def usual(self, service: str | None, environment: str | None) -> Usual:
        """The usual effort of a service's runs. Safe in any thread: the returned value is replaced, never changed."""
        known = self._services.get((service, environment))
        return _UNKNOWN if known is None else known.usual

    def committed(self, result: TraceResult) -> None:
        """Learn from a run, once: from its first result, and only if its trace was complete then."""
        effort = result.details.get(EFFORT)
        if result.revision != 1 or not isinstance(effort, dict) or not result.verdicts:
            return
        environment = result.details.get("environment")
        key = (result.service, environment if isinstance(environment, str) else None)
        if any(name is not None and len(name) > NAME_LENGTH for name in key):
            return
        service = self._services.pop(key, None)
        if service is None:
            if len(self._services) >= SERVICES:
                oldest = next(iter(self._services))
                del self._services[oldest]
                self._gone.add(oldest)
            service = _Service([])
        self._services[key] = service  # the latest stands last
        # The budget for judging thins single verdicts; a run's effort is known either way.
        service.add(1.0 / max(verdict.sampling_probability for verdict in result.verdicts), effort)

    def restore(self) -> None:
        """Restore the last process's baselines; unreadable ones are left out."""
        for name, text in self._memory.all().items():
            try:
                service, environment = json.loads(name)
                runs = [_run(held) for held in json.loads(text)]
            except (ValueError, TypeError, AttributeError):
                log.warning("a baseline cannot be read; it is learned anew", extra={"baseline": name[:200]})
                continue
            self._services[service, environment] = _Service(runs)

    async def remember(self) -> None:
        """Commit what has changed since it was last remembered. Raises ``StoreError``."""
        changed = {key: service for key, service in self._services.items() if service.changed}
        gone, self._gone = self._gone - self._services.keys(), set()
        for service in changed.values():
            service.changed = False
        values: dict[str, str | None] = {json.dumps(key): None for key in gone}
        values |= {
            json.dumps(key): json.dumps([[weight, effort] for weight, effort in service.runs], separators=(",", ":"))
            for key, service in changed.items()
        }
        try:
            await self._memory.change(values)
        except BaseException:
            self._gone |= gone
            for service in changed.values():
                service.changed = True
            raise


_UNKNOWN: Final = Usual(limits={}, medians={}, runs=0, needed=ENOUGH)


def _run(held: tuple[float, Mapping[str, float]]) -> tuple[float, Mapping[str, float]]:
    weight, effort = held
    known = {str(name): float(value) for name, value in effort.items() if name in UNITS and math.isfinite(value)}
    return float(weight), known
