"""Bounded inflation: the right bytes, or a refusal before memory is spent."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.otlp.server.body import Damaged, Inflater, TooLarge


def inflate(encoding: str, data: bytes, limit: int = 1 << 16, step: int = 7) -> bytes:
    inflater = Inflater(encoding, limit)
    for at in range(0, len(data), step):
        for _ in inflater.feed(data[at : at + step]):
            pass
    return inflater.finish()


def bare(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


@given(data=st.binary(max_size=2_000), step=st.integers(1, 3_000))
def test_what_was_compressed_comes_back(data, step):
    assert inflate("gzip", gzip.compress(data), step=step) == data
    assert inflate("deflate", zlib.compress(data), step=step) == data


@pytest.mark.parametrize("step", [1 << 16, 2, 1])
def test_a_bare_deflate_stream_is_taken_too(step):
    assert inflate("deflate", bare(b"spans" * 100), step=step) == b"spans" * 100


def test_several_gzip_members_and_padding_are_one_body():
    assert inflate("gzip", gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two") + bytes(9)) == b"one two"


def test_more_members_than_any_client_sends_are_refused_whatever_they_hold():
    assert inflate("gzip", gzip.compress(b"") * 999 + gzip.compress(b"x"), step=1 << 16) == b"x"
    with pytest.raises(Damaged, match="more than 1000 gzip members"):
        inflate("gzip", gzip.compress(b"") * 1001, step=1 << 16)


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 1])
def test_the_bound_is_exact(size):
    packed = gzip.compress(bytes(size))
    if size > 1 << 16:
        with pytest.raises(TooLarge):
            inflate("gzip", packed)
    else:
        assert len(inflate("gzip", packed)) == size


def test_a_bomb_is_refused_before_it_has_gone_off():
    bomb = gzip.compress(bytes(200 << 20), 9)
    inflater = Inflater("gzip", 1 << 20)
    with pytest.raises(TooLarge):
        for _ in inflater.feed(bomb):
            pass
    assert inflater.size <= (1 << 20) + 1


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", b"not gzip"), ("gzip", gzip.compress(b"x" * 99, mtime=0)[:-5]),
        ("gzip", gzip.compress(b"x", mtime=0) + b"rest"), ("deflate", b"\xff\xff\xff"),
        ("deflate", zlib.compress(b"x") + b"rest"), ("gzip", zlib.compress(b"x")),
    ],
)  # fmt: skip
def test_damage_is_named(encoding, data):
    with pytest.raises(Damaged):
        inflate(encoding, data, step=1 << 16)


def test_nothing_is_an_empty_body():
    assert inflate("gzip", b"") == b""
