"""What is told of verdicts whose reference changed late: counters that begin at 0 and never go back."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from integrations.prometheus.exporter import Exporter
from integrations.prometheus.known_labels import KnownLabels
from integrations.prometheus.snapshot import Snapshot
from scoring.status.late_reference_snapshot import LateReferenceSnapshot


def made(reasons: tuple[str, ...]) -> tuple[CollectorRegistry, Exporter]:
    registry = CollectorRegistry()
    return registry, Exporter(registry, KnownLabels(rubrics=(), ended_reasons=(), revision_failures=reasons))


def test_what_can_be_counted_begins_at_0_and_follows_the_standing():
    registry, exporter = made(("gone", "incomplete"))
    assert registry.get_sample_value("sidejudge_belated_traces_total", {"outcome": "revised"}) == 0
    assert registry.get_sample_value("sidejudge_belated_attempts_failed_total", {"reason": "gone"}) == 0
    for revised in (2, 2, 5):
        exporter.late_references.follow(
            LateReferenceSnapshot(state="ok", revised=revised, unchanged=1, failures=(("gone", 3),))
        )
    assert registry.get_sample_value("sidejudge_belated_traces_total", {"outcome": "revised"}) == 5
    assert registry.get_sample_value("sidejudge_belated_traces_total", {"outcome": "unchanged"}) == 1
    assert registry.get_sample_value("sidejudge_belated_attempts_failed_total", {"reason": "gone"}) == 3
    assert registry.get_sample_value("sidejudge_belated_attempts_failed_total", {"reason": "incomplete"}) == 0


def test_where_references_are_in_the_traces_alone_there_is_nothing_to_count():
    registry, exporter = made(())
    assert registry.get_sample_value("sidejudge_belated_traces_total", {"outcome": "revised"}) is None
    exporter.watch(lambda: Snapshot(late_references=LateReferenceSnapshot(state="ok", given_up=7)))
    assert registry.get_sample_value("sidejudge_belated_given_up") == 7
