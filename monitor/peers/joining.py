"""Joining: a trace whose spans came to two monitors is brought together before it is judged.

A balancer sends all spans of a trace to one monitor, until the number of monitors changes: then the rest of an open
trace goes to another one. The rest may look whole, because spans are exported as they end, callers last. So a closed
trace that began before the change waits here until every monitor that may hold spans of it was asked. Where both hold
some, the one with the root keeps the trace, and the other one sends what it has. A monitor that does not answer in time
leaves the trace incomplete, and its verdicts report that.

Spans are taken in and traces are assembled as ever; only closed traces wait. Without a change nothing waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.assembler import Assembler

from .peers import Peer, Peers

_log = logging.getLogger("sidejudge.joining")

_ASKED: Final = 500
"""Traces in one question, at most."""


class Holding(StrEnum):
    """The relation of an asked monitor to a trace; usually none."""

    SENT = "sent"
    """It held spans, and has sent them."""
    KEEPS = "keeps"
    """It holds the trace; the asking monitor must send its spans there."""
    FAILED = "failed"
    """It holds spans, and could not send them."""


class Transport(Protocol):
    """The way to other monitors."""

    async def ask(self, peer: Peer, traces: Mapping[bytes, bool]) -> Mapping[bytes, Holding] | None:
        """What a monitor holds of these traces, each with whether its root is here; None: no answer."""

    async def send(self, peer: Peer, trace_ids: Sequence[bytes]) -> set[bytes]:
        """Send all spans of these traces; return the accepted traces."""

    async def end(self, trace_ids: Sequence[bytes]) -> None:
        """End these traces as handed over."""


@dataclass(slots=True)
class _Held:
    closing: Closing
    since_ns: int
    start_ns: int | None = None


class Joining:
    """Holds closed traces back that may lack spans, and answers the same question of others.

    ``earliest`` returns when the first kept span of each trace began. ``wake`` is called when traces are released.
    """

    def __init__(
        self,
        *,
        name: str,
        assembler: Assembler,
        peers: Peers,
        transport: Transport,
        earliest: Callable[[Sequence[bytes]], Awaitable[Mapping[bytes, int | None]]],
        wait_ns: int,
        longest_ns: int,
        most: int,
        clock_ns: Callable[[], int],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """``longest_ns`` is how long a trace may run, and ``most`` how many wait here."""
        self.name, self.peers = name, peers
        self._assembler, self._transport, self._earliest = assembler, transport, earliest
        self._wait_ns, self._longest_ns, self._most = wait_ns, longest_ns, most
        self._clock, self._wake = clock_ns, wake
        self._held: dict[bytes, _Held] = {}
        self._released: list[Closing] = []
        self._ending = False
        self.more = asyncio.Event()
        """Set when something begins to wait."""

    @property
    def waiting(self) -> int:
        """Closed traces that wait here, or were released and not returned yet."""
        return len(self._held) + len(self._released)

    def admit(self, closings: Sequence[Closing]) -> list[Closing]:
        """Hold back traces that may lack spans; return the others, and those released since the last call."""
        now_ns = self._clock()
        passed = [closing for closing in closings if not self._hold(closing, now_ns)]
        released, self._released = self._released, []
        return [*passed, *released]

    def end(self, *, hands_over: bool) -> None:
        """The process ends: waiting traces go to another monitor, or are judged as incomplete now."""
        self._ending = not hands_over
        if not hands_over:
            self._release(list(self._held.values()), torn=True)

    def _hold(self, closing: Closing, now_ns: int) -> bool:
        if closing.give_up is not None or now_ns > self.peers.changed_ns + self._longest_ns:
            return False
        self._assembler.hold_back(closing.trace_id)
        self._held[closing.trace_id] = held = _Held(closing, now_ns)
        if self._ending or len(self._held) > self._most:
            self._release([held], torn=True)
        else:
            self.more.set()
        return True

    async def round(self) -> None:
        """Ask the other monitors about waiting traces, and release traces that are whole or have waited long enough."""
        self.more.clear()
        try:
            await self._read_starts()
            self._release([held for held in self._held.values() if not self._may_lack(held)])
            if self.peers.met:
                await self._ask_others()
        finally:  # a store or a monitor that fails in every round would hold traces back for ever
            self._give_up_waiting()

    async def _ask_others(self) -> None:
        now_ns = self._clock()
        asked: dict[str, list[_Held]] = {}
        for held in self._held.values():
            for peer in self.peers.holders(held.start_ns or 0, now_ns):
                asked.setdefault(peer.name, []).append(held)
        missing = await self._ask_all(asked)
        self._release([held for held in self._held.values() if held.closing.trace_id not in missing])

    def _may_lack(self, held: _Held) -> bool:
        closing = held.closing
        return held.start_ns is None or self.peers.may_lack(held.start_ns, closing.opened_ns, whole=closing.whole)

    async def _read_starts(self) -> None:
        unread = [trace_id for trace_id, held in self._held.items() if held.start_ns is None]
        if not unread:
            return
        found = await self._earliest(unread)
        for trace_id in unread:
            if (held := self._held.get(trace_id)) is not None:
                held.start_ns = found.get(trace_id) or 0

    async def _ask_all(self, asked: Mapping[str, Sequence[_Held]]) -> set[bytes]:
        """Ask every monitor concerned; return the traces for which an answer is missing."""
        asking = (self._ask(name, several) for name, several in asked.items())
        missing: set[bytes] = set()
        # What one was sending is ended here before another's failure is raised.
        for answer in await asyncio.gather(*asking, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            missing |= answer
        fresh = {held.closing.trace_id for held in self._held.values() if held.start_ns is None}  # held meanwhile
        return missing | fresh

    async def _ask(self, name: str, several: Sequence[_Held]) -> set[bytes]:
        peer = self.peers.named(name)
        missing = {held.closing.trace_id for held in several}
        if peer is None or peer.left_ns is not None:  # what it passed on is on its way, or has come
            return missing
        for at in range(0, len(several), _ASKED):
            wanted = {held.closing.trace_id: self._assembler.has_root(held.closing.trace_id) or False
                      for held in several[at : at + _ASKED]}  # fmt: skip
            answer = await self._transport.ask(peer, wanted)
            if answer is None:
                break
            kept_there = [trace_id for trace_id in wanted if answer.get(trace_id) is Holding.KEEPS]
            gone = await self._give(peer, kept_there) if kept_there and peer.lost_ns is None else set()
            failed = {trace_id for trace_id in wanted if answer.get(trace_id) is Holding.FAILED}
            missing -= wanted.keys() - failed - (set(kept_there) - gone)
        return missing

    async def answer(self, asker: Peer, traces: Mapping[bytes, bool]) -> dict[bytes, Holding]:
        """Answer another monitor's question, and send it the spans of traces that it takes over."""
        known = {trace_id: mine for trace_id in traces if (mine := self._assembler.has_root(trace_id)) is not None}
        yields = [trace_id for trace_id, mine in known.items() if self._yields(trace_id, mine, traces, asker.name)]
        answers = dict.fromkeys(known, Holding.KEEPS)
        if yields:
            sent = await self._give(asker, yields)
            answers |= {trace_id: Holding.SENT if trace_id in sent else Holding.FAILED for trace_id in yields}
        return answers

    def _yields(self, trace_id: bytes, mine: bool, traces: Mapping[bytes, bool], asker: str) -> bool:  # noqa: FBT001  # one of two sides
        if mine is not traces[trace_id]:
            return not mine
        return not self._assembler.is_judged(trace_id) and asker < self.name

    async def _give(self, peer: Peer, trace_ids: Sequence[bytes]) -> set[bytes]:
        """Send traces to a monitor; return the traces that are no longer here, or exist there as well."""
        sizes = {trace_id: self._assembler.size(trace_id) for trace_id in trace_ids}
        sent = await self._transport.send(peer, trace_ids)
        # What came in meanwhile was not sent: such a trace stays, and is asked about again.
        sent = {trace_id for trace_id in sent if self._assembler.size(trace_id) == sizes[trace_id]}
        gone = [trace_id for trace_id in sent if self._assembler.give_away(trace_id)]
        for trace_id in gone:
            self._held.pop(trace_id, None)
        if gone:
            await self._transport.end(gone)
        return sent

    def _release(self, several: Sequence[_Held], *, torn: bool = False) -> None:
        for held in several:
            closing = held.closing
            if self._held.get(closing.trace_id) is not held:
                continue
            del self._held[closing.trace_id]
            if not self._assembler.release(closing.trace_id):
                continue  # spans have come: it is open again, and closes again
            self._released.append(replace(closing, completion="torn") if torn else closing)
        if several:
            self._wake()

    def _give_up_waiting(self) -> None:
        now_ns = self._clock()
        late = [held for held in self._held.values() if held.since_ns + self._wait_ns <= now_ns]
        if late:
            _log.warning(
                "traces may lack spans that another monitor holds, and are judged as incomplete",
                extra={"traces": len(late)},
            )
            self._release(late, torn=True)
