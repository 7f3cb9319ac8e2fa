"""Escalation: the judge of a cascade that a verdict rests on, why, and the result of the judge before it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from sidejudge.scoring.trace.record import record


class EscalationCause(StrEnum):
    """Why a stronger judge was asked, or was not."""

    SURE = "sure"
    """It was not asked: the judge was in no doubt, and the verdict was not drawn."""
    DOUBT = "doubt"
    """The judge before it was in doubt."""
    DRAWN = "drawn"
    """The judge before it was in no doubt; the verdict was drawn at random to measure that judge."""


@record(frozen=True, slots=True, kw_only=True)
class Escalation:
    """How far a verdict went through a cascade.

    ``judge`` names the judge whose answers count, ``why`` the doubt. ``rate`` is the probability with which verdicts
    without doubt are drawn. ``judge_before``, ``passed_before`` and ``composite_before`` (normalised) describe the last
    judge before the one that counts; ``passed_before`` is None where that had no result, ``certainty_before`` is the
    probability of its least certain answer by its tokens, None where unknown. ``unanswered``: a stronger judge was
    asked and gave no answer, so that the one before it counts.
    """

    judge: str
    cause: EscalationCause
    why: str = ""
    rate: float = 0.0
    judge_before: str | None = None
    passed_before: bool | None = None
    composite_before: float | None = None
    unanswered: bool = False
    certainty_before: float | None = None

    def to_json(self) -> dict[str, object]:
        """The field ``cascade`` of a verdict."""
        return {
            "judge": self.judge, "cause": self.cause.value, "why": self.why, "rate": self.rate,
            "judge_before": self.judge_before, "passed_before": self.passed_before,
            "composite_before": self.composite_before, "unanswered": self.unanswered,
            **({} if self.certainty_before is None else {"certainty_before": self.certainty_before}),
        }  # fmt: skip

    @classmethod
    def from_json(cls, stated: Mapping[str, object]) -> Escalation:
        """Read the output of ``to_json``."""
        fields = {name: stated[name] for name in cls.__dataclass_fields__ if name in stated}
        return cls(**{**fields, "cause": EscalationCause(str(stated["cause"]))})  # type: ignore[arg-type]  # our own JSON


def escalation_text(stated: object) -> str:
    """The field ``cascade`` of a verdict in one sentence; empty without one."""
    if not isinstance(stated, Mapping):
        return ""
    judge, before = stated.get("judge"), stated.get("judge_before")
    if stated.get("unanswered"):
        return f"the judge {judge} decided; a stronger one was asked and gave no answer"
    if stated.get("cause") == EscalationCause.SURE:
        return f"the judge {judge} decided: it was in no doubt, and the trace was not drawn"
    passed = stated.get("passed_before")
    result = "nothing" if passed is None else "pass" if passed else "fail"
    why = str(stated.get("why") or "it was in doubt")
    if stated.get("cause") == EscalationCause.DRAWN:
        why = f"the trace was drawn, as {float(stated.get('rate') or 0):g} of those without doubt are"
    return f"the judge {judge} decided; {before} gave {result} before: {why}"
