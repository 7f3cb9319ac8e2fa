"""Reading traces from Langfuse shows in metrics that begin at 0 and follow what the standing says."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry

from integrations.prometheus.exporter import Exporter
from integrations.prometheus.known_labels import KnownLabels
from integrations.prometheus.snapshot import Snapshot
from scoring.status.pull_snapshot import PullSnapshot

STANDING = PullSnapshot(state="ok", pending=3, lag_s=2.5, read_s=17.0, rows=10, taken=2, errors=(("timeout", 1),))


def exporter() -> tuple[CollectorRegistry, Exporter]:
    registry = CollectorRegistry()
    return registry, Exporter(registry, KnownLabels(rubrics=(), ended_reasons=(), pull_failures=("timeout", "gone")))


def test_counters_follow_and_never_count_twice() -> None:
    registry, made = exporter()
    assert registry.get_sample_value("sidejudge_pull_errors_total", {"reason": "gone"}) == 0
    for standing in (STANDING, STANDING, replace(STANDING, rows=15, errors=(("gone", 1), ("timeout", 1)))):
        made.pull.follow(standing)
    assert registry.get_sample_value("sidejudge_pull_rows_total") == 15
    assert registry.get_sample_value("sidejudge_pull_traces_total") == 2
    assert registry.get_sample_value("sidejudge_pull_errors_total", {"reason": "timeout"}) == 1
    assert registry.get_sample_value("sidejudge_pull_errors_total", {"reason": "gone"}) == 1


def test_gauges_are_absent_until_something_was_read() -> None:
    registry, made = exporter()
    made.watch(lambda: Snapshot(pull=PullSnapshot(state="starting")))
    assert registry.get_sample_value("sidejudge_pull_lag_seconds") is None
    made.watch(lambda: Snapshot(pull=STANDING))
    assert registry.get_sample_value("sidejudge_pull_lag_seconds") == 2.5
    assert registry.get_sample_value("sidejudge_pull_last_success_timestamp_seconds") == 17
