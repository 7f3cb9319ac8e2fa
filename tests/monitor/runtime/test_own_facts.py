"""Own facts: what a monitor knows of itself, as alerts go by it."""

from __future__ import annotations

from collections import Counter

from sidejudge.integrations.prometheus.collect import Snapshot
from sidejudge.monitor.runtime.own_facts import OwnFacts
from sidejudge.scoring.status.snapshots import Anomaly, AnomalyKind, ExportSnapshot

MINUTE_NS = 60 * 10**9


def test_requests_are_counted_as_long_as_they_are_recent_and_causes_are_named():
    refused, odd, trouble = Counter({413: 2}), [], []
    exports = [ExportSnapshot(destination="langfuse", state="stopped", reason="401: keys", oldest_s=60.0)]
    facts = OwnFacts(
        snapshot=lambda: Snapshot(
            exports=exports, connections={"langfuse": "stopped", "fleet.database": "retrying", "otel_events": "ok"},
            behind_s=7.0,
        ),
        refused=lambda: refused, anomalies=lambda: odd, trouble=lambda: trouble[0] if trouble else None,
    )  # fmt: skip
    first = facts(2 * MINUTE_NS)
    assert first.unusable == {
        "langfuse": "401: keys", "fleet.database": "fleet.database is retrying", "otel_events": "",
    }  # fmt: skip
    assert (first.waiting_s, first.refused) == ({"langfuse": 60.0}, {"413": 2})
    assert (first.behind_s, first.trouble) == (7.0, None)
    assert set(first.odd) == {kind.value for kind in AnomalyKind}
    assert not any(first.odd.values())
    odd.append(Anomaly(kind=AnomalyKind.SKEWED_SAMPLING, service=None, cause="ids count up", remedy="draw them"))
    trouble.append("the disk is full")
    refused[503] += 6
    later = facts(10 * MINUTE_NS)
    assert later.refused == {"413": 0, "503": 6}
    assert (later.odd["skewed_sampling"], later.trouble) == ("ids count up; draw them", "the disk is full")
    for minute in (17, 24, 26):
        last = facts(minute * MINUTE_NS)
    assert last.refused == {"413": 0, "503": 0}


def test_requests_that_were_refused_before_the_clock_was_set_back_are_recent_for_no_longer():
    refused = Counter({503: 0})
    facts = OwnFacts(
        snapshot=lambda: Snapshot(exports=[], connections={}, behind_s=0.0), refused=lambda: refused,
        anomalies=list, trouble=lambda: None,
    )  # fmt: skip
    facts(600 * MINUTE_NS)
    refused[503] += 6
    assert facts(601 * MINUTE_NS).refused == {"503": 6}
    assert facts(100 * MINUTE_NS).refused == {"503": 6}
    for minute in range(101, 117):
        last = facts(minute * MINUTE_NS)
    assert last.refused == {"503": 0}
