"""Reading from Langfuse and late references show in metrics that begin at 0, follow the snapshot and never go back."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry

from sidejudge.integrations.prometheus.collect import Snapshot
from sidejudge.integrations.prometheus.exporter import Exporter
from sidejudge.integrations.prometheus.labels import KnownLabels
from sidejudge.monitor.api.totals import late_reference_totals, pull_totals
from sidejudge.scoring.status.snapshots import LateReferenceSnapshot, PullSnapshot

STANDING = PullSnapshot(state="ok", pending=3, lag_s=2.5, read_s=17.0, rows=10, taken=2, errors=(("timeout", 1),))


def exporter() -> tuple[CollectorRegistry, Exporter]:
    registry = CollectorRegistry()
    return registry, Exporter(registry, KnownLabels(rubrics=(), ended_reasons=(), pull_failures=("timeout", "gone")))


def test_counters_follow_and_never_count_twice() -> None:
    registry, made = exporter()
    assert registry.get_sample_value("sidejudge_pull_errors_total", {"reason": "gone"}) == 0
    for standing in (STANDING, STANDING, replace(STANDING, rows=15, errors=(("gone", 1), ("timeout", 1)))):
        made.follow(pull_totals(standing))
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


def late(reasons: tuple[str, ...]) -> tuple[CollectorRegistry, Exporter]:
    registry = CollectorRegistry()
    return registry, Exporter(registry, KnownLabels(rubrics=(), ended_reasons=(), revision_failures=reasons))


def test_what_can_be_counted_begins_at_0_and_follows_the_standing():
    registry, exporter = late(("gone", "incomplete"))
    assert registry.get_sample_value("sidejudge_belated_traces_total", {"outcome": "revised"}) == 0
    assert registry.get_sample_value("sidejudge_belated_attempts_failed_total", {"reason": "gone"}) == 0
    for revised in (2, 2, 5):
        snapshot = LateReferenceSnapshot(state="ok", revised=revised, unchanged=1, failures=(("gone", 3),))
        exporter.follow(late_reference_totals(snapshot))
    assert registry.get_sample_value("sidejudge_belated_traces_total", {"outcome": "revised"}) == 5
    assert registry.get_sample_value("sidejudge_belated_traces_total", {"outcome": "unchanged"}) == 1
    assert registry.get_sample_value("sidejudge_belated_attempts_failed_total", {"reason": "gone"}) == 3
    assert registry.get_sample_value("sidejudge_belated_attempts_failed_total", {"reason": "incomplete"}) == 0


def test_where_references_are_in_the_traces_alone_there_is_nothing_to_count():
    registry, exporter = late(())
    assert registry.get_sample_value("sidejudge_belated_traces_total", {"outcome": "revised"}) is None
    exporter.watch(lambda: Snapshot(late_references=LateReferenceSnapshot(state="ok", given_up=7)))
    assert registry.get_sample_value("sidejudge_belated_given_up") == 7
