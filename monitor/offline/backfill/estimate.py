"""Estimate: what judging a listing will take, from a few of its traces, before anything is paid for.

Counted are the judge's requests of the first round, by the tokens of prompts as they would be sent and of answers at
their longest; some metrics ask again, depending on what was answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.judge_choice import ONE_JUDGE
from sidejudge.monitor.evaluate.addressed import Addressed, plain
from sidejudge.monitor.evaluate.build import EvaluationBackends, judge_settings
from sidejudge.monitor.evaluate.evaluation import Evaluation
from sidejudge.monitor.route.router import Route, Router
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.questions.question import Question
from sidejudge.scoring.verdict.rubric import Rubric

SAMPLE: Final = 20
"""Traces that an estimate reads at most."""
SESSIONS: Final = 5
"""Sessions that an estimate reads besides; of each as many traces at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEstimate:
    """What judging takes. ``read`` traces were looked at, ``judged`` of them have a rubric.

    ``questions`` for the judge and ``usd`` are those of all ``traces`` and ``sessions``; ``usd`` is None where no price
    is known, and 0 without a judge.
    """

    traces: int
    read: int
    judged: int
    questions: float
    usd: float | None
    sessions: int = 0

    def and_sessions(self, other: WorkEstimate) -> WorkEstimate:
        """Together with what sessions take, which were estimated as traces are."""
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return replace(self, questions=self.questions + other.questions, usd=usd, sessions=other.traces)


async def estimate_work(
    config: Config,
    cases: Sequence[Case],
    traces: int,
    *,
    router: Router,
    rubrics: dict[str, Rubric],
    who: EvaluationBackends,
) -> WorkEstimate:
    """What ``traces`` will take if the others are like these cases."""
    judged, questions, usd = 0, 0, 0.0
    known = True
    for case in cases:
        route = router.route(case)
        if not isinstance(route, Route):
            continue
        judged += 1
        choice = who.others.choice if who.others is not None else ONE_JUDGE
        evaluation = Evaluation(case, [rubrics[name] for name in route.rubrics], who.at_once, choice=choice)
        requested = [
            question for question in evaluation.open if who.judge is not None and who.judge.can_answer(question)
        ]
        if not requested:
            continue
        questions += len(requested)
        cost = await _cost(config, case, requested, who)
        known, usd = known and cost is not None, usd + (cost or 0.0)
    share = traces / len(cases) if cases else 0.0
    return WorkEstimate(
        traces=traces, read=len(cases), judged=judged, questions=questions * share, usd=usd * share if known else None
    )


async def _cost(config: Config, case: Case, requested: Sequence[Question], who: EvaluationBackends) -> float | None:
    from sidejudge.integrations.judge.client import JudgeClient  # noqa: PLC0415  # only with a judge

    if config.evaluators.judge is None or who.library is None:
        return 0.0
    client, first, usd = who.batches or JudgeClient(who.library), judge_settings(config), 0.0
    by_judge: dict[str, list[Question]] = {}
    for question in requested:
        by_judge.setdefault(question.judge if isinstance(question, Addressed) else "", []).append(plain(question))
    for judge, questions in by_judge.items():
        settings = first.others.get(judge, first)
        for model in settings.models:
            price = await client.price(model)
            if price is None:
                return None
            context = settings.context_tokens or await client.context_tokens(model)
            made, _ = requests(case, questions, context_tokens=context)
            usd += sum(price.of(each.prompt_tokens, each.answer_tokens) for each in made)
    return usd
