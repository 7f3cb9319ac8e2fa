"""Judge calls: what judges were sent and what they answered, by trace, bounded in bytes and in time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from sqlite3 import Connection
from typing import TypedDict

from sidejudge.scoring.trace.span import Json

from .part import Part


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
    """Methods that write are async and return once committed. Raises ``StoreError``."""

    def of(self, trace_id: bytes) -> list[JudgeCallDocument]:
        """The calls about a trace, the earliest first."""
        return [unpacked(body) for (body,) in self._read("judge_calls_of", (trace_id,))]

    async def put(
        self, call: str, trace_id: bytes, body: Mapping[str, object], *, at_ns: int, before_ns: int, most_bytes: int
    ) -> None:
        """Keep a call, and let go of those from before ``before_ns``, and of the oldest beyond ``most_bytes``."""
        packed = zlib.compress(json.dumps(body, default=str).encode())
        bounds = {"before": before_ns, "most": most_bytes}
        put, beyond = self._sql["judge_calls_put"], self._sql["judge_calls_beyond"]

        def work(connection: Connection) -> None:
            connection.execute(put, (call, trace_id, at_ns, len(packed), packed))
            connection.execute(beyond, bounds)

        await self._write(work)

    async def purge(self, before_ns: int, most_bytes: int) -> None:
        """Let go of the calls from before ``before_ns``, and of the oldest beyond ``most_bytes``."""
        await self._do("judge_calls_beyond", {"before": before_ns, "most": most_bytes})
