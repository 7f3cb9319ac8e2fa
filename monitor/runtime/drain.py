"""Drain: the time between SIGTERM and the end of a process whose store ends with it.

Open traces are closed and judged, and deliveries are made, while late requests are still taken. With another monitor
for handovers, only whole traces are judged: a torn one goes to that monitor, which receives the rest of it. Traces that
cannot be judged in time are handed over too; the remaining ones are lost, and the last line of the log counts them.
"""

from __future__ import annotations

import asyncio
from typing import Final

from sidejudge.monitor.config.fleet import DrainSection

from .app import Monitor

_STEP_S: Final = 0.05
_HANDOVER_S: Final = 5.0
"""How much of the timeout is kept for handing over, at most; a quarter of a short one."""


async def drain(monitor: Monitor, hurry: asyncio.Event) -> None:
    """Judge and deliver the rest, where the store ends with the process; ``hurry`` cuts it short."""
    section, peers = monitor.config.drain, monitor.peers
    if section is None or not monitor.judging.started:
        return
    if peers is not None:
        await peers.leaves(hands_over=section.to is not None)
    monitor.handed_over = await Drain(monitor, section, hurry).run()
    if peers is not None and not monitor.outcomes.open:
        await peers.left()


class Drain:
    """One drain. ``hurry`` ends it at once: somebody has asked a second time."""

    def __init__(self, monitor: Monitor, section: DrainSection, hurry: asyncio.Event) -> None:
        self._monitor, self._section, self._hurry = monitor, section, hurry
        self._now = asyncio.get_running_loop().time

    async def run(self) -> int:
        """Drain until nothing is left, or the time is over; how many traces were handed over, to be judged there."""
        monitor, section = self._monitor, self._section
        begun_s = self._now()
        end_s = begun_s + section.timeout.seconds
        reserved_s = min(_HANDOVER_S, section.timeout.seconds / 4) if section.to else 0.0
        monitor.begin_drain()
        await self._judge(begun_s, end_s - reserved_s)
        handed_over = 0
        monitor.refuse()
        if monitor.unfinished() or (section.to and monitor.torn()):
            await monitor.stop_judging()
            if section.to and not self._hurry.is_set():
                handed_over = await monitor.hand_over(end_s)
        await monitor.report()
        while monitor.undelivered() and self._goes_on(end_s):  # noqa: ASYNC110  # the store is asked, which wakes nobody
            await asyncio.sleep(_STEP_S)
        return handed_over

    async def _judge(self, begun_s: float, until_s: float) -> None:
        """Wait until no trace is left to judge and no request comes any more, at most until then."""
        monitor, quiet_s = self._monitor, self._section.quiet.seconds
        refuse_s = begun_s + self._section.timeout.seconds / 2
        seen, last_s, refusing = monitor.requests(), begun_s, False
        while self._goes_on(until_s):
            now_s = self._now()
            if monitor.requests() != seen:
                seen, last_s = monitor.requests(), now_s
            if not refusing and now_s >= refuse_s:  # whoever still sends has another instance to go to
                monitor.refuse()
                refusing = True
            if not monitor.unfinished() and (refusing or now_s - last_s >= quiet_s):
                return
            await asyncio.sleep(_STEP_S)

    def _goes_on(self, until_s: float) -> bool:
        return self._now() < until_s and not self._hurry.is_set()
