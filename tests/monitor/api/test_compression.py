"""Long responses are compressed for those who accept it, and for nobody else."""

from __future__ import annotations

import gzip

import pytest
from fastapi import Request

from sidejudge.monitor.api.shared_result import compressed

LONG = b"sidejudge_traces_total 1.0\n" * 1000


def requested(*accepted: str) -> Request:
    return Request({"type": "http", "headers": [(b"accept-encoding", each.encode()) for each in accepted]})


@pytest.mark.parametrize(
    ("accepted", "body", "is_compressed"),
    [
        (("gzip",), LONG, True),
        (("br", "deflate, GZIP;q=0.5"), LONG, True),
        (("gzip;q=0",), LONG, False),
        (("gzip; q=0.000",), LONG, False),
        (("br",), LONG, False),
        ((), LONG, False),
        (("gzip",), b"short", False),
    ],
)
async def test_a_long_response_is_compressed_for_those_who_accept_it(accepted, body, is_compressed):
    response = await compressed(body, "text/plain", requested(*accepted))
    assert response.headers.get("content-encoding") == ("gzip" if is_compressed else None)
    assert (gzip.decompress(response.body) if is_compressed else response.body) == body
    assert (response.headers["content-type"], response.headers["vary"]) == ("text/plain", "accept-encoding")
    if is_compressed:
        assert len(response.body) < len(body) / 20
