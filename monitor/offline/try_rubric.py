"""Try: one case judged at once by one rubric, each step kept: questions, replies, values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sidejudge.integrations.provider.attempt import JudgeAttempt, JudgeObserver
from sidejudge.monitor.config.judge_choice import ONE_JUDGE
from sidejudge.monitor.evaluate.backends import JudgeAccount, plain
from sidejudge.monitor.evaluate.build import EvaluationBackends
from sidejudge.monitor.evaluate.evaluator import Evaluation
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.questions.question import Question, Reply
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import Verdict

SHOWN_TOKENS = 1_000_000
"""The context for which prompts are shown: large enough that all questions stand in one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Questions that were asked together, the prompts that hold them, and the replies."""

    prompts: tuple[tuple[Mapping[str, str], ...], ...]
    replies: tuple[tuple[Question, Reply | None], ...]


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """A judge's text, and why it could not be used (None: it was)."""

    model: str
    text: str
    failure: str | None


@dataclass(slots=True)
class RawAnswers(JudgeObserver):
    """Keeps judges' texts, as an observer of the backends."""

    seen: list[RawAnswer] = field(default_factory=list)

    def attempted(self, attempt: JudgeAttempt) -> None:
        """Keep the text of a request that is over."""
        text = attempt.completion.text if attempt.completion is not None else ""
        self.seen.append(RawAnswer(attempt.model, text, attempt.failure))


async def try_rubric(
    case: Case, rubric: Rubric, backends: EvaluationBackends, *, created_at: str
) -> tuple[Verdict, Sequence[Round]]:  # fmt: skip
    """Judge a case by the rubric's judges, and return the verdict with the rounds of questions that led to it."""
    others = backends.others
    evaluation = Evaluation(case, [rubric], backends.at_once, choice=ONE_JUDGE if others is None else others.choice)
    account = JudgeAccount()
    rounds: list[Round] = []
    while evaluation.open or (others is not None and evaluation.escalate()):
        questions = evaluation.open
        made, _ = requests(case, list(dict.fromkeys(map(plain, questions))), context_tokens=SHOWN_TOKENS)
        replies: Mapping[Question, Reply] = {}
        if others is not None:
            replies = await others.ask(case, questions, lambda: None, account)
        shown = tuple((plain(question), replies.get(question)) for question in questions)
        rounds.append(Round(prompts=tuple(each.messages for each in made), replies=shown))
        evaluation.give(replies)
    (verdict,) = evaluation.verdicts(created_at=created_at)
    return verdict, rounds
