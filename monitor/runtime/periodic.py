"""Periodic work that a scheduler starts, and that can be stopped in order while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Periodic:
    """One round at a time. The scheduler's own cancellation would be logged as an error."""

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        self._work = work
        self._round: asyncio.Task[None] | None = None
        self._ended = False

    async def run(self) -> None:
        """Run one round, unless one is running. Raises what the round raises."""
        if self._ended or (self._round is not None and not self._round.done()):
            return
        begun = self._round = asyncio.create_task(self._once())
        await asyncio.wait([begun])  # the next round may begin before this goes on
        if not begun.cancelled():
            begun.result()

    async def stop(self) -> None:
        """Cancel the running round; no other begins."""
        self._ended = True
        if self._round is not None:
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)

    async def _once(self) -> None:
        await self._work()
