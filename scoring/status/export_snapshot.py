"""Export standing: how far scores have come on their way to where they are written back, at one moment.

Metrics, API and status page show the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ExportState: TypeAlias = Literal["starting", "ok", "retrying", "stopped"]
"""Not asked yet; all well; waiting helps; only a person can (keys, address, rights)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSnapshot:
    """One destination. ``reason`` says why it is not ok, empty when it is. Times in s since the epoch, None for never.

    ``server`` names what answers there and ``project`` where scores go to, once known. ``waiting`` scores are not taken
    yet, the oldest since ``oldest_s``; ``unseen`` ones are taken and not seen there yet; ``dead`` ones are given up.
    """

    destination: str
    state: ExportState
    reason: str = ""
    server: str | None = None
    project: str | None = None
    waiting: int = 0
    oldest_s: float | None = None
    unseen: int = 0
    dead: int = 0
    last_success_s: float | None = None
