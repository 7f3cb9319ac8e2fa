"""A monitor as the main work of a process: event loop, signals, drain, exit.

A drain is the time between SIGTERM and the end of a process whose store ends with it. Open traces are closed and
judged, and deliveries are made, while late requests are still taken. With another monitor for handovers, only whole
traces are judged: a torn one goes to that monitor, which receives the rest of it. Traces that cannot be judged in time
are handed over too; the remaining ones are lost, and the last line of the log counts them.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.monitor.config import Config, Loaded
from sidejudge.monitor.config.fleet import DrainSection
from sidejudge.monitor.runtime.tuning import collect_if_due, collect_rarely, keep_freed_memory, shorten_slices

from .app import Monitor
from .forward_only import ForwardOnly
from .logging import set_up
from .reload import ReadConfig, reload_by

Companion = Callable[[Monitor, Mapping[str, str]], Awaitable[None]]
"""Runs beside a monitor and gets its addresses. The monitor ends when it does."""


@dataclass(frozen=True, slots=True)
class Rereading:
    """How the configuration is read again: the reading that is in force, and the function that reads.

    ``early`` are the SIGHUPs that have come already, perhaps after that reading.
    """

    loaded: Loaded
    read: ReadConfig
    early: Sequence[int] = ()


def run_until_signal(config: Config, beside: Companion, again: Rereading | None = None, *, stay: bool = False) -> None:
    """Run a monitor, and ``beside`` it, until SIGTERM or SIGINT, or until ``beside`` ends or fails.

    SIGHUP has the configuration read ``again``; without that the signal ends the process, as is usual.

    Where requests are forwarded and judging cannot start, they are forwarded all the same, and ``beside`` is left out.
    With ``stay`` the process goes on likewise where nothing is forwarded, and refuses requests.
    Returns, or raises what ``beside`` raised, when everything is closed.
    """
    set_up(config.log.level, config.log.format)
    keep_freed_memory()
    _runner().run(_run(config, beside, again, stay=stay))


def forward_until_signal(config: Config, mistake: str) -> None:
    """Forward requests by ``config`` until SIGTERM or SIGINT; ``mistake`` keeps the configuration out of force."""
    set_up(config.log.level, config.log.format)
    _runner().run(_forward(ForwardOnly(config, mistake, config_valid=False)))


def address_lines(addresses: Mapping[str, str]) -> list[str]:
    """Where a running monitor can be reached, for a terminal: one address a line."""
    api = addresses["api"]
    grpc = [f"  gRPC     {addresses['grpc']}"] if "grpc" in addresses else []
    return [
        f"  OTLP     {addresses['otlp']}/v1/traces",
        *grpc,
        f"  status   {addresses.get('page', api + '/')}",
        f"  metrics  {api}/metrics",
        f"  API      {api}/docs",
    ]


def _runner() -> asyncio.Runner:
    if sys.platform == "win32":
        return asyncio.Runner()
    import uvloop  # noqa: PLC0415 - it exists where signals do

    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def _stop_on_signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Events that the first, and each further, SIGTERM or SIGINT sets; only inside a running loop."""
    stop, hurry, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()

    def asked() -> None:
        (hurry if stop.is_set() else stop).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked)
    return stop, hurry


def _reload_on_signal(
    reload: Callable[[], Awaitable[object]], under_way: set[asyncio.Future[object]], early: Sequence[int]
) -> None:
    """Reload on SIGHUP; a signal that comes during a reload has it done once more, as have ``early`` ones."""

    def begin() -> None:
        task = asyncio.ensure_future(reload())
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, begin)
    if early:
        begin()


async def _forward(forward: ForwardOnly, stop: asyncio.Event | None = None) -> None:
    stop = stop or _stop_on_signals()[0]
    try:
        await forward.start()
        await stop.wait()
    finally:
        await forward.stop()


async def _started(config: Config, stop: asyncio.Event) -> tuple[Monitor, Mapping[str, str]] | None:
    """The monitor and its addresses; None where ``stop`` came while it read what the last run left."""
    monitor = Monitor(config, at_rest=collect_if_due)
    starting, asked = asyncio.ensure_future(monitor.start()), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({starting, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not monitor.is_restored:
            starting.cancel()
        return monitor, await starting
    except BaseException as ended:
        starting.cancel()
        await monitor.stop()
        if stop.is_set() and isinstance(ended, asyncio.CancelledError):
            return None
        raise
    finally:
        asked.cancel()


async def _run(config: Config, beside: Companion, again: Rereading | None, *, stay: bool) -> None:
    stop, hurry = _stop_on_signals()
    shorten_slices()
    try:
        begun = await _started(config, stop)
    except Exception as cause:
        if config.forward is None and not stay:
            raise
        await _forward(ForwardOnly(config, str(cause) or type(cause).__name__, config_valid=True), stop)
        return
    if begun is None:
        return
    monitor, addresses = begun
    companion: asyncio.Future[None] | None = None
    reloads: set[asyncio.Future[object]] = set()
    try:
        if again is not None:
            _reload_on_signal(reload_by(monitor, again.loaded, again.read), reloads, again.early)
        collect_rarely()
        companion = asyncio.ensure_future(beside(monitor, addresses))
        companion.add_done_callback(lambda _: stop.set())
        await stop.wait()
    finally:
        if companion is not None:
            companion.cancel()
        try:
            await drain(monitor, hurry)
        finally:
            await monitor.stop()
    if companion.done() and not companion.cancelled() and (error := companion.exception()):
        raise error


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
