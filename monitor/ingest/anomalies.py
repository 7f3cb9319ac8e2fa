"""Traffic anomalies: collects what the detectors find and logs what is new; the status, metrics and doctor show it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from .anomaly import Anomaly, AnomalyKind
from .closing import Closing
from .fragmentation import Fragmentation
from .sampling_skew import SamplingSkew
from .upstream_trust import UpstreamTrust

log = logging.getLogger("sidejudge.traffic")


@dataclass(slots=True, kw_only=True)
class TrafficAnomalies:
    """The detectors of one monitor. ``skew`` is None where sampling does not use trace ids."""

    skew: SamplingSkew | None
    trust: UpstreamTrust | None = None
    fragments: Fragmentation = field(default_factory=Fragmentation)
    others: Sequence[Callable[[], Iterable[Anomaly]]] = ()
    """What rooms that come later in the data's way find, called each time."""
    _logged: dict[tuple[AnomalyKind, str | None], Anomaly] = field(default_factory=dict)

    def closed(self, closings: Sequence[Closing]) -> Sequence[Closing]:
        """Pass closed traces through the detectors; returns them unchanged."""
        for closing in closings:
            self.fragments.saw(closing)
        return closings

    def current(self) -> list[Anomaly]:
        """The anomalies that are detected now."""
        skewed = () if self.skew is None else self.skew.anomalies
        claims = () if self.trust is None else self.trust.anomalies
        return [*skewed, *claims, *self.fragments.anomalies, *(each for found in self.others for each in found())]

    def log_news(self) -> None:
        """Log the anomalies that are new since the last call and those that have ended, each once."""
        now = {(anomaly.kind, anomaly.service): anomaly for anomaly in self.current()}
        for key, anomaly in now.items():
            if key not in self._logged:
                log.warning("%s", anomaly.cause, extra={"kind": anomaly.kind.value, "remedy": anomaly.remedy})
        for (kind, _), anomaly in self._logged.items():
            if (kind, anomaly.service) not in now:
                log.info("an anomaly has ended", extra={"kind": kind.value, "cause": anomaly.cause})
        self._logged = now
