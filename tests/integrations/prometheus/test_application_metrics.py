"""Counters of the application: estimated for all traffic, by version and model, with capped labels."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from sidejudge.integrations.prometheus.exporter import Exporter
from sidejudge.integrations.prometheus.labels import KnownLabels


def counted(cap: int = 50) -> tuple[CollectorRegistry, Exporter]:
    registry = CollectorRegistry()
    return registry, Exporter(registry, KnownLabels(rubrics=(), ended_reasons=()), label_cap=cap)


def trace(exporter: Exporter, **changed: object) -> None:
    stated = {
        "weight": 1.0, "latency_s": 1.0, "models": {"small": (10, 5, 0.25)}, "drawn": True, "trace_id": "ab" * 16,
        "version": "1.2", **changed,
    }  # fmt: skip
    exporter.application.trace("shop", "live", stated.pop("version"), **stated)  # type: ignore[arg-type]  # by name


def test_a_trace_counts_for_as_many_as_it_stands_for() -> None:
    registry, exporter = counted()
    trace(exporter, weight=4.0)
    trace(exporter, weight=1.0, models={"small": (1, 1, 0.0), "large": (100, 7, 2.0)}, version=None)
    where = {"service": "shop", "environment": "live"}
    traces = "sidejudge_application_traces_total"
    assert registry.get_sample_value(traces, {**where, "version": "1.2"}) == 4.0
    assert registry.get_sample_value(traces, {**where, "version": "unknown"}) == 1.0
    tokens, cost = "sidejudge_application_tokens_total", "sidejudge_application_cost_usd_total"
    assert registry.get_sample_value(tokens, {**where, "model": "small", "direction": "input"}) == 41.0
    assert registry.get_sample_value(tokens, {**where, "model": "large", "direction": "output"}) == 7.0
    assert registry.get_sample_value(cost, {**where, "model": "small"}) == 1.0
    assert registry.get_sample_value(cost, {**where, "model": "large"}) == 2.0


def test_latency_is_counted_of_traces_that_were_drawn_at_random_and_report_it() -> None:
    registry, exporter = counted()
    trace(exporter, latency_s=4.0)
    trace(exporter, latency_s=90.0, drawn=False)
    trace(exporter, latency_s=None)
    where = {"service": "shop", "environment": "live"}
    assert registry.get_sample_value("sidejudge_application_duration_seconds_count", where) == 1
    assert registry.get_sample_value("sidejudge_application_duration_seconds_sum", where) == 4.0


def test_what_no_span_states_is_absent() -> None:
    registry, exporter = counted()
    trace(exporter, models={"small": (3, 4, 0.0)})
    labels = {"service": "shop", "environment": "live", "model": "small"}
    assert registry.get_sample_value("sidejudge_application_cost_usd_total", labels) is None


def test_models_and_versions_beyond_the_cap_share_a_label() -> None:
    registry, exporter = counted(cap=2)
    for number in range(5):
        trace(exporter, models={f"m{number}": (1, 0, 0.0)}, version=str(number))
    where = {"service": "shop", "environment": "live"}
    tokens = {**where, "model": "__other__", "direction": "input"}
    assert registry.get_sample_value("sidejudge_application_tokens_total", tokens) == 3.0
    assert registry.get_sample_value("sidejudge_application_traces_total", {**where, "version": "__other__"}) == 3.0
