"""Run figures: what a request took, as the telemetry reports it, and nothing that it does not report."""

from __future__ import annotations

import pytest

from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.case.run_figures import NO_MODEL, RunFigures, run_figures
from sidejudge.scoring.trace.span import Span, SpanKind, Usage
from sidejudge.scoring.trace.trace import Trace

S = 10**9


def span(number: int, parent: int | None, **more: object) -> Span:
    stated = {
        "trace_id": "t", "span_id": str(number), "parent_id": None if parent is None else str(parent), "name": "x",
        "kind": SpanKind.LLM if parent else SpanKind.AGENT, "dialect": "plain", "start_ns": number, "end_ns": 9 * S,
        **more,
    }  # fmt: skip
    return Span(**stated)  # type: ignore[arg-type]  # by name


def figures_of(*spans: Span) -> RunFigures | None:
    return run_figures(extract(Trace.of("t", list(spans), "root_ended")))


def test_a_run_takes_what_its_root_and_its_calls_report() -> None:
    found = figures_of(
        span(1, None, release="1.4"),
        span(2, 1, model="small", usage=Usage(input=100, output=10), cost_usd=0.5),
        span(3, 1, usage=Usage(input=7, output=3)),
    )
    assert found is not None
    assert found.values == {"latency": pytest.approx(9.0), "tokens": 120.0, "cost": 0.5}
    assert found.models == {"small": (100, 10, 0.5), NO_MODEL: (7, 3, 0.0)}
    assert found.version == "1.4"


def test_usage_stands_under_the_model_that_was_asked_for_where_none_says_that_it_answered() -> None:
    asked = span(2, 1, requested_model="small", usage=Usage(input=100, output=10), cost_usd=0.5)
    found = figures_of(span(1, None), asked, span(3, 1, model="small-2", requested_model="small", cost_usd=0.25))
    assert found is not None
    assert found.models == {"small": (100, 10, 0.5), "small-2": (0, 0, 0.25)}


def test_models_whose_long_names_differ_at_the_end_are_several() -> None:
    profile = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/"
    calls = [span(number, 1, model=f"{profile}{number}", cost_usd=float(number)) for number in (2, 3)]
    found = figures_of(span(1, None), *calls)
    assert found is not None
    assert sorted(usd for _, _, usd in found.models.values()) == [2.0, 3.0]


def test_what_is_not_reported_is_absent_and_not_zero() -> None:
    found = figures_of(span(1, None), span(2, 1))
    assert found is not None
    assert set(found.values) == {"latency"}
    assert found.models == {}


def test_a_cost_of_zero_that_is_stated_is_a_cost() -> None:
    found = figures_of(span(1, None), span(2, 1, model="free", cost_usd=0.0))
    assert found is not None
    assert found.values["cost"] == 0.0


def test_a_trace_without_its_root_has_no_figures() -> None:
    assert figures_of(span(2, 1, usage=Usage(input=1, output=1))) is None
