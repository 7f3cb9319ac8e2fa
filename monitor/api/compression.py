"""Compression: long responses, gzipped for those who accept it, off the event loop."""

from __future__ import annotations

import asyncio
import gzip

from fastapi import Request, Response

_LEAST = 1024
"""Bytes from which on a response is compressed."""
_LEVEL = 1
"""Metrics shrink to a twelfth at the quickest level already."""


async def compressed(body: bytes, content_type: str, request: Request) -> Response:
    """A response with this body, compressed where it is long and the caller accepts it."""
    headers = {"content-type": content_type, "vary": "accept-encoding"}
    if len(body) >= _LEAST and accepts_gzip(request):
        body = await asyncio.to_thread(gzip.compress, body, _LEVEL, mtime=0)
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers)


def accepts_gzip(request: Request) -> bool:
    """Whether the caller accepts a compressed response."""
    for entry in ",".join(request.headers.getlist("accept-encoding")).lower().split(","):
        name, _, weight = entry.partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
