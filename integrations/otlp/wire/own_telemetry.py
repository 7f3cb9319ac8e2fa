"""Recognise a monitor's own telemetry in a request, from its bytes.

A monitor may receive its own telemetry: its exporter points at it, or a Collector sends everything everywhere. Such
spans are neither kept nor sampled, because judging them would create further ones without end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError

from sidejudge.scoring.trace.loop_guard import OWN_SCOPE, is_own

from .chunk import ChunkOrigin
from .schema import classes

_Ids: Final = classes("complete")["Ids"]
_Scope: Final = classes("complete")["Scope"]
_OWN_SCOPE: Final = OWN_SCOPE.encode()


def is_own_telemetry(origin: ChunkOrigin, scope: bytes) -> bool:
    """Whether the items of this resource and this scope (its bytes) are a monitor's own."""
    if _OWN_SCOPE in scope and _named_so(scope):
        return is_own(service=origin.service, scope=OWN_SCOPE)
    return is_own(service=origin.service)


def _named_so(scope: bytes) -> bool:
    try:
        return bool(_Scope.FromString(scope).name == _OWN_SCOPE)
    except DecodeError:
        return False


def traces_of(spans: Iterable[bytes]) -> set[bytes]:
    """Return the ids of the traces of spans (their bytes), without those that cannot be read."""
    found: set[bytes] = set()
    for span in spans:
        try:
            found.add(_Ids.FromString(span).trace_id)
        except DecodeError:
            continue
    return {trace_id for trace_id in found if len(trace_id) == 16 and trace_id.strip(b"\0")}
