"""Pulled: which traces were read out of Langfuse, so that each is taken once, whatever happens to the process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .part import Part

_SLICE = 1_000
_ID_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of a trace. ``reason``: why it ended without being read, None when it was taken in.

    ``spans`` are the ids of its rows that were taken, 8 bytes each; ``last_ns`` is when the latest row that was seen
    began, ns since the epoch.
    """

    trace_id: str
    last_ns: int
    reason: str | None
    spans: frozenset[bytes] = frozenset()


class Pulled(Part):
    """Methods that write are async and return once committed. Raises ``StoreError``."""

    def known(self, trace_ids: Iterable[str]) -> dict[str, tuple[str | None, frozenset[bytes]]]:
        """The processed ones of these traces: why unread, and the rows that were taken."""
        rows = self._read("pulled_known", (json.dumps(list(trace_ids)),))
        return {trace_id: (reason, _unpacked(spans)) for trace_id, reason, spans in rows}

    def taken(self, from_ns: int, limit: int) -> list[tuple[str, int]]:
        """Traces that were taken, each with when its latest row began: the first from this time on."""
        return self._read("pulled_taken", {"from_ns": from_ns, "limit": limit})

    async def put(self, taken: Sequence[Taken]) -> None:
        """Remember them, all or none."""
        rows = [(t.trace_id, t.last_ns, t.reason, b"".join(sorted(t.spans))) for t in taken]
        if rows:
            await self._do_each("pulled_put", rows)

    async def forget(self, before_ns: int) -> None:
        """Let go of traces whose rows all began before this: nobody looks there any more."""
        while await self._do("pulled_forget", {"before": before_ns, "limit": _SLICE}) == _SLICE:
            pass


def _unpacked(spans: bytes) -> frozenset[bytes]:
    return frozenset(spans[at : at + _ID_BYTES] for at in range(0, len(spans), _ID_BYTES))
