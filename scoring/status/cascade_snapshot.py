"""Cascade snapshot: what a stronger judge changed in the verdicts of a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeSnapshot:
    """Verdicts of one window that went through a cascade of judges.

    ``verdicts`` counts those that passed or failed by why a stronger judge was asked: ``sure`` (it was not), ``doubt``,
    ``drawn``. ``changed`` counts those of them that it turned, from pass to fail or back. ``unanswered`` times it gave
    no answer. ``as_delivered`` is the pass ratio of the verdicts as they are; ``corrected``: whether the estimate of
    the window is the one of the strongest judge, for which 30 verdicts must have been drawn.
    """

    verdicts: Mapping[str, int]
    changed: Mapping[str, int]
    unanswered: int
    as_delivered: float
    corrected: bool
