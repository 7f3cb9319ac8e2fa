"""Late reference snapshot: traces whose reference changed after their spans were let go, at one moment.

Metrics, API and status page show the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

LateReferenceState: TypeAlias = Literal["ok", "waiting", "retrying", "stopped", "off"]
"""All well; too much else waits; waiting helps; only a person can (keys, address, rights); no Langfuse to read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateReferenceSnapshot:
    """``reason`` is why it is not ok, empty when it is.

    ``waiting`` traces are to be read and judged again, the oldest since ``oldest_s`` (s since the epoch, None when none
    does); ``given_up`` of those that are remembered never will be. ``revised`` and ``unchanged`` (judged again, with
    the same verdicts) count since the start, and ``failures`` attempts that came to nothing, by why.
    """

    state: LateReferenceState
    reason: str = ""
    waiting: int = 0
    oldest_s: float | None = None
    given_up: int = 0
    revised: int = 0
    unchanged: int = 0
    failures: tuple[tuple[str, int], ...] = ()
