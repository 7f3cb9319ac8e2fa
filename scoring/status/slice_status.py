"""Slice status: a part of a service's traffic, such as a tenant or a version, beside all the rest of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sidejudge.scoring.statistics.estimate import Estimate

RELEASED: Final = ("version", "prompt", "model")
"""What is released: one is worse than the others, whatever it passes. Of anything else the level counts."""
OTHERS: Final = "__other__"
"""The value of all that are too many to be kept apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceStatus:
    """The traffic that has ``value`` in the dimension ``by``. The value comes from traces: escape it.

    ``estimate`` is of its verdicts within the window, ``others`` of all others then; both as verdicts were first.
    ``worse``: its alert is raised. ``share`` is how far it is from that, 1 at the limit, ``since_ns`` since when it
    seems to be so.
    """

    by: str
    value: str
    estimate: Estimate | None
    others: Estimate | None
    worse: bool = False
    share: float = 0.0
    since_ns: int | None = None

    @property
    def stated(self) -> str:
        """Both figures in short, without what the traffic is called."""
        rest = "" if self.others is None else f", others {self.others.pass_ratio:.2f} (n = {self.others.n:,})"
        if self.estimate is None:
            return f"no verdict{rest}"
        return f"{self.estimate.pass_ratio:.2f} pass (n = {self.estimate.n:,}){rest}"
