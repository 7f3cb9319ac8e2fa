"""What a page and ``explain`` say of a verdict's way through a cascade of judges."""

from __future__ import annotations

from typing import Any

import pytest

from sidejudge.scoring.verdict.escalation import Escalation, EscalationCause, escalation_text

STRONG = {"judge": "strong", "judge_before": "cheap"}


@pytest.mark.parametrize(("known", "wanted"), [
    ({"judge": "cheap", "cause": EscalationCause.SURE},
     "the judge cheap decided: it was in no doubt, and the trace was not drawn"),
    ({"judge": "cheap", "cause": EscalationCause.DOUBT, "unanswered": True},
     "the judge cheap decided; a stronger one was asked and gave no answer"),
    ({**STRONG, "cause": EscalationCause.DOUBT, "why": "its panel differs", "passed_before": True},
     "the judge strong decided; cheap gave pass before: its panel differs"),
    ({**STRONG, "cause": EscalationCause.DOUBT, "passed_before": None},
     "the judge strong decided; cheap gave nothing before: it was in doubt"),
    ({**STRONG, "cause": EscalationCause.DRAWN, "rate": 0.05, "passed_before": False},
     "the judge strong decided; cheap gave fail before: the trace was drawn, as 0.05 of those without doubt are"),
])  # fmt: skip
def test_who_decided_and_why_is_one_sentence(known: dict[str, Any], wanted: str) -> None:
    found = Escalation(**known)
    assert escalation_text(found.to_json()) == wanted
    assert Escalation.from_json(found.to_json()) == found


def test_a_verdict_of_one_judge_has_none() -> None:
    assert escalation_text(None) == ""
