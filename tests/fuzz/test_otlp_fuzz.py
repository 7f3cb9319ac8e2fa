"""Whatever bytes arrive, there is an answer that the protocol knows, and never an exception."""

from __future__ import annotations

import asyncio
import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidejudge.integrations.otlp.server.receiver import OtlpReceiver
from sidejudge.integrations.otlp.wire.request import read_headers
from sidejudge.monitor.config.sampling import SamplingSection
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.ingest.intake import Intake
from sidejudge.monitor.ingest.outcomes import TraceOutcomes
from sidejudge.monitor.ingest.sampler import Sampler
from tests.otlp_requests import HIGH, LOW, S, request, span, trace

LIMIT = 1 << 16
REAL = request([
    S(trace_id=trace(n, HIGH if n % 2 else LOW), span_id=span(n), parent_id=b"" if n < 3 else span(1),
      trace_state="ot=rv:0123456789abcd;th:8" if n % 3 == 0 else "", service="ab"[n % 2],
      attributes={"input": "x" * n, "langfuse.internal.is_app_root": n == 5})
    for n in range(1, 12)
])  # fmt: skip


class Kept:
    """A store in memory that reads back what it is given."""

    async def append(self, chunks, received_ns, *, untaken=False):
        for chunk in chunks:
            assert (
                read_headers(chunk.payload, chunk.trace_id, states=False) == chunk.headers
            )  # nobody upstream is trusted
            assert chunk.headers

    def recover(self):
        return []


def answer(body: bytes, rate: float = 0.5, **headers: str) -> int:
    outcomes = TraceOutcomes()
    intake = Intake(sampler=Sampler(SamplingSection(rate=rate)), store=Kept(), assembler=Assembler(), outcomes=outcomes)
    receiver = OtlpReceiver(intake.consume, LIMIT)
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/traces",
             "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]}  # fmt: skip
    asyncio.run(receiver(scope, receive, send))
    counts = intake.counts
    assert counts.rejected <= counts.spans
    balance = outcomes.balance()
    assert balance.seen == balance.open + sum(balance.ended.values())
    return sent[0]["status"]


PLAIN = {"content_type": "application/x-protobuf"}
MUTATIONS = st.lists(
    st.tuples(
        st.sampled_from(["set", "insert", "delete", "copy"]),
        st.integers(0, len(REAL)),
        st.binary(min_size=1, max_size=9),
    ),
    min_size=1,
    max_size=6,
)


def mutated(changes) -> bytes:
    body = bytearray(REAL)
    for kind, at, data in changes:
        if kind == "set":
            body[at : at + len(data)] = data
        elif kind == "insert":
            body[at:at] = data
        elif kind == "delete":
            del body[at : at + len(data)]
        else:
            body[at:at] = body[at // 2 : at // 2 + 8 * len(data)]
    return bytes(body)


@settings(deadline=None)
@given(body=st.binary(max_size=300), rate=st.sampled_from([0.01, 1.0]))
def test_arbitrary_bytes(body, rate):
    assert answer(body, rate, **PLAIN) in (200, 400)


@settings(max_examples=200, deadline=None)
@given(changes=MUTATIONS, rate=st.sampled_from([0.5, 1.0]))
def test_a_real_request_with_changes(changes, rate):
    assert answer(mutated(changes), rate, **PLAIN) in (200, 400)


@settings(deadline=None)
@given(changes=MUTATIONS, at=st.integers(0, 400), data=st.binary(max_size=8))
def test_a_compressed_request_with_changes(changes, at, data):
    packed = bytearray(gzip.compress(mutated(changes), mtime=0))
    packed[at : at + len(data)] = data
    assert answer(bytes(packed), content_encoding="gzip", **PLAIN) in (200, 400, 413)


@settings(deadline=None)
@given(
    size=st.integers(LIMIT - 5, LIMIT + 5),
    data=st.binary(min_size=1, max_size=3),
    encoding=st.sampled_from(["", "gzip"]),
)
def test_bodies_around_the_limit(size, data, encoding):
    body = (data * size)[:size]
    body = gzip.compress(body, 1) if encoding else body
    status = answer(body, content_encoding=encoding, **PLAIN)
    assert status == 413 if size > LIMIT else status in (200, 400)


@settings(deadline=None)
@given(
    kind=st.text(st.characters(max_codepoint=126, min_codepoint=32), max_size=30),
    encoding=st.one_of(st.sampled_from(["gzip", "deflate", "identity", "br", "zstd"]), st.text("gzip,; x", max_size=9)),
)
def test_arbitrary_headers(kind, encoding):
    assert answer(REAL, content_type=kind, content_encoding=encoding) in (200, 400, 415)
    assert answer(REAL, content_encoding=encoding, **PLAIN) in (200, 400, 415)


@pytest.mark.parametrize("cut", range(0, len(REAL), 7))
def test_a_request_that_is_cut_short(cut):
    assert answer(REAL[:cut], 1.0, **PLAIN) in (200, 400)
