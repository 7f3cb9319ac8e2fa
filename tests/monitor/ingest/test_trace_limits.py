"""What is kept of one trace is bounded in spans and in memory, whatever is on its way at the same time."""

from __future__ import annotations

from sidejudge.integrations.otlp.wire.chunk import decoded_size
from sidejudge.integrations.otlp.wire.kept import decode_kept
from sidejudge.integrations.otlp.wire.request import ChunkOrigin, split
from sidejudge.monitor.ingest.trace_limits import TraceLimits, TraceSize
from tests.otlp_requests import S, request, span, trace


def chunk_of(count: int, number: int = 1, **attributes: str):
    spans = [S(trace_id=trace(number), span_id=span(n + 1), attributes=attributes) for n in range(count)]
    (chunk,) = split(request(spans), lambda _: ChunkOrigin("shop", None, 0)).chunks
    return chunk


def spans_of(chunk) -> list[str]:
    return [raw.span_id for raw in decode_kept([chunk.payload]).spans]


def test_what_fits_is_left_as_it_is():
    chunk = chunk_of(5)
    fitted = TraceLimits(5, 1 << 20).fit(chunk, TraceSize())
    assert (fitted.chunk, fitted.size.spans, fitted.left_out, fitted.cut) == (chunk, 5, 0, False)


def test_a_chunk_is_cut_at_the_span_that_is_too_much_and_still_reads_as_a_request():
    chunk = chunk_of(50)
    fitted = TraceLimits(30, 1 << 30).fit(chunk, TraceSize(spans=10))
    assert (fitted.size.spans, fitted.left_out, fitted.cut) == (20, 30, True)
    assert spans_of(fitted.chunk) == spans_of(chunk)[:20]
    assert fitted.chunk.headers == chunk.headers[:20]
    assert decode_kept([fitted.chunk.payload]).spans[0].resource == decode_kept([chunk.payload]).spans[0].resource


def test_memory_cuts_as_the_number_of_spans_does():
    chunk = chunk_of(64, text="word " * 2_000)
    whole = decoded_size(chunk.payload)
    fitted = TraceLimits(1_000, whole // 3).fit(chunk, TraceSize())
    assert fitted.cut
    assert fitted.size.decoded <= whole // 3
    assert (fitted.size.spans, fitted.left_out) == (16, 48)
    assert TraceLimits(1_000, 1_000).fit(chunk, TraceSize()).chunk is None


def test_what_is_on_its_way_to_a_commit_counts_until_it_is_released():
    limits, chunk = TraceLimits(50, 1 << 30), chunk_of(20)
    first, second, third = (limits.fit(chunk, TraceSize()) for _ in range(3))
    assert [fitted.size.spans for fitted in (first, second, third)] == [20, 20, 10]
    assert limits.fit(chunk_of(20, number=2), TraceSize()).size.spans == 20, "another trace has its own"
    for fitted in (first, second, third):
        limits.release(fitted)
    assert limits.fit(chunk, TraceSize()).size.spans == 20


def test_what_is_held_before_its_trace_opens_counts_towards_it():
    limits, chunk = TraceLimits(1_000, 1 << 20), chunk_of(20)
    held = limits.fit(chunk, TraceSize())
    limits.release(held, held=True)
    size = limits.opened(trace(1))
    assert size == held.size
    assert limits.opened(trace(1)) == TraceSize(), "from then on the assembler counts it"
