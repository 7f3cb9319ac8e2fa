"""Own facts: the monitor's snapshot comes in, the facts for alerts about the monitor itself go out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

from sidejudge.integrations.prometheus.collect import Snapshot
from sidejudge.scoring.alerts.condition import REFUSED_NS, MonitorFacts
from sidejudge.scoring.status.snapshots import Anomaly, AnomalyKind

_UNUSABLE = ("retrying", "stopped")


class OwnFacts:
    """What a monitor knows of itself, look by look.

    Args:
        snapshot: the gauges of this moment, without services.
        refused: requests that were answered with an error since the start, by status.
        anomalies: those of the traffic.
        trouble: why traces cannot be kept or judged, or no status be decided; None while they can.
    """

    def __init__(
        self, *, snapshot: Callable[[], Snapshot], refused: Callable[[], Mapping[int, int]],
        anomalies: Callable[[], Iterable[Anomaly]], trouble: Callable[[], str | None],
    ) -> None:  # fmt: skip
        self._snapshot, self._refused, self._anomalies, self._trouble = snapshot, refused, anomalies, trouble
        self._counted: deque[tuple[int, Counter[int]]] = deque()

    def __call__(self, now_ns: int) -> MonitorFacts:
        """The facts of this moment."""
        seen, counted = self._snapshot(), Counter(self._refused())
        # What is later was counted before the clock was set back.
        self._counted = deque((min(at_ns, now_ns), before) for at_ns, before in self._counted)
        while len(self._counted) > 1 and self._counted[1][0] <= now_ns - REFUSED_NS:
            self._counted.popleft()
        before = self._counted[0][1] if self._counted else Counter[int]()
        self._counted.append((now_ns, counted))
        why = {export.destination: export.reason for export in seen.exports}
        if seen.fleet is not None:
            why["fleet.database"] = seen.fleet.reason
        odd = dict.fromkeys(AnomalyKind, "")
        for anomaly in self._anomalies():
            odd[anomaly.kind] = odd[anomaly.kind] or f"{anomaly.cause}; {anomaly.remedy}"
        return MonitorFacts(
            unusable={
                name: (why.get(name) or f"{name} is {state}") if state in _UNUSABLE else ""
                for name, state in seen.connections.items()
            },
            waiting_s={
                export.destination: max(0.0, now_ns / 1e9 - export.oldest_s)
                for export in seen.exports if export.oldest_s is not None
            },
            refused={str(code): n - before[code] for code, n in counted.items()},
            odd={kind.value: cause for kind, cause in odd.items()}, trouble=self._trouble(), behind_s=seen.behind_s,
        )  # fmt: skip
