"""In flight: a case whose judge fails in passing is begun again, and its verdict tells what all of it cost."""

from __future__ import annotations

from sidejudge.monitor.evaluate.backends import OUTAGE, Backends
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.monitor.offline.score.chunks import finish
from sidejudge.monitor.offline.score.request import Waits
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.metrics.settle import settle
from sidejudge.scoring.questions.kinds import GradeAnswer
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Judgement, Method, Scored
from sidejudge.scoring.verdict.rubric import Criterion, Rubric

CASE = Case(case_id="c", model_output="x")


def judged(_case):
    settled = settle((yield (GradeAnswer(),)), bool)
    return Scored(value=1.0, method=Method.JUDGE) if isinstance(settled, tuple) else settled


METRIC = Metric(id="m", title="t", meaning="m", formula="f", source="s", measure=judged)
RUBRIC = Rubric(
    id="r", title="r", source="s", formula="f", criteria=(Criterion(metric=METRIC, weight=1.0),), pass_mark=0.5
)


class FailsTwice:
    outage = None

    def __init__(self):
        self.calls = 0

    async def answer(self, case, questions, account):
        self.calls += 1
        paid = Judgement("m", "p", 0.25, call=str(self.calls))
        if self.calls <= 2:
            return dict.fromkeys(questions, NoAnswer(f"{OUTAGE}: timeout", failed=True, judgement=paid))
        return dict.fromkeys(questions, Answer(value=True, method=Method.JUDGE, judgement=paid))

    def can_answer(self, question):
        return True

    def share(self, priority):
        return 1.0


async def test_the_attempts_that_failed_are_part_of_what_the_verdict_cost():
    judge = FailsTwice()
    evaluator = Evaluator({"r": RUBRIC}, None, Backends(order=(judge,), judge=judge))
    evaluation = await finish(evaluator, lambda: evaluator.open(CASE, ["r"]), Waits(1.0))
    (verdict,) = evaluation.verdicts(created_at="2026-01-01T00:00:00Z")
    reported = verdict.to_json()["judge"]
    assert (verdict.passed, reported["cost_usd"], reported["calls"]) == (True, 0.75, 3)
