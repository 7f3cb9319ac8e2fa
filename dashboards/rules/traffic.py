"""Traffic: the alert on what arrives, where it makes verdicts fewer or other than the configuration asks for."""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.scoring.alerts.condition import Severity

from .promql import fleet
from .rule import AlertingRule

_MINUTE_NS = 60 * 10**9


def traffic() -> list[AlertingRule]:
    """One alert for each kind of anomaly, which a label names."""
    return [
        AlertingRule(
            id="traffic_suspected", severity=Severity.WARNING, title="Something is odd about the traffic",
            when="a monitor reports an anomaly: ids that are not random, traces that are torn, or claims about how "
            "traces were drawn that are not believed",
            meaning="verdicts are fewer than the configuration asks for, or weigh other than their senders claim",
            expr=f"{fleet(f.TRAFFIC_SUSPECTED, operation='max')} == 1",
            stated="{{ $labels.kind }} was found; the status page has its cause and remedy.",
            for_ns=10 * _MINUTE_NS, keep_ns=15 * _MINUTE_NS,
        )
    ]  # fmt: skip
