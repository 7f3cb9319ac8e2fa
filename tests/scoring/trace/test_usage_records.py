"""A span that repeats a call's tokens and has nothing of its own is a record of it: tokens and cost count once."""

from __future__ import annotations

import pytest

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
) -> Span:
    start = int(start_ms * MS)
    return Span(
        trace_id="1" * 32, span_id=span_id, parent_id="root", name=span_id.partition("#")[0], kind=kind,
        dialect="genai", start_ns=start, end_ns=start + int(took_ms * MS), usage=Usage(input=tokens, output=6),
        response_id=response_id, cost_usd=tokens / 10, output=output,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spans", "tokens"),
    [
        ([_span("call", 0, 500), _span("record", 510, 0.02)], (30, 6)),
        ([_span("call", 0, 500, response_id="r"), _span("record", 510, 0, response_id="r")], (30, 6)),
        ([_span("call", 0, 500), _span("record", 510, 0.02), _span("again", 600, 400)], (60, 12)),
        ([_span("call", 0, 500), _span("other", 510, 0.02, tokens=31)], (61, 12)),
        ([_span("call", 0, 500), _span("during", 100, 0.02)], (60, 12)),
        ([_span("call", 0, 500), _span("call 2", 510, 300)], (60, 12)),
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
    assert counted.tokens(trace, trace.spans) == tokens
    assert counted.cost_usd(trace, trace.spans) == tokens[0] / 10
