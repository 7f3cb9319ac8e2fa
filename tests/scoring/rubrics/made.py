"""What a rubric makes of a case, as tests of rubrics look at it: the verdict, a line of it, a result, its value."""

from __future__ import annotations

from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Method, Scored
from sidejudge.scoring.rubrics import RUBRICS

AT = "2026-01-01T00:00:00Z"


def judge(**answers):
    """An answerer by the question's name; a function answers from the question, anything else as it is."""

    def answer(_case, question):
        given = answers.get(type(question).__name__, NoAnswer("not asked"))
        given = given(question) if callable(given) else given
        return given if isinstance(given, NoAnswer) else Answer(value=given, method=Method.JUDGE)

    return answer


class Made:
    """What one rubric makes of cases; words alone answer where a test names nobody."""

    def __init__(self, rubric: str) -> None:
        self.rubric = RUBRICS[rubric]

    def verdict(self, about, answer=lexical.answer):
        return score(about, self.rubric, answer=answer, created_at=AT)

    def line(self, metric, about, answer=lexical.answer):
        """The line of a metric: its result with its rating."""
        return next(line for line in self.verdict(about, answer).scores if line.metric == metric)

    def result(self, metric, about, answer=lexical.answer):
        return self.line(metric, about, answer).result

    def value(self, metric, about, answer=lexical.answer):
        """The value of a metric; the status where it has none."""
        found = self.result(metric, about, answer)
        return found.value if isinstance(found, Scored) else found.status
