"""The policy of seed 004's monitor (the ratio itself, from the first verdict on), and the estimate of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidejudge.scoring.status.status import Policy

if TYPE_CHECKING:
    from sidejudge.monitor.alerting.observation import Key
    from sidejudge.monitor.alerting.watch import KeyWindows
    from sidejudge.scoring.statistics.estimate import Estimate

SEED = Policy(mode="point", min_samples=1, min_failures=0)


def estimate_of(windows: KeyWindows, key: Key, now_ns: int = 0) -> Estimate | None:
    """The pass ratio of a key at a time, as every status states it; windows of a fleet have their own time."""
    return windows.status(key, now_ns, SEED).estimate
