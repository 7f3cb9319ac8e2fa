"""Traffic anomalies: collects the detectors' findings and logs new ones; the status, metrics and doctor show them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidejudge.scoring.status.snapshots import Anomaly, AnomalyKind

from .assembled_trace import Closing
from .sampling_skew import SamplingSkew
from .upstream_trust import UpstreamTrust

log = logging.getLogger("sidejudge.traffic")


# Fragmentation: whether this monitor receives whole traces.
#
# Behind a plain load balancer each of several monitors gets a part of every trace: roots that never come, parents
# that never come. Each part is closed as idle, and the rubrics cannot be evaluated on it. Nothing fails; there are
# only more and more *incomplete* verdicts. So the share of fragments among the latest traces is measured. The anomaly
# begins at a share of ``BEGINS_AT`` and ends below ``ENDS_BELOW``: a few lost spans are no misrouting, and it must not
# begin and end with every trace. At a true share of 5 % a hundred traces reach 20 % once in 10**7 times.

BEGINS_AT: Final = 0.2
ENDS_BELOW: Final = 0.1
_LATEST: Final = 200
_ENOUGH: Final = 100
_NO_EVIDENCE: Final = ("pressure", "shutdown", "torn")
"""Completions that prove nothing: traces that were closed before their spans could come, or that a resize tore."""
_BEHIND: Final = "behind several monitors, route by trace id (Collector: loadbalancing exporter, routing_key: traceID)"
_REMEDIES: Final = {
    AnomalyKind.SPLIT_TRACES: (
        f"{_BEHIND}; a single monitor: see whether the application drops spans when its queue is full"
    ),
    AnomalyKind.ROOTLESS_TRACES: f"send the spans of the callers here too, and {_BEHIND}",
}
_CAUSES: Final = {
    AnomalyKind.SPLIT_TRACES: "lack their root or a parent: their spans go to several places, or are lost",
    AnomalyKind.ROOTLESS_TRACES: "begin below a caller in another process whose spans do not arrive here",
}


class Fragmentation:
    """Measures the share of fragments among traces that are closed for the first time."""

    def __init__(self) -> None:
        self._latest: deque[AnomalyKind | None] = deque()
        self._count = dict.fromkeys(_CAUSES, 0)
        self._raised: set[AnomalyKind] = set()

    def observe(self, closing: Closing) -> None:
        """Count a closed trace, unless it is a revision or its completion is one of ``_NO_EVIDENCE``."""
        if closing.revision > 1 or closing.completion in _NO_EVIDENCE:
            return
        fragment = None if closing.whole else AnomalyKind.SPLIT_TRACES
        self._count_latest(AnomalyKind.ROOTLESS_TRACES if closing.completion == "pseudo_root" else fragment)
        if len(self._latest) >= _ENOUGH:
            for kind, count in self._count.items():
                share = count / len(self._latest)
                if share >= BEGINS_AT:
                    self._raised.add(kind)
                elif share < ENDS_BELOW:
                    self._raised.discard(kind)

    def _count_latest(self, kind: AnomalyKind | None) -> None:
        self._latest.append(kind)
        if kind is not None:
            self._count[kind] += 1
        if len(self._latest) > _LATEST and (gone := self._latest.popleft()) is not None:
            self._count[gone] -= 1

    @property
    def anomalies(self) -> Iterator[Anomaly]:
        """The anomalies that are detected now."""
        for kind in sorted(self._raised):
            cause = f"{self._count[kind]} of the last {len(self._latest)} traces {_CAUSES[kind]}"
            yield Anomaly(kind=kind, service=None, cause=cause, remedy=_REMEDIES[kind])


@dataclass(slots=True, kw_only=True)
class TrafficAnomalies:
    """The detectors of one monitor. ``skew`` is None where sampling does not use trace ids."""

    skew: SamplingSkew | None
    trust: UpstreamTrust | None = None
    fragments: Fragmentation = field(default_factory=Fragmentation)
    others: Sequence[Callable[[], Iterable[Anomaly]]] = ()
    """Detectors of later stages, such as routing: each is called to list its anomalies."""
    _logged: dict[tuple[AnomalyKind, str | None], Anomaly] = field(default_factory=dict)

    def closed(self, closings: Sequence[Closing]) -> Sequence[Closing]:
        """Pass closed traces through the detectors; returns them unchanged."""
        for closing in closings:
            self.fragments.observe(closing)
            if self.trust is not None and closing.completion == "pseudo_root" and closing.revision == 1:
                self.trust.begun_by_callers += 1
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
