"""Trend: the pass ratio over time as a small drawing, between its bounds and over the thresholds.

Where too little is known there is a gap, and a mark below shows that there were verdicts. A line is drawn between
neighbours only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from sidejudge.scoring.statistics.estimate import Estimate
from sidejudge.scoring.status.status import Thresholds
from sidejudge.scoring.status.trend import Trend

from .rendering import duration

_WIDTH, _HEIGHT, _PAD = 168, 44, 4
_LEAST_SPAN = 0.3
"""The scale begins at 1 and ends at the lowest shown ratio; it covers this much at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPiece:
    """Neighbouring points: ``line`` goes through the ratios, ``outline`` around their bounds.

    ``x``, ``y``, ``high`` and ``low`` are the last point and its bounds.
    """

    outline: Sequence[str]
    line: Sequence[str]
    x: str
    y: str
    high: str
    low: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendDrawing:
    """A trend in the units of its drawing. ``bands`` are (style, y, height), ``thin`` where too little is known.

    ``changes`` are where another version of the rubric begins. ``levels`` are (y, ratio) and ``times`` (x,
    UTC) of the axes.
    """

    words: str
    bands: Sequence[tuple[str, str, str]]
    pieces: Sequence[TrendPiece]
    thin: Sequence[str]
    changes: Sequence[str]
    levels: Sequence[tuple[str, str]]
    times: Sequence[tuple[str, str]]
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _PAD
    right: int = _WIDTH - _PAD


def trend_drawing(
    trend: Trend | None, thresholds: Thresholds, width: int = _WIDTH, height: int = _HEIGHT
) -> TrendDrawing | None:
    """The drawing, with a description in words; None where there is no verdict at all."""
    if trend is None or not any(trend.estimates):
        return None
    known = trend.reported()
    lowest = min([thresholds.critical, 1 - _LEAST_SPAN, *(each.lower for each in known if each is not None)])
    scale = _Scale(len(known), lowest, width, height)
    runs = [list(run) for is_known, run in groupby(enumerate(known), lambda item: item[1] is not None) if is_known]
    return TrendDrawing(
        words=_words(trend, known),
        bands=_bands(scale, thresholds),
        pieces=[_piece([(at, each) for at, each in run if each is not None], scale) for run in runs],
        thin=[
            scale.x(at)
            for at, (each, estimate) in enumerate(zip(known, trend.estimates, strict=True))
            if each is None and estimate is not None
        ],
        changes=[scale.x(at - 0.5) for at in trend.changes],
        levels=[(scale.y(tenth / 10), f"{tenth * 10} %") for tenth in range(10, 0, -1) if tenth / 10 >= lowest],
        times=[(scale.x(at - 0.5), _when(trend, at)) for at in range(0, len(known) + 1, max(1, len(known) // 6))],
        width=width,
        height=height,
        right=width - _PAD,
    )


class _Scale:
    """Places of stretches and ratios on the drawing."""

    def __init__(self, steps: int, lowest: float, width: int, height: int) -> None:
        self._steps, self._lowest, self._width, self.height = steps, lowest, width, height

    def x(self, step: float) -> str:
        return f"{_PAD + (step + 0.5) * (self._width - 2 * _PAD) / self._steps:.1f}"

    def y(self, ratio: float) -> str:
        return f"{_PAD + (1 - ratio) / (1 - self._lowest) * (self.height - 2 * _PAD - 4):.1f}"


def _bands(scale: _Scale, thresholds: Thresholds) -> list[tuple[str, str, str]]:
    """Below the warning threshold and below the critical one."""
    top, middle = scale.y(thresholds.warning), scale.y(thresholds.critical)
    below = max(0.0, scale.height - 4 - float(middle))
    return [("warning", top, f"{float(middle) - float(top):.1f}"), ("critical", middle, f"{below:.1f}")]


def _piece(points: list[tuple[int, Estimate]], scale: _Scale) -> TrendPiece:
    at, last = points[-1]
    upper = [f"{scale.x(at)},{scale.y(each.upper)}" for at, each in points]
    lower = [f"{scale.x(at)},{scale.y(each.lower)}" for at, each in reversed(points)]
    return TrendPiece(
        outline=upper + lower,
        line=[f"{scale.x(at)},{scale.y(each.pass_ratio)}" for at, each in points],
        x=scale.x(at), y=scale.y(last.pass_ratio), high=scale.y(last.upper), low=scale.y(last.lower),
    )  # fmt: skip


def _when(trend: Trend, step: int) -> str:
    steps = len(trend.estimates)
    at = datetime.fromtimestamp((trend.until_ns - (steps - step) * trend.step_ns) / 1e9, UTC)
    span_s = trend.step_ns * steps / 1e9
    return at.strftime("%H:%M:%S" if span_s < 1800 else "%H:%M" if span_s <= 172_800 else "%m-%d")


def _words(trend: Trend, known: list[Estimate | None]) -> str:
    ratios = [each.pass_ratio for each in known if each is not None]
    span = f"last {duration(trend.step_ns * len(known) / 1e9)} in steps of {duration(trend.step_ns / 1e9)}"
    changed = f"; the rubric changed {_ago(trend)}" if trend.changes else ""
    if trend.unanswered:
        missing = f"{trend.unanswered:,} more traces (an outage or a spent budget)"
        changed = f"; nobody could be asked about {missing}{changed}"
    if not ratios:
        return f"{span}: too few verdicts in each{changed}"
    gaps = len(known) - len(ratios)
    without = f"; {gaps} of {len(known)} without enough verdicts" if gaps else ""
    ends = f"from {ratios[0]:.1%} to {ratios[-1]:.1%}"
    return f"{span}: {ends}, lowest {min(ratios):.1%}, highest {max(ratios):.1%}{without}{changed}"


def _ago(trend: Trend) -> str:
    steps = [len(trend.estimates) - at for at in trend.changes]
    return " and ".join(f"within the last {duration(trend.step_ns * each / 1e9)}" for each in steps[-2:])
