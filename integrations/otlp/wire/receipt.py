"""The outcome of a delivered request: a receipt, or one of two refusals that the protocol distinguishes.

The outcome of a request's spans, and the message about it for the sender.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from google.protobuf.message import DecodeError

from sidejudge.scoring.errors import SidejudgeError

from .chunk import Chunk, ChunkOrigin
from .schema import classes

Encoding: TypeAlias = Literal["protobuf", "json"]
"""The two encodings of an OTLP request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """An accepted request: the kept part of it is committed.

    ``rejected`` is the number of spans or log records that were refused for good (OTLP partial success: the client
    must not send them again); ``message`` is the reason, or empty. A message without rejections is a warning.
    """

    rejected: int = 0
    message: str = ""


class Passage:
    """The result of a forwarded request: ``taken`` by the other side, refused (False), or unknown yet (None)."""

    def __init__(self) -> None:
        self.taken: bool | None = None
        self._waiting: list[Callable[[], None]] = []

    def settle(self, *, taken: bool) -> None:
        """Record it, once."""
        if self.taken is None:
            self.taken = taken
            waiting, self._waiting = self._waiting, []
            for call in waiting if taken else ():
                call()

    def when_taken(self, call: Callable[[], None]) -> None:
        """Call this once it is taken, at once if it is; never if it is not."""
        if self.taken:
            call()
        elif self.taken is None:
            self._waiting.append(call)


class Consume(Protocol):
    """Consumes a decompressed request, and returns once the kept part of it is committed.

    ``passage`` is of a request that goes on as well.
    """

    async def __call__(self, body: bytes, encoding: Encoding, passage: Passage | None = None, /) -> Receipt: ...


class Undecodable(SidejudgeError, ValueError):  # noqa: N818  # it names what the data is
    """The request is not an OTLP trace request; sending it again cannot help."""


class Overloaded(SidejudgeError):  # noqa: N818  # it names what the receiver is
    """The request was not accepted and may be sent again after ``retry_after_s`` seconds; nothing of it was kept."""

    def __init__(self, retry_after_s: float, reason: str = "more is waiting to be committed than may wait") -> None:
        super().__init__(f"{reason}; send again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s
        self.reason = reason


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
        self.own_traces.setdefault(origin, set()).update(_traces_of(spans))

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


def _traces_of(spans: Iterable[bytes]) -> set[bytes]:
    """The trace ids of encoded spans; spans that cannot be read are skipped."""
    found: set[bytes] = set()
    for span in spans:
        try:
            found.add(classes("complete")["Ids"].FromString(span).trace_id)
        except DecodeError:
            continue
    return {trace_id for trace_id in found if len(trace_id) == 16 and trace_id.strip(b"\0")}


Admit: TypeAlias = Callable[[bytes], ChunkOrigin]
"""Called once for each resource, with its bytes; returns the origin of its spans and their threshold."""
