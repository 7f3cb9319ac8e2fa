"""Judged shares: how traces were drawn that wait for the judge, so that a restart does not draw them anew.

What was not drawn has ended. So of traces that were drawn at a half and are drawn again when the budget suffices for
all, only a half is there: the probability recorded is that of the first draw. A share of 1 is not noted, for whatever
is drawn at a smaller one afterwards has that one's probability.

Price: a write a turn while the budget is scarce. A crash loses what was drawn in the last turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from sidejudge.integrations.store.part import TextsByName
from sidejudge.scoring.trace.time_units import DAY_NS

_KEPT_NS: Final = 30 * DAY_NS
"""A share this old is of a trace that ended just before a crash."""


class JudgedShares:
    """The share at which each trace was drawn that has not ended. Without ``memory`` they end with the process."""

    def __init__(self, memory: TextsByName | None = None, *, clock_ns: Callable[[], int] = lambda: 0) -> None:
        self._memory, self._clock_ns = memory, clock_ns
        self._noted = memory.all() if memory is not None else {}
        old_ns = clock_ns() - _KEPT_NS
        self._changes: dict[str, str | None] = {
            name: None for name, text in self._noted.items() if json.loads(text)["drawn_ns"] < old_ns
        }

    def of(self, trace_id: bytes) -> float | None:
        """The share at which a trace was drawn before; None where it was not, or at 1."""
        noted = self._noted.get(trace_id.hex())
        return None if noted is None else float(json.loads(noted)["share"])

    def drawn(self, trace_id: bytes, share: float) -> None:
        """Remember the share in [0, 1] at which a trace is drawn."""
        name = trace_id.hex()
        if share < 1.0 and name not in self._noted:
            # Its id stands in the value too: by that, what is kept of a trace is found when it is to be forgotten.
            self._changes[name] = json.dumps({"trace_id": name, "share": share, "drawn_ns": self._clock_ns()})

    def ended(self, trace_id: bytes) -> None:
        """Forget a trace whose result is on disk."""
        name = trace_id.hex()
        self._changes.pop(name, None)
        if name in self._noted:
            self._changes[name] = None

    async def note(self) -> None:
        """Write what has changed. Raises ``StoreError``; then the next call writes it."""
        if not self._changes or self._memory is None:
            return
        written = dict(self._changes)
        await self._memory.change(written)
        for name, text in written.items():
            if self._changes.get(name, name) == text:  # more may have come meanwhile
                del self._changes[name]
            self._noted.pop(name, None)
            if text is not None:
                self._noted[name] = text
