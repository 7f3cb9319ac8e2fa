"""Room: a store that fills up keeps what is old for less long.

With every step the late window and the retention are halved, for this once, until enough is free. The oldest goes
first, and nothing that waits to be judged. What comes late for a trace that was let go early is treated as after the
late window: it is too late, and counted so.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

_log = logging.getLogger("sidejudge.room")

_FULL: Final = 0.8
"""Fullness from which there is too little room."""
_STEPS: Final = 12
"""Halvings: of a day they leave 21 seconds."""


class Filling(Protocol):
    """What making room asks of a store."""

    @property
    def fullness(self) -> float: ...
    async def purge(self, before_ns: int, *, chunks_before_ns: int | None = None) -> None: ...


class Remembering(Protocol):
    """What making room asks of an assembler."""

    def forget(self, closed_before_ns: int) -> None: ...


async def make_room(store: Filling, assembler: Remembering, *, now_ns: int, retention_ns: int, late_ns: int) -> int:
    """Let go of what is oldest until the store is less than 80 % full; how often the times had to be halved.

    Raises ``StoreError`` when the store does not let go.
    """
    steps = 0
    while store.fullness >= _FULL and steps < _STEPS:
        steps += 1
        late, retention = late_ns >> steps, retention_ns >> steps
        # First the assembler: what it remembers must still be held, or half a trace would be judged as a whole one.
        assembler.forget(now_ns - late)
        await store.purge(now_ns - max(late, retention), chunks_before_ns=now_ns - late)
    if steps:
        _log.warning(
            "the store is nearly full; what is old was let go early",
            extra={"kept_for_s": round((retention_ns >> steps) / 1e9), "fullness": round(store.fullness, 2)},
        )
    return steps
