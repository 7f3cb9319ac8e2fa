"""zstd: what another library packed comes out, in any pieces, and never more than it may be."""

from __future__ import annotations

import tracemalloc

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.otlp.server.body import Damaged, TooLarge, ZstdInflater
from sidejudge.integrations.otlp.server.receiver import OtlpReceiver
from tests.integrations.otlp.server.test_receiver import Taken, ask


def inflated(packed: bytes, step: int = 100, limit: int = 1 << 20) -> bytes:
    engine = ZstdInflater(limit)
    for at in range(0, len(packed), step):
        for _ in engine.feed(packed[at : at + step]):
            pass
    return engine.finish()


@given(st.lists(st.binary(max_size=3000), max_size=4), st.integers(1, 5000))
def test_frames_one_after_the_other_are_one_body_whatever_the_pieces(parts, step):
    packed = b"".join(zstandard.ZstdCompressor().compress(part) for part in parts)
    assert inflated(packed, step) == b"".join(parts)


def test_a_body_of_very_many_frames_is_refused_before_it_costs_much():
    empty = zstandard.ZstdCompressor().compress(b"")
    assert inflated(empty * 1000) == b""
    with pytest.raises(Damaged, match="more than 1000 zstd frames"):
        inflated(empty * 1001)


def test_a_body_of_nothing_is_empty():
    assert inflated(b"") == b""


@pytest.mark.parametrize("size", [1, 10, 100])
def test_what_is_cut_short_is_damaged(size):
    packed = zstandard.ZstdCompressor().compress(bytes(range(256)) * 100)
    with pytest.raises(Damaged, match="before its zstd data does"):
        inflated(packed[:-size])


def test_what_is_no_zstd_is_damaged():
    for packed in (b"garbage", zstandard.ZstdCompressor().compress(b"x") + b"garbage"):
        with pytest.raises(Damaged, match="not zstd"):
            inflated(packed)


def test_a_window_larger_than_a_content_encoding_may_ask_for_is_refused():
    wide = zstandard.ZstdCompressor(compression_params=zstandard.ZstdCompressionParameters(window_log=27)).compressobj()
    packed = wide.compress(bytes(1000)) + wide.flush()
    with pytest.raises(Damaged):
        inflated(packed)


def test_the_bound_holds_while_it_inflates():
    packed = zstandard.ZstdCompressor().compress(bytes(1 << 30))
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            inflated(packed, step=1 << 20, limit=1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


async def test_the_receiver_takes_it():
    taken = Taken()
    packed = zstandard.ZstdCompressor().compress(b"spans")
    assert (await ask(OtlpReceiver(taken), packed, step=3, content_encoding="zstd"))[0] == 200
    assert taken.bodies == [b"spans"]
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 26))
    assert (await ask(OtlpReceiver(taken, max_bytes=1 << 20), bomb, content_encoding="zstd"))[0] == 413


async def test_an_encoding_that_is_not_known_is_refused_naming_those_that_are():
    status, _, body = await ask(OtlpReceiver(Taken()), content_encoding="br", kind="application/json")
    assert (status, b"gzip, deflate, zstd or identity" in body) == (415, True)
