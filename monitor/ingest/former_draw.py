"""How traces were drawn before the monitor was started anew, so that half a trace is not judged as a whole one.

The first spans of a trace that was not drawn are gone. Where the restart raised the rate, its later spans are drawn,
and what they show looks like a run that missed its steps. So a trace that began before the start must also reach the
threshold of the process that ran then: what reaches it has all its spans, and its probability is that of both draws.

Price: for an hour after the start, what began before it is drawn at the smaller rate, also where nothing of it had
come yet. Where another key decides than before, nothing is known of the former draw.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from sidejudge.integrations.store.part import TextsByName
from sidejudge.scoring.trace.time_units import HOUR_NS

from .load_shedding import AdaptiveRate

_COUNTED: Final = "counted"
"""Name of the note of the traces of each minute."""
_LASTS_NS: Final = HOUR_NS
"""Within this time after the start, spans of traces that began before it may come."""


class FormerDraw:
    """``drawn_at`` returns the threshold in [0, 2**56] that a trace which begins now must reach.

    A rate that follows the traffic, ``adaptive``, goes on with what the process before had counted.
    """

    def __init__(
        self,
        memory: TextsByName,
        drawn_at: Callable[[], int],
        clock_ns: Callable[[], int],
        *,
        adaptive: AdaptiveRate | None = None,
    ) -> None:
        self._memory, self._drawn_at, self._clock_ns, self._adaptive = memory, drawn_at, clock_ns, adaptive
        self._started_ns = clock_ns()
        self._noted: dict[str, str] = {}
        self._ended: dict[int, int] = {}
        """The threshold of each process before, by when the next one was started."""

    async def restore(self) -> None:
        """Read how the processes before drew. Raises ``StoreError``."""
        noted = self._memory.all()
        counted = json.loads(noted.pop(_COUNTED, "{}"))
        if self._adaptive is not None:
            self._adaptive.restore({int(minute): int(many) for minute, many in counted.items()}, self._clock_ns())
        begun = sorted(map(int, noted))
        outdated: dict[str, None] = {}
        for start, after in pairwise([*begun, self._started_ns]):
            end = min(after, self._started_ns)
            self._ended[end] = max(int(noted[str(start)]), self._ended.get(end, 0))
            if end < self._started_ns - _LASTS_NS:
                outdated[str(start)] = None
        await self._memory.change(outdated)
        await self.note()

    async def note(self) -> None:
        """Note how traces are drawn now. Raises ``StoreError``."""
        now = {str(self._started_ns): str(self._drawn_at())}
        if self._adaptive is not None:
            now[_COUNTED] = json.dumps(self._adaptive.counts())
        if now != self._noted:
            await self._memory.change(now)
            self._noted = now

    def threshold(self, began_ns: int, opened_ns: int) -> int:
        """What the trace must have reached so that none of its spans were passed over before the start; 0: nothing.

        Args:
            began_ns: When its first span began, ns since the epoch.
            opened_ns: When its first span came here. What was kept by the process before had reached its threshold.
        """
        if not 0 <= opened_ns - self._started_ns < _LASTS_NS:
            return 0
        return max((limit for ended_ns, limit in self._ended.items() if began_ns < ended_ns), default=0)
