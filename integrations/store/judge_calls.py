"""Judge calls: what judges were sent and what they answered, by trace, bounded in bytes and in time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from .part import Part


def unpacked(body: bytes) -> dict[str, Any]:
    """A call as it was written."""
    call: dict[str, Any] = json.loads(zlib.decompress(body))
    return call


class JudgeCallTable(Part):
    """Methods that write are async and return once committed. Raises ``StoreError``."""

    def of(self, trace_id: bytes) -> list[dict[str, Any]]:
        """The calls about a trace, the earliest first."""
        return [unpacked(body) for (body,) in self._read("judge_calls_of", (trace_id,))]

    async def put(
        self, call: str, trace_id: bytes, body: Mapping[str, object], *, at_ns: int, before_ns: int, most_bytes: int
    ) -> None:
        """Keep a call, and let go of those from before ``before_ns``, and of the oldest beyond ``most_bytes``."""
        packed = zlib.compress(json.dumps(body, default=str).encode())
        bounds = {"before": before_ns, "most": most_bytes}
        put, beyond = self._sql["judge_calls_put"], self._sql["judge_calls_beyond"]

        def work(connection: Any) -> None:
            connection.execute(put, (call, trace_id, at_ns, len(packed), packed))
            connection.execute(beyond, bounds)

        await self._write(work)

    async def purge(self, before_ns: int, most_bytes: int) -> None:
        """Let go of the calls from before ``before_ns``, and of the oldest beyond ``most_bytes``."""
        bounds = {"before": before_ns, "most": most_bytes}
        await self._write(lambda connection: connection.execute(self._sql["judge_calls_beyond"], bounds) and None)
