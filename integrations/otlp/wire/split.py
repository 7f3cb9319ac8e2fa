"""The outcome of a request's spans, and the message about it for the sender."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .chunk import Chunk, ChunkOrigin
from .own_telemetry import traces_of


@dataclass(slots=True)
class Split:
    """The outcome of a request's spans: kept in ``chunks``, sampled out in ``dropped``, or ``rejected`` for good.

    ``dropped`` maps an origin to the ids of traces with spans that were not drawn. ``own`` spans are a monitor's own
    telemetry; they are not read, and ``own_traces`` has the ids of their traces likewise.
    """

    chunks: list[Chunk] = field(default_factory=list)
    dropped: dict[ChunkOrigin, set[bytes]] = field(default_factory=dict)
    spans: int = 0
    kept: int = 0
    own: int = 0
    own_traces: dict[ChunkOrigin, set[bytes]] = field(default_factory=dict)
    invalid_ids: int = 0
    damaged: int = 0
    crowded: int = 0
    copied: int = 0
    """Bytes of the chunks so far."""
    explicit: bool = False
    """Whether spans may state their randomness themselves, so that the trace ids do not have it."""
    states: bool = True
    """Whether trace states are believed."""

    @property
    def rejected(self) -> int:
        return self.invalid_ids + self.damaged + self.crowded

    def pass_over(self, spans: Sequence[bytes], origin: ChunkOrigin) -> None:
        """Count a monitor's own spans."""
        self.spans += len(spans)
        self.own += len(spans)
        self.own_traces.setdefault(origin, set()).update(traces_of(spans))

    @property
    def message(self) -> str:
        """Why spans were rejected, in one line; empty when none was."""
        parts = []
        if self.invalid_ids:
            wanted = "trace_id must be 16 bytes, span_id 8, and not all zero"
            parts.append(f"{self.invalid_ids} spans without a valid id: {wanted}")
        if self.damaged:
            parts.append(f"{self.damaged} spans could not be decoded: they are damaged, or hold too much")
        if self.crowded:
            parts.append(f"{self.crowded} spans of too many traces under too large a resource; send smaller batches")
        return "; ".join(parts)


Admit: TypeAlias = Callable[[bytes], ChunkOrigin]
"""Called once for each resource, with its bytes; returns the origin of its spans and their threshold."""
