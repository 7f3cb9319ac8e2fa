"""Handover: kept chunks of traces that one monitor passes on to another, marked with the threshold they were drawn at.

The mark is an attribute of the resource, so that it survives a Collector in between. The other monitor draws at no
lower threshold, so that the probability that it records is the true one, and does not count the spans as received: the
first one has counted them. A request that goes straight to a monitor has a header too: it is not forwarded again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError

from .kept import LOGS
from .schema import classes

HEADER: Final = "sidejudge-handover"
_KEY: Final = "sidejudge.handover"
_MARK: Final = _KEY.encode()
_HASHED: Final = ";hashed"


def spans_of(payload: bytes, threshold: int, *, hashed: bool) -> bytes:
    """A chunk of spans as a request that is marked; empty for a chunk of log records."""
    if payload[:1] == LOGS:
        return b""
    request = classes("envelope")["Request"].FromString(payload)
    mark = _attribute(f"{threshold:014x}{_HASHED if hashed else ''}")
    for resource_spans in request.resource_spans:
        resource_spans.resource += mark  # the bytes of an attribute after those of a resource are one attribute more
    return bytes(request.SerializeToString())


def logs_of(payload: bytes) -> bytes:
    """A chunk of log records as a request; empty for a chunk of spans."""
    return bytes(classes("complete")["KeptLogs"].FromString(payload).request) if payload[:1] == LOGS else b""


def drawn_at(resource: bytes, *, hashed: bool) -> int | None:
    """The threshold that a resource is marked with; None without a mark.

    A mark of another kind of randomness bounds nothing here: then it is 0, and the trace is drawn once more.
    """
    if _MARK not in resource:
        return None
    try:
        attributes = classes("complete")["Resource"].FromString(resource).attributes
    except DecodeError:
        return None
    return _threshold((a.value.string_value for a in attributes if a.key == _MARK), hashed=hashed)


def _threshold(values: Iterable[bytes], *, hashed: bool) -> int | None:
    found = None
    for value in values:
        text = value.decode("ascii", "replace")
        digits = text.removesuffix(_HASHED)
        if len(digits) == 14 and all(char in "0123456789abcdef" for char in digits):
            found = int(digits, 16) if text.endswith(_HASHED) is hashed else 0
    return found


def _attribute(value: str) -> bytes:
    resource = classes("complete")["Resource"]()
    added = resource.attributes.add()
    added.key, added.value.string_value = _MARK, value.encode()
    return bytes(resource.SerializeToString())
