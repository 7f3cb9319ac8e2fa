"""Bodies that are small on the wire and huge in memory are refused before they are."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError

from sidejudge.integrations.otlp.wire.bounds import LARGE, MOST, OverBudget, WorkBudget, check
from sidejudge.integrations.otlp.wire.receipt import Undecodable
from sidejudge.integrations.otlp.wire.request import ChunkOrigin, Split, split
from tests.otlp_requests import S, request, span, trace

MANY = 600_000
IDS = b"\n\x10" + trace(1) + b"\x12\x08" + span(1)


def field(number: int, payload: bytes) -> bytes:
    size, length = len(payload), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + payload


def enveloped(*spans: bytes) -> bytes:
    return field(1, field(2, b"".join(field(2, s) for s in spans)))


def take(body: bytes) -> Split:
    return split(body, lambda _: ChunkOrigin(None, None, 0))


@pytest.mark.parametrize(
    "body",
    [b"\n\x00" * MANY, field(1, b"\x12\x00" * MANY), enveloped() + field(1, field(2, b"\x12\x00" * MANY))],
    ids=["resources", "scopes", "spans"],
)
def test_an_envelope_of_a_million_nothings_is_refused(body):
    with pytest.raises(Undecodable, match="more than"):
        take(body)


@pytest.mark.parametrize("body", [b"\n\x00" * 50_001, field(1, b"\x12\x00" * 50_000)], ids=["resources", "scopes"])
def test_a_small_body_of_nothings_is_refused_too(body):
    with pytest.raises(Undecodable, match="resources and scopes"):
        take(body)


def test_a_span_of_a_million_attributes_costs_itself_and_nobody_else():
    found = take(enveloped(IDS[:-1] + b"\x02", IDS + b"\x4a\x00" * MANY))
    assert (found.damaged, found.kept) == (1, 1)


def test_spans_that_are_too_much_together_are_rejected_together():
    spans = [IDS[:-1] + bytes([n]) + b"\x4a\x00" * (MOST // 2) for n in (1, 2, 3)]
    found = take(enveloped(*spans))
    assert (found.damaged, found.kept, found.chunks) == (3, 0, [])


def test_a_large_text_and_many_spans_are_fine():
    large = take(request([S(trace_id=trace(1), span_id=span(1), attributes={"input": "x" * (10 << 20)})]))
    assert large.kept == 1
    many = take(request([S(trace_id=trace(1), span_id=span(n), attributes={"a": "x" * 100}) for n in range(1, 10_001)]))
    assert (many.kept, len(many.chunks)) == (10_000, 1)


@pytest.mark.parametrize("tail", [b"\x0b", b"\n\x05abc", b"\n", b"\n" + b"\xff" * 11, b"\x0d\x01", b"\x08"])
def test_damage_in_a_large_body_is_found_on_the_way(tail):
    with pytest.raises(DecodeError):
        check(field(7, bytes(LARGE)) + tail, "envelope")


def test_numbers_of_all_kinds_are_stepped_over():
    check(field(7, bytes(LARGE)) + b"\x08\x96\x01" + b"\x11" + bytes(8) + b"\x1d" + bytes(4), "envelope")


def test_nesting_without_end_is_refused():
    value = bytes(LARGE)
    for _ in range(60):
        value = field(5, field(1, value))
    with pytest.raises(DecodeError, match="nested"):
        check(enveloped(field(9, field(2, value))), "complete")


def parsed(steps: int, *payloads: bytes) -> WorkBudget:
    budget = WorkBudget(steps)
    for payload in payloads:
        budget.spend_parsing(payload)
    return budget


DENSE, SPARSE = b"\n\x00" * 3_200, b"a" * 6_400


@pytest.mark.parametrize(
    ("payloads", "steps"), [([DENSE], 100), ([SPARSE], 5), ([b"a" * 64], 0), ([SPARSE, DENSE, SPARSE], 110)]
)
def test_parsing_takes_as_much_of_a_budget_as_there_may_be_messages(payloads, steps):
    budget = parsed(steps, *payloads)
    with pytest.raises(OverBudget):
        budget.spend(1)
    with pytest.raises(OverBudget):
        parsed(steps - 1, *payloads)
