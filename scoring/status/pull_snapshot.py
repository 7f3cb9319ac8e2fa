"""Pull snapshot: how far reading traces out of Langfuse has come, at one moment.

Metrics, API and status page show the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PullState: TypeAlias = Literal["starting", "ok", "waiting", "retrying", "stopped"]
"""Not read yet; all well; too much waits for judging; waiting helps; only a person can (keys, address, rights)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSnapshot:
    """The one source that is read. ``reason`` is why it is not ok, empty when it is.

    ``server`` names what answers there, ``project`` whose traces they are, ``reads`` by which interface, once known.
    ``pending`` traces were seen and are not whole yet, or have not been read. ``lag_s`` is for how long, in s, what is
    there has not been listed, or what is whole has not been read; None until the first reading succeeded.
    ``read_s`` is when it was last read without an error, s since the epoch. ``rows``, ``taken`` (traces) and ``errors``
    (by reason) count since the start.
    """

    state: PullState
    reason: str = ""
    server: str | None = None
    project: str | None = None
    reads: Literal["v2", "legacy"] | None = None
    pending: int = 0
    lag_s: float | None = None
    read_s: float | None = None
    rows: int = 0
    taken: int = 0
    errors: tuple[tuple[str, int], ...] = ()
