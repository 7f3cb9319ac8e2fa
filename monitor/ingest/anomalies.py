"""Traffic: what is suspicious about what arrives, told where an operator looks: status, metrics, log, doctor."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from .anomaly import Anomaly, AnomalyKind
from .assembler import Closing
from .fragmentation import Fragmentation
from .sampling_skew import SamplingSkew

log = logging.getLogger("sidejudge.traffic")


@dataclass(slots=True, kw_only=True)
class TrafficAnomalies:
    """The watches of one monitor. ``skew`` is None where sampling does not go by trace ids."""

    skew: SamplingSkew | None
    fragments: Fragmentation = field(default_factory=Fragmentation)
    _told: dict[tuple[AnomalyKind, str | None], Anomaly] = field(default_factory=dict)

    def closed(self, closings: Sequence[Closing]) -> Sequence[Closing]:
        """Look at traces that were closed; return them as they are."""
        for closing in closings:
            self.fragments.saw(closing)
        return closings

    def suspicions(self) -> list[Anomaly]:
        """What is suspected now."""
        skewed = () if self.skew is None else self.skew.suspicions
        return [*skewed, *self.fragments.suspicions]

    def log_news(self) -> None:
        """Log what has come to be suspected since the last call, and what is not any more, each once."""
        now = {(suspicion.kind, suspicion.service): suspicion for suspicion in self.suspicions()}
        for key, suspicion in now.items():
            if key not in self._told:
                log.warning("%s", suspicion.cause, extra={"kind": suspicion.kind.value, "remedy": suspicion.remedy})
        for (kind, _), suspicion in self._told.items():
            if (kind, suspicion.service) not in now:
                log.info("no longer suspected", extra={"kind": kind.value, "cause": suspicion.cause})
        self._told = now
