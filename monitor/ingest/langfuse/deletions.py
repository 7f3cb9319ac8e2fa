"""Deletions: finds traces that were read out of Langfuse and are gone there, and has them erased here as well.

Langfuse reports no deletion. So the start times of all held traces are listed once more, ten minutes of them at a time,
and missing ones are read by their ids. A trace is erased when it was missing twice, ten minutes apart: a replica that
lags must not cost verdicts. What another read of Langfuse showed is not looked for: after an upgrade its history may be
in tables that the new read does not see. Nor is a trace of 29 days or more erased where nothing as old is shown: a plan
of Langfuse's cloud shows the last 30 days, another 90, and hides the rest. Price: one listing of each hour's rows for
every cycle, and with an erasure all cached answers of judges (``integrations/store/erasure.py``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, TypeAlias

from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.observations import SHOWN_NS, TraceTooLarge, Window, anything_before
from sidejudge.integrations.langfuse.pages import Row
from sidejudge.integrations.langfuse.probe import LangfuseServer, project_of
from sidejudge.integrations.store.erasure import erase
from sidejudge.integrations.store.sqlite import Store
from sidejudge.scoring.trace.time_units import MINUTE_NS

from .fetch import rows_of

log = logging.getLogger("sidejudge.langfuse")

Pages: TypeAlias = Callable[[LangfuseServer, Window], AsyncIterator[Sequence[Row]]]

SLICE_NS: Final = 10 * MINUTE_NS
"""Start times that are listed at a time."""
EVERY_NS: Final = 2 * MINUTE_NS
"""How often a slice is listed: a day's within five hours."""
CONFIRM_NS: Final = 10 * MINUTE_NS
"""How long a trace must have been gone before it is erased."""
_MOST_LISTED: Final = 5_000
"""Traces that are looked for in one listing."""
_MOST_READ: Final = 50
"""Traces that are read by their ids after one listing; the others have their turn in the next cycle."""


class DeletedTraces:
    """Looks a slice at a time. ``oldest_ns`` and ``newest_ns`` are the ages between which traces are looked for."""

    def __init__(
        self,
        *,
        langfuse: Langfuse,
        store: Store,
        pages: Pages,
        clock_ns: Callable[[], int],
        oldest_ns: int,
        newest_ns: int,
    ) -> None:
        self._langfuse, self._store, self._pages, self._clock_ns = langfuse, store, pages, clock_ns
        self._oldest_ns, self._newest_ns = oldest_ns, newest_ns
        self.since_ns = 0
        """What began before is not looked for, ns since the epoch."""
        self._from_ns = self._due_ns = 0
        self._gone: dict[str, tuple[int, int]] = {}  # when its latest row began, and when it was first missing

    def set_back(self) -> None:
        """The clock was set back: traces are missing from now on."""
        self._from_ns = self._due_ns = 0
        self._gone.clear()

    async def look(self, server: LangfuseServer) -> int:
        """List the next slice if one is due, and erase what is gone for long enough.

        Returns:
            How many traces were erased.

        Raises:
            LangfuseError: It cannot be read; the same slice is listed again.
            StoreError: The store cannot be read.
        """
        now_ns = self._clock_ns()
        if now_ns < self._due_ns:
            return 0
        from_ns = max(self._from_ns, self.since_ns, now_ns - self._oldest_ns)
        taken = await asyncio.to_thread(self._store.pulled.taken, from_ns, _MOST_LISTED)
        window = _first(taken, now_ns - self._newest_ns)
        if window is None:
            self._from_ns, self._due_ns = 0, now_ns + EVERY_NS  # from the beginning again
            return await self._settle(server, now_ns)
        of_slice = [trace_id for trace_id, at_ns in taken if at_ns < window.to_ns]
        held = set(await asyncio.to_thread(lambda: [each for each in of_slice if self._store.details(each)]))
        if held:
            async for page in self._pages(server, window):
                held.difference_update(str(row.get("traceId")) for row in page)
            began = dict(taken)
            for trace_id in sorted(held)[:_MOST_READ]:
                if await self._is_gone(server, trace_id, began[trace_id]):
                    self._gone.setdefault(trace_id, (began[trace_id], now_ns))
        self._from_ns, self._due_ns = window.to_ns, now_ns + EVERY_NS
        return await self._settle(server, now_ns)

    async def _settle(self, server: LangfuseServer, now_ns: int) -> int:
        """Erase traces that are still missing."""
        due = {each: began for each, (began, since_ns) in self._gone.items() if now_ns - since_ns >= CONFIRM_NS}
        confirmed = [trace_id for trace_id, began in due.items() if await self._is_gone(server, trace_id, began)]
        if confirmed and (await project_of(self._langfuse))[0] != server.project_id:
            self._gone.clear()  # another project answers at this address by now
            return 0
        if confirmed:
            erased = [bytes.fromhex(trace_id) for trace_id in confirmed]
            await asyncio.to_thread(erase, self._store.path, erased, scores=False, now_ns=self._clock_ns())
            log.info("traces that were deleted in Langfuse were erased here", extra={"traces": len(confirmed)})
        for trace_id in due:
            del self._gone[trace_id]
        return len(confirmed)

    async def _is_gone(self, server: LangfuseServer, trace_id: str, began_ns: int) -> bool:
        try:
            if await rows_of(self._langfuse, server, trace_id):
                return False
        except TraceTooLarge:
            return False
        shown = self._clock_ns() - began_ns < SHOWN_NS
        return shown or await anything_before(self._langfuse, began_ns, v2=server.observations_v2)


def _first(taken: Sequence[tuple[str, int]], until_ns: int) -> Window | None:
    """The time slice in which the first of these began, no longer than they reach; None if that is too late."""
    if not taken or taken[0][1] >= until_ns:
        return None
    from_ns, to_ns = taken[0][1], min(taken[0][1] + SLICE_NS, until_ns)
    if len(taken) == _MOST_LISTED:
        to_ns = max(from_ns + 1, min(to_ns, taken[-1][1]))
    return Window(from_ns=from_ns, to_ns=to_ns)
