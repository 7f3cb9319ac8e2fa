"""The layout of requests: what encoders write is read in place, and what is written otherwise comes to the same."""

from __future__ import annotations

import random

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.otlp.wire.layout import Place, last, pack, row, scopes, usual
from sidejudge.integrations.otlp.wire.receipt import Undecodable
from sidejudge.integrations.otlp.wire.request import ChunkOrigin, Split, identify, split

HALF = 1 << 55
TRACES = [bytes([n]) * 9 + bytes([low]) + bytes([n]) * 6 for n in range(1, 4) for low in (0x10, 0xF0)]

Field = tuple[int, bytes]


def encoded(fields: list[Field], padding: int = 0) -> bytes:
    return b"".join(_varint(number << 3 | 2) + _varint(len(content), padding) + content for number, content in fields)


def _varint(number: int, padding: int = 0) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    for _ in range(padding):
        written[-1] |= 0x80
        written.append(0)
    return bytes(written)


def read(body: bytes) -> list[tuple[Place, list[bytes]]]:
    found = []
    for number, s, resource, url, scope, start, end in scopes(body):
        items, at = row(body, start, end)
        place = (number, s, resource, url, scope, last(body, at, end))
        found.append((place, [body[begin:stop] for begin, stop in items]))
    return found


def span_of(trace_id: bytes, number: int, size: int) -> bytes:
    return encoded([(1, trace_id), (2, number.to_bytes(8, "big")), (5, b"n" * size)])


spans = st.builds(
    span_of, st.sampled_from(TRACES), st.integers(1, 2**64 - 1), st.sampled_from([0, 90, 97, 98, 300, 17_000])
)
named = st.sampled_from([b"", b"one", b"two"])


@st.composite
def requests(draw: st.DrawFn, *, disorder: bool) -> bytes:
    """A request; with ``disorder`` its messages are written as nobody does: fields shuffled, lengths padded, more."""
    rng = random.Random(draw(st.integers(0, 2**32)))

    def message(first: bytes, held: list[bytes], url: bytes) -> bytes:
        fields = [(1, first)] * bool(first) + [(2, each) for each in held] + [(3, url)] * bool(url)
        if not disorder:
            return encoded(fields)
        fields += [(1000, b"unknown")] * rng.randrange(2)
        rng.shuffle(fields)
        return encoded(fields, padding=rng.randrange(3))

    resources = []
    for _ in range(draw(st.integers(0, 3))):
        held = [message(draw(named), draw(st.lists(spans, max_size=5)), draw(named)) for _ in range(rng.randrange(3))]
        service = encoded([(1, encoded([(1, b"service.name"), (2, encoded([(1, b"shop")]))]))])
        resources.append(message(service, held, draw(named)))
    return encoded([(1, each) for each in resources])


def sift(body: bytes) -> Split:
    return split(body, lambda resource: ChunkOrigin(*identify(resource), HALF))


@given(requests(disorder=False))
def test_what_encoders_write_is_read_in_place_and_packed_to_the_same_bytes(body):
    found = read(body)
    assert read(usual(body)) == found
    holding = [(place, items) for place, items in found if items]
    packed = pack(holding)
    assert usual(packed) == packed
    assert [(place[2:], items) for place, items in read(packed)] == [(place[2:], items) for place, items in holding]


@given(requests(disorder=True))
def test_what_is_written_otherwise_comes_to_the_same(body):
    found, wanted = sift(body), sift(usual(body))
    assert (found.dropped, found.spans, found.rejected) == (wanted.dropped, wanted.spans, wanted.rejected)
    assert found.chunks == wanted.chunks


@given(requests(disorder=False), st.data())
def test_what_is_cut_short_is_refused_or_is_another_request(body, data):
    cut = body[: data.draw(st.integers(0, len(body)))]
    try:
        usual(cut)
    except DecodeError:
        with pytest.raises(Undecodable):
            sift(cut)
    else:
        assert sift(cut) == sift(usual(cut))


def test_lengths_of_any_number_of_bytes_are_read():
    sizes = [0, 60, 100, 20_000, 3_000_000]
    many = [span_of(TRACES[1], n + 1, size) for n, size in enumerate(sizes)]
    found = sift(encoded([(1, encoded([(2, encoded([(2, each) for each in many]))]))]))
    assert [len(header.span_id) for chunk in found.chunks for header in chunk.headers] == [8] * len(sizes)


def test_spans_whose_ids_stand_elsewhere_are_decided_on_among_others():
    kept, dropped = TRACES[1], TRACES[0]
    turned = encoded([(2, b"\1" * 8), (1, kept)]), encoded([(5, b"name"), (1, dropped), (2, b"\2" * 8)])
    many = [span_of(dropped, 3, 200), turned[0], span_of(kept, 4, 200), turned[1], span_of(kept, 5, 0)]
    found = sift(encoded([(1, encoded([(2, encoded([(2, each) for each in many]))]))]))
    assert (found.spans, found.kept, list(found.dropped.values())) == (5, 3, [{dropped}])


def test_explicit_randomness_of_one_span_is_found_among_others():
    low, high = TRACES[0], TRACES[1]
    stated = encoded([(1, low), (2, b"\1" * 8), (3, b"ot=rv:ffffffffffffff"), (5, b"n" * 200)])
    many = [span_of(low, 2, 200), stated, span_of(high, 3, 200)]
    found = sift(encoded([(1, encoded([(2, encoded([(2, each) for each in many]))]))]))
    assert found.explicit
    assert [(chunk.trace_id, len(chunk.headers)) for chunk in found.chunks] == [(low, 1), (high, 1)]


def test_more_parts_than_a_request_has_are_refused():
    many = encoded([(1, b"")] * 50_001)
    with pytest.raises(Undecodable, match="50000"):
        sift(many)
