"""Chunk: the part of a request that belongs to one trace, and the headers of its spans, attributes not decoded."""

from __future__ import annotations

from dataclasses import dataclass, field

from sidejudge.scoring.trace.record import record

from .tracestate import NEVER, hashed_randomness, randomness


@dataclass(frozen=True, slots=True)
class ChunkOrigin:
    """Service and environment of spans, and the sampling threshold that applies to them.

    ``threshold`` is a rejection threshold in [0, 2**56]: 0 keeps all, 2**56 none. ``floor`` is the same as bytes that
    compare with the last 7 bytes of a trace id. With a ``hash_key`` a hash of the whole id decides instead of these.
    ``handed_over``: they come from a monitor that was ending; ``of`` is the one trace that this holds for.
    """

    service: str | None
    environment: str | None
    threshold: int
    hash_key: bytes = field(default=b"", repr=False)
    handed_over: bool = False
    of: bytes = b""
    floor: bytes = field(init=False, compare=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        never = self.threshold >= NEVER
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


@record(frozen=True, slots=True, kw_only=False)
class SpanHeader:
    """The part of a span that the assembler needs. ``parent_id`` is empty for a span without parent.

    ``root_hint`` marks the topmost span that the application exported; its parent will never come. ``remote_parent``
    marks a parent in another process, if the exporter reports it (most do since 2024).
    """

    span_id: bytes
    parent_id: bytes = b""
    trace_state: str = ""
    root_hint: bool = False
    remote_parent: bool = False


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
