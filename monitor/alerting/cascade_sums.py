"""Cascade sums: sums over a window's verdicts about a cascade of judges, as verdicts come and go."""

from __future__ import annotations

from sidejudge.scoring.statistics.estimate import Estimate
from sidejudge.scoring.statistics.exact_sums import ExactSum, ExactSums
from sidejudge.scoring.statistics.two_phase import LEAST_DRAWN, DrawnSums, corrected
from sidejudge.scoring.status.snapshots import CascadeSnapshot
from sidejudge.scoring.verdict.escalation import Escalation, EscalationCause


class CascadeSums:
    """ExactSums over the verdicts that passed or failed; ``move`` takes one in (1) or out (-1)."""

    __slots__ = (
        "_base", "_changed", "_count", "_drawn", "_failed_since", "_measured", "_passed_since", "_replaced", "_squared",
        "_sure", "_unanswered",
    )  # fmt: skip

    def __init__(self) -> None:
        self._count = dict.fromkeys(EscalationCause, 0)
        self._changed = dict.fromkeys(EscalationCause, 0)
        self._unanswered = self._measured = 0
        self._sure, self._base, self._drawn, self._squared = ExactSum(), ExactSum(), ExactSum(), ExactSum()
        self._failed_since, self._passed_since = (ExactSum(), ExactSum()), (ExactSum(), ExactSum())
        self._replaced = ExactSum()

    def move(self, passed: bool | None, weight: float, seen: Escalation, sign: int) -> None:  # noqa: FBT001  # a verdict's
        """Take a verdict of this weight in, or out again."""
        self._unanswered += sign * seen.unanswered
        if passed is None:
            return
        self._count[seen.cause] += sign
        before = seen.passed_before
        if before is not None and seen.cause is not EscalationCause.SURE:
            self._changed[seen.cause] += sign * (before != passed)
        if seen.cause is EscalationCause.DOUBT:
            return
        if seen.cause is EscalationCause.SURE:
            self._sure.add(weight, sign)
        elif before is not None and seen.rate > 0:
            self._sure.add(weight, sign)
            self._measured += sign
            self._base.add(weight, sign)
            expanded = weight / seen.rate
            self._drawn.add(expanded, sign)
            self._squared.add(expanded * expanded, sign)
            if before != passed:
                once, squared = self._passed_since if passed else self._failed_since
                once.add(expanded, sign)
                squared.add(expanded * expanded, sign)
                self._replaced.add(-weight if passed else weight, sign)

    def merge(self, other: CascadeSums) -> None:
        """Take in all verdicts that another one holds."""
        for cause in EscalationCause:
            self._count[cause] += other._count[cause]
            self._changed[cause] += other._changed[cause]
        self._unanswered += other._unanswered
        self._measured += other._measured
        for mine, theirs in zip(self._sums, other._sums, strict=True):
            mine.merge(theirs)

    def write(self, sums: ExactSums) -> None:
        """Put all that it holds among sums of other things."""
        for cause in EscalationCause:
            sums.count(f"cascade/count/{cause.value}", self._count[cause])
            sums.count(f"cascade/changed/{cause.value}", self._changed[cause])
        sums.count("cascade")
        sums.count("cascade/unanswered", self._unanswered)
        sums.count("cascade/measured", self._measured)
        for place, total in enumerate(self._sums):
            sums.put(f"cascade/{place}", total)

    @classmethod
    def read(cls, sums: ExactSums) -> CascadeSums | None:
        """The sums that one or several calls of ``write`` added; None without a cascade."""
        if not sums.n("cascade"):
            return None
        found = cls()
        for cause in EscalationCause:
            found._count[cause] = sums.n(f"cascade/count/{cause.value}")
            found._changed[cause] = sums.n(f"cascade/changed/{cause.value}")
        found._unanswered, found._measured = sums.n("cascade/unanswered"), sums.n("cascade/measured")
        for place, total in enumerate(found._sums):
            total.merge(sums.exact(f"cascade/{place}"))
        return found

    @property
    def _sums(self) -> tuple[ExactSum, ...]:
        return (
            self._sure, self._base, self._drawn, self._squared, self._replaced,
            *self._failed_since, *self._passed_since,
        )  # fmt: skip

    @property
    def drawn_sums(self) -> DrawnSums:
        """As the estimator takes them."""
        return DrawnSums(
            sure_weight=self._sure.value, drawn=self._measured, drawn_base_weight=self._base.value,
            drawn_weight=self._drawn.value, squared_weight=self._squared.value,
            failed_since=(self._failed_since[0].value, self._failed_since[1].value),
            passed_since=(self._passed_since[0].value, self._passed_since[1].value),
            replaced=self._replaced.value,
        )  # fmt: skip

    def snapshot(self, plain: Estimate | None) -> CascadeSnapshot | None:
        """The changes by the stronger judge; ``plain`` is the estimate of the delivered verdicts."""
        if plain is None or not any(self._count.values()):
            return None
        return CascadeSnapshot(
            verdicts={cause.value: count for cause, count in self._count.items()},
            changed={cause.value: self._changed[cause] for cause in (EscalationCause.DOUBT, EscalationCause.DRAWN)},
            unanswered=self._unanswered,
            as_delivered=plain.pass_ratio,
            corrected=corrected(plain, self.drawn_sums, least=LEAST_DRAWN) is not None,
        )
