"""Cascade sums: what a cascade of judges did with the verdicts of a window, as sums that verdicts enter and leave."""

from __future__ import annotations

from typing import Final

from sidejudge.scoring.statistics.estimate import Estimate
from sidejudge.scoring.statistics.sums import ExactSum, ExactSums
from sidejudge.scoring.statistics.two_phase import LEAST_DRAWN, DrawnSums, corrected
from sidejudge.scoring.status.snapshots import CascadeSnapshot
from sidejudge.scoring.verdict.escalation import Escalation, EscalationCause

_COUNTS: Final = (
    *(f"{kind}/{cause.value}" for kind in ("count", "changed") for cause in EscalationCause), "unanswered", "measured",
)  # fmt: skip
_SUMS: Final = (
    "sure", "base", "drawn", "squared", "replaced", "failed_since", "failed_since_squared", "passed_since",
    "passed_since_squared",
)  # fmt: skip
"""The names of the sums. Other monitors read a sum by its place here, which never changes."""


class CascadeSums:
    """Exact sums over the verdicts that passed or failed; ``move`` adds one (``sign`` 1) or removes it (-1)."""

    __slots__ = ("_n", "_sums")

    def __init__(self) -> None:
        self._n = dict.fromkeys(_COUNTS, 0)
        self._sums = {name: ExactSum() for name in _SUMS}

    def move(self, passed: bool | None, weight: float, seen: Escalation, sign: int) -> None:  # noqa: FBT001  # a verdict's
        """Add or remove a verdict of this weight."""
        self._n["unanswered"] += sign * seen.unanswered
        if passed is None:
            return
        cause, before = seen.cause, seen.passed_before
        self._n[f"count/{cause.value}"] += sign
        if before is not None and cause is not EscalationCause.SURE:
            self._n[f"changed/{cause.value}"] += sign * (before != passed)
        if cause is EscalationCause.SURE:
            self._sums["sure"].add(weight, sign)
        elif cause is EscalationCause.DRAWN and before is not None and seen.rate > 0:
            self._n["measured"] += sign
            expanded = weight / seen.rate
            moved = {"sure": weight, "base": weight, "drawn": expanded, "squared": expanded * expanded}
            if before != passed:
                side = "passed_since" if passed else "failed_since"
                moved |= {side: expanded, f"{side}_squared": expanded * expanded}
                moved["replaced"] = -weight if passed else weight
            for name, value in moved.items():
                self._sums[name].add(value, sign)

    def merge(self, other: CascadeSums) -> None:
        """Add all verdicts of ``other``."""
        for name, n in other._n.items():
            self._n[name] += n
        for name, total in other._sums.items():
            self._sums[name].merge(total)

    def write(self, sums: ExactSums) -> None:
        """Add these sums to ``sums``, under names that begin with ``cascade``."""
        sums.count("cascade")
        for name, n in self._n.items():
            sums.count(f"cascade/{name}", n)
        for place, total in enumerate(self._sums.values()):
            sums.put(f"cascade/{place}", total)

    @classmethod
    def read(cls, sums: ExactSums) -> CascadeSums | None:
        """The sums that one or several calls of ``write`` added; None without a cascade."""
        if not sums.n("cascade"):
            return None
        found = cls()
        found._n = {name: sums.n(f"cascade/{name}") for name in _COUNTS}
        for place, total in enumerate(found._sums.values()):
            total.merge(sums.exact(f"cascade/{place}"))
        return found

    @property
    def drawn_sums(self) -> DrawnSums:
        """The sums in the form of the estimator."""
        total = {name: each.value for name, each in self._sums.items()}
        return DrawnSums(
            sure_weight=total["sure"], drawn=self._n["measured"], drawn_base_weight=total["base"],
            drawn_weight=total["drawn"], squared_weight=total["squared"],
            failed_since=(total["failed_since"], total["failed_since_squared"]),
            passed_since=(total["passed_since"], total["passed_since_squared"]),
            replaced=total["replaced"],
        )  # fmt: skip

    def snapshot(self, plain: Estimate | None) -> CascadeSnapshot | None:
        """The changes by the stronger judge; None without a verdict. ``plain`` estimates the delivered verdicts."""
        verdicts = {cause.value: self._n[f"count/{cause.value}"] for cause in EscalationCause}
        if plain is None or not any(verdicts.values()):
            return None
        changed = (EscalationCause.DOUBT, EscalationCause.DRAWN)
        return CascadeSnapshot(
            verdicts=verdicts, changed={cause.value: self._n[f"changed/{cause.value}"] for cause in changed},
            unanswered=self._n["unanswered"], as_delivered=plain.pass_ratio,
            corrected=corrected(plain, self.drawn_sums, least=LEAST_DRAWN) is not None,
        )  # fmt: skip
