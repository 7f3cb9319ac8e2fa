"""Turns: few messages are read at a time, and one that does not come does not hold up the others.

A library that hands over whole messages does not show how much of one has come, so a sender of half a message holds a
turn. While another waits, a turn ends soon: sooner for a connection whose latest message did not come, or that has not
brought one yet. Senders share the turns, each at most half of them. Among one sender's connections, those that wasted
the fewest turns go first, so a good connection passes any number of bad ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

_REMEMBERED: Final = 10_000
"""Connections whose wasted turns are counted."""
_UNPROVEN: Final = 1 / 8
"""Share of a contested turn's time for a connection that did not use its latest turn, or has had none."""
_FORGIVEN: Final = 1 / 4
"""Wasted turns that a message makes up for: a connection that wastes one in five stays behind one that wastes none."""


@dataclass(slots=True)
class _Record:
    wasted: float = 0.0
    proven: bool = False


@dataclass(slots=True, eq=False)
class _Turn:
    sender: bytes
    record: _Record
    granted: asyncio.Event = field(default_factory=asyncio.Event)
    began_s: float = 0.0
    limit: asyncio.Timeout | None = None

    def end_soon(self, contested_s: float) -> None:
        if self.limit is not None and self.limit.when() is None:
            self.limit.reschedule(self.began_s + contested_s * (1 if self.record.proven else _UNPROVEN))


class Turns:
    """``most`` at a time. A turn ends after ``contested_s`` while another waits for it, with ``TimeoutError``."""

    def __init__(self, most: int, contested_s: float) -> None:
        self._most, self._contested_s = most, contested_s
        self._running: list[_Turn] = []
        self._waiting: dict[bytes, dict[_Turn, None]] = {}  # by sender, the one whose turn is next first
        self._records: dict[str, _Record] = {}  # by connection

    @asynccontextmanager
    async def one_of(self, sender: bytes, connection: str) -> AsyncIterator[None]:
        """Wait for a turn of this sender; it lasts until the context ends."""
        turn = _Turn(sender, self._record(connection))
        self._waiting.setdefault(sender, {})[turn] = None
        self._grant()
        try:
            await turn.granted.wait()
            async with asyncio.timeout(None) as turn.limit:
                self._hurry()
                yield
            turn.record.proven = True
            turn.record.wasted = max(0.0, turn.record.wasted - _FORGIVEN)
        except (TimeoutError, asyncio.CancelledError):
            if turn.limit is not None:
                turn.record.proven = False
                turn.record.wasted += 1
            raise
        finally:
            self._leave(turn)
            self._grant()

    def _free(self, sender: bytes) -> bool:
        held = sum(turn.sender == sender for turn in self._running)
        return len(self._running) < self._most and held < self._most // 2

    def _grant(self) -> None:
        """Give the free turns to waiting connections."""
        while (sender := next(filter(self._free, self._waiting), None)) is not None:
            waiting = self._waiting.pop(sender)
            turn = min(waiting, key=lambda each: each.record.wasted)  # the first of those that wasted the fewest
            del waiting[turn]
            if waiting:
                self._waiting[sender] = waiting
            turn.began_s = asyncio.get_running_loop().time()
            turn.granted.set()
            self._running.append(turn)
        self._hurry()

    def _hurry(self) -> None:
        """Let the turns for which others wait end in time."""
        all_of_them = self._waiting and len(self._running) >= self._most
        for turn in self._running:
            if all_of_them or turn.sender in self._waiting:
                turn.end_soon(self._contested_s)

    def _leave(self, turn: _Turn) -> None:
        if turn.granted.is_set():
            self._running.remove(turn)
            return
        del self._waiting[turn.sender][turn]
        if not self._waiting[turn.sender]:
            del self._waiting[turn.sender]

    def _record(self, connection: str) -> _Record:
        record = self._records.pop(connection, None) or _Record()
        if len(self._records) >= _REMEMBERED:
            del self._records[next(iter(self._records))]
        self._records[connection] = record
        return record
