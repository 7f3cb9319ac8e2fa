"""Chunk: the part of a request that belongs to one trace, and the headers of its spans, attributes not decoded.

``decoded_size`` estimates from above how much memory a kept chunk takes once it is decoded and judged, from its bytes
alone. Two bytes can be an empty attribute, which takes 600 bytes as a Python object; a short span takes 1.5 kB; a comma
in a text that is JSON stands for a value. Each of them needs a certain byte, so counting these bytes bounds the memory
without parsing. A text in which such bytes are frequent is estimated higher than it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError

from sidejudge.scoring.trace.loop_guard import OWN_SCOPE, is_own
from sidejudge.scoring.trace.record import record

from .kept import LOGS
from .schema import classes
from .tracestate import NEVER, hashed_randomness, randomness

_OWN_SCOPE: Final = OWN_SCOPE.encode()


@dataclass(frozen=True, slots=True)
class ChunkOrigin:
    """Service and environment of spans, and the sampling threshold that applies to them.

    ``threshold`` is a rejection threshold in [0, 2**56]: 0 keeps all, 2**56 none. ``floor`` is the same as bytes, to
    compare with the last 7 bytes of a trace id. With a ``hash_key``, a hash of the whole id is compared instead.
    ``handed_over``: the spans come from a monitor that was ending; ``of`` is the one trace that this holds for.
    """

    service: str | None
    environment: str | None
    threshold: int
    hash_key: bytes = field(default=b"", repr=False)
    handed_over: bool = False
    of: bytes = b""
    floor: bytes = field(init=False, compare=False)
    _hash: int = field(init=False, compare=False, repr=False)
    _own: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        never = self.threshold >= NEVER
        object.__setattr__(self, "_own", is_own(service=self.service))
        object.__setattr__(self, "floor", b"\xff" * 8 if never else self.threshold.to_bytes(7, "big"))
        object.__setattr__(
            self,
            "_hash",
            hash((self.service, self.environment, self.threshold, self.hash_key, self.handed_over, self.of)),
        )

    def __hash__(self) -> int:
        return self._hash

    def draws(self, trace_id: bytes, trace_state: str = "") -> bool:
        """Whether a span is kept. Explicit randomness in its trace state counts, unless a hash decides."""
        if self.hash_key:
            return hashed_randomness(trace_id, self.hash_key) >= self.floor
        if not trace_state:
            return trace_id[-7:] >= self.floor
        return randomness(trace_id, trace_state) >= self.threshold

    def is_own(self, scope: bytes) -> bool:
        """Whether the items of this resource and this scope (its bytes) are a monitor's own telemetry.

        A monitor may receive its own: its exporter points at it, or a Collector sends everything everywhere. It is
        neither kept nor sampled, because judging it would create further telemetry without end.
        """
        return self._own or (_OWN_SCOPE in scope and is_own(scope=_named(scope)))


def _named(scope: bytes) -> str:
    try:
        name: bytes = classes("complete")["Scope"].FromString(scope).name
    except DecodeError:
        return ""
    return name.decode("utf-8", "replace")


@record(frozen=True, slots=True, kw_only=False)
class SpanHeader:
    """The part of a span that the assembler needs. ``parent_id`` is empty for a span without parent.

    ``root_hint`` marks the topmost span that the application exported; its parent will never come. ``remote_parent``
    marks a parent in another process, if the exporter reports it (most do since 2024). ``failed``: its status is an
    error.
    """

    span_id: bytes
    parent_id: bytes = b""
    trace_state: str = ""
    root_hint: bool = False
    remote_parent: bool = False
    failed: bool = False


@record(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The spans of one trace in one request. ``payload`` is itself a valid OTLP request that holds only these.

    A chunk of log records has their number in ``records``, and no ``headers`` (see ``kept``).
    """

    trace_id: bytes
    payload: bytes
    headers: tuple[SpanHeader, ...]
    origin: ChunkOrigin
    records: int = 0


_PER_BYTE: Final = 6
"""Plain text is held as it came, as decoded text, and as parts of it."""
_PER_OCCURRENCE: Final = {
    b"\x12": 750,  # tag of a span, of its id, and of the value of an attribute
    b"J": 640,  # tag of an attribute of a span
    b"Z": 740,  # tag of an event of a span
    b"\x1a": 640,  # tag of an attribute of an event
    b"\n": 160,  # tag of a key, of a text, of a value in an array or a map
    b"*": 160,  # tag of an array
    b"2": 160,  # tag of a map
    b"[": 160,
    b"{": 850,  # a map; a text that the fast reader refuses is held as two of them
    b",": 90,
}
"""Bytes of memory by what in the encoding stands for something that is made."""


_OTHERS: Final = bytes(set(range(256)) - set(b"".join(_PER_OCCURRENCE)))
_MOST: Final = max(_PER_OCCURRENCE.values())
_SMALL: Final = 1 << 20
"""An estimate up to this size need not be exact: such bytes are counted, not located."""


def decoded_size(payload: bytes) -> int:
    """Bytes of memory that judging the spans of ``payload`` takes at most, beside what it takes for an empty trace."""
    plain = _PER_BYTE * len(payload)
    such = payload.translate(None, _OTHERS)  # a tenth of the payload, as a rule
    rough = plain + _MOST * len(such)
    if rough <= _SMALL:
        return rough
    return plain + sum(memory * such.count(byte) for byte, memory in _PER_OCCURRENCE.items())


def earliest_start(payload: bytes) -> int | None:
    """When the first span of a chunk began, in ns since the epoch; None where no span can be read."""
    if payload[:1] == LOGS:
        return None
    try:
        request = classes("flat")["Request"].FromString(payload)
    except DecodeError:
        return None
    return min(
        (span.start for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans),
        default=None,
    )
