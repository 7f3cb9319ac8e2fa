"""A span that repeats a call's tokens and has nothing of its own is a record of it: tokens and cost count once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from sidejudge.scoring.trace import usage as counted
from sidejudge.scoring.trace.span import Span, SpanKind, Usage
from sidejudge.scoring.trace.trace import Trace

MS = 10**6


def _span(
    span_id: str,
    start_ms: float,
    took_ms: float,
    tokens: int = 30,
    response_id: str | None = None,
    *,
    output: str | None = None,
    kind: SpanKind = SpanKind.LLM,
    below: str | None = "root",
    answer: int | None = 6,
) -> Span:
    start = int(start_ms * MS)
    return Span(
        trace_id="1" * 32, span_id=span_id, parent_id=below, name=span_id.partition("#")[0], kind=kind,
        dialect="genai", start_ns=start, end_ns=start + int(took_ms * MS), usage=Usage(input=tokens, output=answer),
        response_id=response_id, cost_usd=tokens / 10, output=output,
    )  # fmt: skip


def test_a_sum_that_leaves_a_call_out_is_no_total() -> None:
    stream = replace(_span("stream", 0, 500, output="Hi."), usage=None)
    call, top = _span("call", 510, 480, output="Bye."), _span("root", 0, 2_000, 90, below=None, kind=SpanKind.AGENT)

    def tokens(*spans: Span) -> tuple[int | None, int | None]:
        trace = Trace.of("1" * 32, spans, "batch")
        return counted.tokens(trace, [span for span in trace.spans if span.usage], counted.model_calls(trace))

    assert tokens(stream, call) == (None, None)
    assert tokens(stream, replace(call, output=None)) == (30, 6), "it may be the record of the call"
    assert tokens(stream, replace(call, start_ns=0)) == (30, 6), "two instrumentations of one call"
    assert tokens(stream, replace(call, parent_id="stream")) == (30, 6), "the call that it wraps"
    assert tokens(stream, top) == (90, 6), "a sum of all below it"
    assert tokens(replace(stream, output=None), call) == (30, 6), "it gave no answer"
    assert tokens(replace(stream, error="down"), call) == (30, 6), "a call that failed takes none"


@pytest.mark.parametrize(
    ("more", "total"),
    [({}, None), ({"error": "down"}, 6), ({"kind": SpanKind.EMBEDDING}, 6), ({"kind": SpanKind.AGENT}, None)],
)
def test_a_side_that_a_call_does_not_report_is_no_part_of_a_total(more: Mapping[str, Any], total: int | None) -> None:
    spans = [_span("call", 0, 500), replace(_span("half", 510, 480, 20, answer=None), **more)]
    trace = Trace.of("1" * 32, spans, "batch")
    assert counted.tokens(trace, trace.spans, counted.model_calls(trace)) == (50, total)


@pytest.mark.parametrize(
    ("spans", "tokens"),
    [
        ([_span("call", 0, 500), _span("record", 510, 0.02)], (30, 6)),
        ([_span("call", 0, 500, response_id="r"), _span("record", 510, 0, response_id="r")], (30, 6)),
        ([_span("call", 0, 500), _span("record", 510, 0.02), _span("again", 600, 400)], (60, 12)),
        ([_span("call", 0, 500), _span("other", 510, 0.02, tokens=31)], (61, 12)),
        ([_span("call", 0, 500), _span("during", 100, 0.02)], (60, 12)),
        ([_span("call", 0, 500), _span("call 2", 510, 300)], (60, 12)),
        ([_span("call#1", 0, 500), _span("call#2", 510, 0)], (60, 12)),
        ([_span("stub", 0, 0.02), _span("stub 2", 1, 0.02)], (60, 12)),
        ([_span("call", 0, 500), _span("record", 510, 0.02), _span("a stub", 520, 0.02)], (60, 12)),
        ([_span("call", 0, 500, output="Hi."), _span("used", 510, 5)], (30, 6)),
        ([_span("call", 0, 500), _span("used", 510, 5, kind=SpanKind.OTHER)], (30, 6)),
        ([_span("call", 0, 500), _span("used", 510, 5, kind=SpanKind.OTHER), _span("more", 520, 9)], (60, 12)),
        ([_span("call", 0, 500, output="Hi."), _span("http", 10, 480)], (30, 6)),
        ([_span("call", 0, 500, output="Hi."), _span("same", 10, 480, output="Hi.")], (30, 6)),
        ([_span("call", 0, 500, output="Hi."), _span("other", 10, 480, output="No.")], (60, 12)),
        ([_span("vote#1", 0, 500, output="Hi."), _span("vote#2", 10, 480, output="Hi.")], (60, 12)),
        ([_span("call", 0, 500, output="Hi."), _span("next", 510, 480, output="Hi.")], (60, 12)),
        ([_span("call", 0, 500, output="Hi."), _span("part", 510, 5, kind=SpanKind.AGENT)], (60, 12)),
    ],
)  # fmt: skip
def test_a_call_and_its_record_are_one(spans: list[Span], tokens: tuple[int, int]) -> None:
    trace = Trace.of("1" * 32, spans, "batch")
    assert counted.tokens(trace, trace.spans, counted.model_calls(trace)) == tokens
    assert counted.cost_usd(trace, trace.spans) == tokens[0] / 10


STEP, AGENT, TOOL = SpanKind.CHAIN, SpanKind.AGENT, SpanKind.TOOL


def _bare(span_id: str, below: str | None, kind: SpanKind = STEP) -> Span:
    return replace(_span(span_id, 0, 999, below=below, kind=kind), usage=None, cost_usd=None)


ELSEWHERE = [_bare("a", None), _bare("b", None)]


@pytest.mark.parametrize(
    ("spans", "tokens"),
    [
        # one call, repeated by a span that is not above it
        ([_span("call", 5, 400, output="Hi.", below="a"), _span("step", 0, 500, kind=STEP, below="b")], (30, 6)),
        ([_span("call", 5, 400, output="Hi.", below="a"), _span("http", 10, 380, below="b")], (30, 6)),
        ([_span("call", 5, 400, output="Hi.", below="a"), _span("log", 410, 5, kind=STEP, below="b")], (30, 6)),
        ([_span("call", 5, 400, below="a"), _span("part", 0, 500, kind=AGENT, output="Hi.", below="b")], (30, 6)),
        ([_span("call", 5, 400, below="a"), _span("part", 0, 500, kind=TOOL, below=None)], (30, 6)),
        ([_span("c#1", 5, 400, output="Hi.", below="a"), _span("c#2", 10, 380, 30, "r", output="Hi.", below="a")],
         (30, 6)),
        # several, added up elsewhere
        ([_span("c 1", 5, 100, below="a"), _span("c 2", 120, 100, tokens=31, below="a"),
          _span("sum", 300, 9, tokens=61, answer=12, kind=STEP, below="b")], (61, 12)),
        ([_span("c 1", 5, 100, below="a"), _span("c 2", 120, 100, tokens=31, below="a"),
          _span("all", 0, 400, tokens=61, answer=12, kind=STEP, output="Hi.",
          below="b")], (61, 12)),
        # calls that only look alike
        ([_span("c#1", 5, 400, output="Hi.", below="a"), _span("c#2", 10, 380, output="Hi.", below="b")], (60, 12)),
        ([_span("c#1", 5, 400, output="Hi.", below="a"), _span("c#2", 10, 380, 30, "r", output="Oh.", below="a")],
         (60, 12)),
        ([_span("c#1", 5, 400, 30, "q", output="Hi.", below="a"),
          _span("c#2", 10, 380, 30, "r", output="Hi.", below="a")], (60, 12)),
        ([_span("c 1", 5, 400, below="a"), _span("c 2", 10, 380, below="b")], (60, 12)),
        ([_span("c 1", 5, 400, output="Hi.", below="a"), _span("c 2", 500, 9, below="b")], (60, 12)),
        ([_span("part", 0, 500, kind=AGENT, below=None), _bare("other", None, AGENT),
          _span("call", 5, 400, below="other")], (60, 12)),
        ([_span("call", 5, 400, below="a"), _span("step", 500, 9, tokens=31, kind=STEP, below="b")], (61, 12)),
    ],
)  # fmt: skip
def test_what_is_reported_of_a_call_elsewhere_counts_once(spans: list[Span], tokens: tuple[int, int]) -> None:
    for order in (spans, spans[::-1]):
        trace = Trace.of("1" * 32, [*ELSEWHERE, *order], "batch")
        reporting = [span for span in trace.spans if span.usage is not None]
        assert counted.tokens(trace, reporting, counted.model_calls(trace)) == tokens
        assert counted.cost_usd(trace, reporting) == pytest.approx(tokens[0] / 10)


def test_a_cost_that_stands_in_a_span_of_its_own_counts_once() -> None:
    call = _span("call", 5, 400, output="Hi.", below="a")
    cost = replace(_span("cost", 410, 5, kind=STEP, below="b"), usage=None)
    trace = Trace.of("1" * 32, [*ELSEWHERE, call, cost], "batch")
    assert counted.cost_usd(trace, [call, cost]) == 3.0
