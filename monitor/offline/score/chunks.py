"""Chunks: a run's lines in pieces of bounded size, each judged whole by one of several processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .lines import NumberedLine
from .remarks import RecordedRemarks
from .tally import ScoreTally
from .wanted import Wanted

CHUNK_LINES: Final = 512
CHUNK_BYTES: Final = 1024 * 1024
"""What a chunk holds at most, but for one line more: large enough that sending it costs little, small beside memory."""
GROUP_LINES: Final = 64
GROUP_BYTES: Final = 256 * 1024
"""What is judged stage by stage at a time, likewise: small beside a processor's caches. 512 lines took 5 % longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedChunk:
    """What became of some lines: their verdicts as bytes, what is to be reported, and the bytes read so far.

    ``judge_out`` is why the judge could not be asked any more, and the lines from there on were not judged.
    """

    verdicts: bytes
    remarks: RecordedRemarks
    tally: ScoreTally
    read: int
    judge_out: str | None = None


@dataclass(slots=True)
class ChunkVerdicts:
    """Takes the verdicts of one chunk; none stands yet."""

    walked = True
    blocks: list[bytes] = field(default_factory=list)

    def existing(self, wanted: Wanted) -> Mapping[str, object] | None:  # noqa: ARG002  # the signature of a file
        return None

    def all_walked(self) -> None:
        return

    def append(self, verdict: bytes) -> None:
        self.blocks.append(verdict)


def chunks(
    lines: Iterable[NumberedLine], most: int = CHUNK_LINES, most_bytes: int = CHUNK_BYTES
) -> Iterator[Sequence[NumberedLine]]:
    """The lines, in chunks."""
    chunk: list[NumberedLine] = []
    size = 0
    for line in lines:
        chunk.append(line)
        size += len(line.text or b"")
        if len(chunk) >= most or size >= most_bytes:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
