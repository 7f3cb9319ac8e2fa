"""Kept contents: spans of ended traces, kept longer than their chunks, and what judges were sent and answered.

Both are bounded in bytes and in time. The transaction that ends a trace asks for its contents
(``FinishedTrace.keep_contents``); the row then waits until somebody has read the chunks and put what is to be kept of
them. So a kill loses no request, and ending a trace costs one small row.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import Final, NamedTuple, TypedDict

from sidejudge.scoring.trace.span import Json

from .part import Part, Read, Write

_AT_ONCE: Final = 500
"""Rows deleted in one transaction."""
_SPARE: Final = 16
"""A part in so many of the bytes of judge calls is free after calls had to go."""


class WaitingContents(NamedTuple):
    """A trace whose contents are to be written: 16 bytes, and the revision that asked for it."""

    trace_id: bytes
    revision: int


class ContentsTable(Part):
    """Methods that write are async and return once committed. All raise ``StoreError``."""

    def __init__(self, *, write: Write, read: Read) -> None:
        super().__init__(write=write, read=read)
        ((self.bytes,),) = read("contents_bytes", ())
        """Bytes of all bodies: counted at each purge of this process, and what was written since; erased ones too."""

    def of(self, trace_id: bytes) -> bytes | None:
        """What is kept of a trace, as it was put; None for nothing."""
        return next((body for (body,) in self._read("contents_of", (trace_id,))), None)

    def waiting(self, limit: int) -> list[WaitingContents]:
        """Traces whose contents are still to be written: at most ``limit``."""
        return [WaitingContents(*row) for row in self._read("contents_waiting", (limit,))]

    async def put(self, found: Sequence[tuple[WaitingContents, bytes | None]], most_bytes: int) -> None:
        """Write bodies (None: the trace has none), then delete the oldest beyond ``most_bytes``."""

        def work(connection: Connection) -> int:
            grown = 0
            for (trace_id, revision), body in found:
                row = {"trace_id": trace_id, "revision": revision, "body": body}
                if body is None:
                    for name in ("contents_missed", "contents_stand"):
                        connection.execute(self._sql[name], row)
                    continue
                ((before,),) = connection.execute(self._sql["contents_size"], (trace_id,))
                if connection.execute(self._sql["contents_put"], row).rowcount:
                    grown += len(body) - before
            return grown

        self.bytes += await self._write(work)
        if self.bytes > most_bytes:  # to count them all takes as long as there are many of them
            await self.trim(most_bytes)

    async def purge(self, before_ns: int, most_bytes: int) -> None:
        """Delete contents of traces closed before ``before_ns``, and the oldest beyond ``most_bytes``."""
        await self._do("contents_forget", (before_ns,))
        await self.trim(most_bytes)

    async def trim(self, most: int) -> None:
        """Let go of the oldest contents beyond ``most`` bytes."""
        while await self._write(lambda connection: self._trim_some(connection, most)):
            pass

    def _trim_some(self, connection: Connection, most: int) -> bool:
        """Delete some of the oldest beyond ``most``; whether more may have to go."""
        ((held,),) = connection.execute(self._sql["contents_bytes"])
        gone: list[tuple[bytes]] = []
        for trace_id, size in connection.execute(self._sql["contents_oldest"], (_AT_ONCE,)).fetchall():
            if held <= most:
                break
            held -= size
            gone.append((trace_id,))
        connection.executemany(self._sql["contents_unwanted"], gone)
        self.bytes = held
        return len(gone) == _AT_ONCE


class ExchangeDocument(TypedDict, total=False):
    """One request to one model: its raw answer, or why none came."""

    model: str
    text: str | None
    duration_s: float
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    finish_reason: str | None
    faults: list[str]
    complaint: str
    failure: str


class AnswerDocument(TypedDict, total=False):
    """What was read as the answer to one question, or the fault of the answer.

    ``steps_shown`` and ``steps_not_shown`` are numbers of steps of a long run (``1-3, 7``), in full or not.
    """

    id: str
    metric: str
    value: Json
    reason: str
    flags: list[str]
    votes: dict[str, Json]
    dissent: float
    fault: str
    steps_shown: str
    steps_not_shown: str


class JudgeCallDocument(TypedDict, total=False):
    """A call as JSON: what was asked, sent, answered, read and paid."""

    call: str
    at: str
    cost_usd: float | None
    prompt_version: str
    messages: list[dict[str, str]]
    exchanges: list[ExchangeDocument]
    questions: list[AnswerDocument]


def unpacked(body: bytes) -> JudgeCallDocument:
    """A call as it was written."""
    call: JudgeCallDocument = json.loads(zlib.decompress(body))
    return call


class JudgeCallTable(Part):
    """Methods that write are async and return once committed. Raises ``StoreError``.

    All calls are looked through only when they hold more than they may, and then some more go than must: at each
    writing this would take milliseconds of the store's one writer for every ten thousand of them.
    """

    _size: int | None = None
    """What they hold at most, as the writer knows it."""

    def of(self, trace_id: bytes) -> list[JudgeCallDocument]:
        """The calls about a trace, the earliest first."""
        return [unpacked(body) for (body,) in self._read("judge_calls_of", (trace_id,))]

    async def put(
        self, call: str, trace_id: bytes, body: Mapping[str, object], *, at_ns: int, before_ns: int, most_bytes: int
    ) -> None:
        """Keep a call; delete calls from before ``before_ns``, and the oldest beyond ``most_bytes``."""
        packed = zlib.compress(json.dumps(body, default=str).encode())
        bounds = {"before": before_ns, "most": most_bytes - most_bytes // _SPARE}

        def size(connection: Connection) -> int:
            return int(connection.execute(self._sql["judge_calls_size"]).fetchone()[0])

        def work(connection: Connection) -> None:
            held = size(connection) if self._size is None else self._size
            connection.execute(self._sql["judge_calls_put"], (call, trace_id, at_ns, len(packed), packed))
            connection.execute(self._sql["judge_calls_before"], (before_ns,))
            self._size = held + len(packed)
            if self._size > most_bytes:
                connection.execute(self._sql["judge_calls_beyond"], bounds)
                self._size = size(connection)

        await self._write(work)

    async def purge(self, before_ns: int, most_bytes: int) -> None:
        """Let go of the calls from before ``before_ns``, and of the oldest beyond ``most_bytes``."""
        await self._do("judge_calls_beyond", {"before": before_ns, "most": most_bytes})
