"""Trend: the pass ratio over time as a small drawing, between its bounds and over the thresholds.

Where too little is known there is a gap, and a mark below says that there was something. A line is drawn between
neighbours only.
"""

from __future__ import annotations

from itertools import groupby

from scoring.statistics.estimate import Estimate
from scoring.status.status import Thresholds
from scoring.status.trend import Trend

from .html import duration

_WIDTH, _HEIGHT, _PAD = 168, 44, 4
_LEAST_SPAN = 0.3
"""The scale reaches from 1 down to the least that is shown, but never less far than this."""


def trend_drawing(trend: Trend | None, thresholds: Thresholds) -> str:
    """The drawing as SVG with a title that says it in words; a dash where there is no verdict at all."""
    if trend is None or not any(trend.estimates):
        return "–"
    told = trend.told()
    lowest = min([thresholds.critical, 1 - _LEAST_SPAN, *(each.lower for each in told if each is not None)])
    scale = _Scale(len(told), lowest)
    pieces = [
        list(piece) for known, piece in groupby(enumerate(told), lambda item: item[1] is not None) if known
    ]  # fmt: skip
    drawn = "".join(_piece([(at, each) for at, each in piece if each is not None], scale) for piece in pieces)
    thin = "".join(
        f'<line class="thin" x1="{scale.x(at)}" x2="{scale.x(at)}" y1="{_HEIGHT - 4}" y2="{_HEIGHT - 1}"/>'
        for at, (each, all_there_is) in enumerate(zip(told, trend.estimates, strict=True))
        if each is None and all_there_is is not None
    )
    return (
        f'<svg class="trend" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"><title>{_words(trend, told)}</title>'
        f"{_bands(scale, thresholds)}{drawn}{thin}</svg>"
    )


class _Scale:
    """Places of stretches and ratios on the drawing."""

    def __init__(self, steps: int, lowest: float) -> None:
        self._steps, self._lowest = steps, lowest

    def x(self, step: int) -> str:
        return f"{_PAD + (step + 0.5) * (_WIDTH - 2 * _PAD) / self._steps:.1f}"

    def y(self, ratio: float) -> str:
        return f"{_PAD + (1 - ratio) / (1 - self._lowest) * (_HEIGHT - 2 * _PAD - 4):.1f}"


def _bands(scale: _Scale, thresholds: Thresholds) -> str:
    """Below the warning threshold and below the critical one; the lines between."""
    top, bottom = scale.y(thresholds.warning), _HEIGHT - 4
    middle = scale.y(thresholds.critical)
    inner = _WIDTH - 2 * _PAD
    heights = float(middle) - float(top), max(0.0, bottom - float(middle))
    return (
        f'<rect class="band warning" x="{_PAD}" y="{top}" width="{inner}" height="{heights[0]:.1f}"/>'
        f'<rect class="band critical" x="{_PAD}" y="{middle}" width="{inner}" height="{heights[1]:.1f}"/>'
        + "".join(f'<line class="mark" x1="{_PAD}" x2="{_WIDTH - _PAD}" y1="{y}" y2="{y}"/>' for y in (top, middle))
    )


def _piece(points: list[tuple[int, Estimate]], scale: _Scale) -> str:
    """Neighbours: a band between the bounds, a line, and a point where it ends."""
    upper = [f"{scale.x(at)},{scale.y(each.upper)}" for at, each in points]
    lower = [f"{scale.x(at)},{scale.y(each.lower)}" for at, each in reversed(points)]
    line = " ".join(f"{scale.x(at)},{scale.y(each.pass_ratio)}" for at, each in points)
    at, last = points[-1]
    x = scale.x(at)
    bounds = (
        f'<polygon class="span" points="{" ".join(upper + lower)}"/><polyline class="line" points="{line}"/>'
        if len(points) > 1
        else f'<line class="bar" x1="{x}" x2="{x}" y1="{scale.y(last.upper)}" y2="{scale.y(last.lower)}"/>'
    )
    return f'{bounds}<circle class="point" cx="{x}" cy="{scale.y(last.pass_ratio)}" r="2.2"/>'


def _words(trend: Trend, told: list[Estimate | None]) -> str:
    ratios = [each.pass_ratio for each in told if each is not None]
    span = f"last {duration(trend.step_ns * len(told) / 1e9)} in steps of {duration(trend.step_ns / 1e9)}"
    if not ratios:
        return f"{span}: too few verdicts in each to tell"
    gaps = len(told) - len(ratios)
    without = f"; {gaps} of {len(told)} without enough verdicts" if gaps else ""
    ends = f"from {ratios[0]:.1%} to {ratios[-1]:.1%}"
    return f"{span}: {ends}, lowest {min(ratios):.1%}, highest {max(ratios):.1%}{without}"
