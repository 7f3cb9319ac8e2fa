"""Silence: since when a service has had no verdict, and why, as far as a monitor knows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_MINUTE_NS, _HOUR_NS = 60 * 10**9, 3_600 * 10**9


class SilenceCause(StrEnum):
    """How far what the service sends still comes."""

    NO_SPANS = "no_spans"
    NONE_SAMPLED = "none_sampled"
    NONE_JUDGED = "none_judged"
    INCOMPLETE = "incomplete"
    UNKNOWN = "unknown"


_SAID: Final = {
    SilenceCause.NO_SPANS: "no spans of it arrive",
    SilenceCause.NONE_SAMPLED: "its spans arrive and none is sampled",
    SilenceCause.NONE_JUDGED: "its traces are sampled and none is judged",
    SilenceCause.INCOMPLETE: "its verdicts are incomplete: none passed or failed",
    SilenceCause.UNKNOWN: "why is not known",
}
PAGES: Final = dict.fromkeys(SilenceCause, "how-to/missing-trace") | {SilenceCause.NONE_SAMPLED: "how-to/sampling"}
"""The page of the documentation that goes on from each cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """No verdict passed or failed since ``since_ns``, in ns since the epoch, and that is not usual at this hour."""

    since_ns: int
    cause: SilenceCause

    def stated(self, now_ns: int) -> str:
        """One short sentence: how long, and why."""
        return f"last verdict {_ago(now_ns - self.since_ns)} ago, which is not usual; {_SAID[self.cause]}"

    @property
    def page(self) -> str:
        """The address of the page in the monitor's own documentation."""
        return f"/help/{PAGES[self.cause]}"


def _ago(ns: int) -> str:
    if ns < 2 * _HOUR_NS:
        return f"{max(1, ns // _MINUTE_NS)} min"
    return f"{ns // _HOUR_NS} h" if ns < 72 * _HOUR_NS else f"{ns // (24 * _HOUR_NS)} days"
