"""The goals at 50 verdicts an hour, each beside a plain threshold, burn rates and an EWMA on the same verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from months import HOUR_NS, Months, Traffic, adaptive_force, beginnings, bound_levels, drawn, followed, looks
from simulated import ADAPTIVE, PLAIN

PER_HOUR, MONTHS = 50.0, 100
_BATCH = 50
_BURNS = ((14.4, 1.0, 1 / 12, 5), (6.0, 6.0, 0.5, 10), (1.0, 72.0, 6.0, 20))
"""Factor, both windows in hours, least failures: as the rules for Prometheus have them."""
_LAMBDA, _EWMA_LIMIT = 0.01, 0.81
"""An EWMA of the last hundred verdicts or so; at 0.90 it alarms falsely about as rarely as the default."""
DECAY_FROM_H, CROSSED_H = 240.0, 240.0 + 240.0 * 0.11 / 0.16

Forces = dict[str, np.ndarray]


def batches(hours: float, *, seed: int, ratio: Callable[[np.ndarray], np.ndarray], count: int = MONTHS
            ) -> Iterator[Months]:  # fmt: skip
    """Months whose pass ratio is a function of the hour."""
    for number in range(0, count, _BATCH):
        rng = np.random.default_rng([seed, number])
        months = drawn(rng, Traffic(per_hour=PER_HOUR), months=_BATCH, hours=hours, good=0.5)
        passed = rng.random(months.passed.shape) < ratio(np.minimum(months.at_h, hours))
        yield replace(months, passed=passed)


def forces(months: Months) -> Forces:
    """(looks, months) by method: 0 calm, 1 warning, 2 critical; of the default also -1."""
    times_h = looks(ADAPTIVE, months)
    plain = np.stack(list(bound_levels(PLAIN, months, times_h)), axis=1)
    return {
        "default": adaptive_force(ADAPTIVE, months, times_h), "plain threshold": np.maximum(plain, 0),
        "burn rates": _burning(months, times_h), "EWMA": _ewma(months, times_h),
    }  # fmt: skip


def _burning(months: Months, times_h: np.ndarray) -> np.ndarray:
    found = np.zeros((len(times_h), len(months.at_h)), int)
    for month, (at, passed) in enumerate(zip(months.at_h, months.passed, strict=True)):
        failed = np.concatenate([[0], np.cumsum(~passed & np.isfinite(at))])
        end = np.searchsorted(at, times_h, side="right")
        for factor, long, short, least in _BURNS:
            limit, holds = min(0.9, factor * 0.15), np.ones(len(times_h), bool)
            for window in (long, short):
                begin = np.searchsorted(at, times_h - window, side="right")
                lost = failed[end] - failed[begin]
                holds &= lost > limit * np.maximum(1, end - begin)
                if window == long:
                    holds &= lost >= least
            found[:, month] |= holds
    return found


def _ewma(months: Months, times_h: np.ndarray) -> np.ndarray:
    rows, n = months.passed.shape
    mean, after = np.full(rows, 0.9), np.empty((n, rows), bool)
    for k in range(n):
        mean = np.where(np.isfinite(months.at_h[:, k]), mean + _LAMBDA * (months.passed[:, k] - mean), mean)
        after[k] = mean < _EWMA_LIMIT
    place = np.stack([np.maximum(0, np.searchsorted(at, times_h, side="right") - 1) for at in months.at_h], axis=1)
    return np.take_along_axis(after, place, axis=0).astype(int)


def first_h(force: np.ndarray, times_h: np.ndarray, from_h: float, least: int = 1) -> np.ndarray:
    """The hour of each month's first look at that level or worse since an hour; infinite without one."""
    hit = (force >= least) & (times_h[:, None] >= from_h)
    return np.where(hit.any(axis=0), times_h[hit.argmax(axis=0)], np.inf)


def begun(force: np.ndarray, least: int = 1) -> int:
    """How many alarms begin in all months."""
    known = np.where(force < 0, -1, (force >= least).astype(int))
    return sum(len(beginnings(column)) for column in known.T)


def count_within(hours: np.ndarray, limit_h: float) -> tuple[int, int]:
    return int((hours <= limit_h).sum()), len(hours)


def early_h(months: Months, from_h: float) -> np.ndarray:
    """The hour of each month's first early warning of change since an hour."""
    per_window = PER_HOUR * ADAPTIVE.window_ns / HOUR_NS
    early = followed(ADAPTIVE, months, per_window).early
    hit = early & (from_h <= months.at_h.T) & np.isfinite(months.at_h.T)
    place = hit.argmax(axis=0)
    return np.where(hit.any(axis=0), np.take_along_axis(months.at_h, place[:, None], axis=1)[:, 0], np.inf)
