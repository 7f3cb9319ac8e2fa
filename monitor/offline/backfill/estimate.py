"""Estimate: the cost of judging a listing, from a few of its traces, before anything is paid for.

The estimate counts the judge's requests of the first round: the tokens of the real prompts, and answers of the greatest
length. Some metrics ask again, depending on the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.judge_choice import ONE_JUDGE
from sidejudge.monitor.evaluate.backends import Addressed, plain
from sidejudge.monitor.evaluate.build import EvaluationBackends, judge_settings
from sidejudge.monitor.evaluate.evaluator import Evaluation
from sidejudge.monitor.evaluate.judge.panel import JudgeSettings
from sidejudge.monitor.evaluate.judge.panel_member import Client
from sidejudge.monitor.route.router import Route, Router
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.questions.question import Question
from sidejudge.scoring.verdict.rubric import Rubric

SAMPLE: Final = 20
"""The most traces that an estimate reads."""
SESSIONS: Final = 5
"""The most sessions that an estimate reads, each with at most ``SAMPLE`` traces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEstimate:
    """The cost of judging. ``read`` traces were examined, ``judged`` of them have a rubric.

    ``questions`` (for the judge) and ``usd`` are for all ``traces`` and ``sessions``; ``usd`` is None where no price
    is known, and 0 without a judge.
    """

    traces: int
    read: int
    judged: int
    questions: float
    usd: float | None
    sessions: int = 0

    def and_sessions(self, other: WorkEstimate) -> WorkEstimate:
        """The sum with the estimate of sessions."""
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return replace(self, questions=self.questions + other.questions, usd=usd, sessions=other.traces)


async def estimate_work(
    config: Config,
    cases: Sequence[Case],
    traces: int,
    *,
    router: Router,
    rubrics: dict[str, Rubric],
    backends: EvaluationBackends,
) -> WorkEstimate:
    """The cost of judging ``traces`` traces, if all are like these cases."""
    judged, questions, usd = 0, 0, 0.0
    known = True
    for case in cases:
        route = router.route(case)
        if not isinstance(route, Route):
            continue
        judged += 1
        choice = backends.others.choice if backends.others is not None else ONE_JUDGE
        evaluation = Evaluation(case, [rubrics[name] for name in route.rubrics], backends.at_once, choice=choice)
        requested = [
            question
            for question in evaluation.open
            if backends.judge is not None and backends.judge.can_answer(question)
        ]
        if not requested:
            continue
        questions += len(requested)
        cost = await _cost(config, case, requested, backends)
        known, usd = known and cost is not None, usd + (cost or 0.0)
    share = traces / len(cases) if cases else 0.0
    return WorkEstimate(
        traces=traces, read=len(cases), judged=judged, questions=questions * share, usd=usd * share if known else None
    )


async def _cost(
    config: Config, case: Case, requested: Sequence[Question], backends: EvaluationBackends
) -> float | None:
    from sidejudge.integrations.judge.client import JudgeClient  # noqa: PLC0415  # only with a judge

    if config.evaluators.judge is None or backends.library is None:
        return 0.0
    client, first, usd = backends.batches or JudgeClient(backends.library), judge_settings(config), 0.0
    by_judge: dict[str, list[Question]] = {}
    for question in requested:
        by_judge.setdefault(question.judge if isinstance(question, Addressed) else "", []).append(plain(question))
    for judge, questions in by_judge.items():
        paid = await _paid(first.others.get(judge, first), client, case, questions)
        if paid is None:
            return None
        usd += paid
    return usd


async def _paid(
    settings: JudgeSettings, client: Client, case: Case, questions: Sequence[Question], answer_tokens: int | None = None
) -> float | None:
    """The cost in dollars of asking all models of a judge; None without a price.

    ``answer_tokens`` are those of the answer to one question; None: the longest answer that is accepted.
    """
    usd = 0.0
    for model in settings.models:
        price = await client.price(model)
        if price is None:
            return None
        context = settings.section.context_tokens or await client.context_tokens(model)
        made, _ = requests(case, questions, context_tokens=context)
        for each in made:
            written = each.answer_tokens if answer_tokens is None else answer_tokens * len(each.questions)
            usd += price.of(each.prompt_tokens, written)
    return usd


DoubtMethod: TypeAlias = Literal["permuted", "once", "logprobs"]
"""How the doubt of a small judge is measured: by asking twice, once, or by the probabilities of its tokens."""
DOUBTED: Final[Mapping[DoubtMethod, tuple[float, float]]] = {
    "permuted": (0.05, 0.19), "once": (0.0, 0.08), "logprobs": (0.07, 0.23),
}  # fmt: skip
"""Share of verdicts that the small judge of a cascade doubts: least and greatest of simulations with moderate and large
errors, for yes-or-no and graded rubrics (``tests/bench/bench_cascade.py``)."""
AGREES: Final[Mapping[DoubtMethod, tuple[float, float]]] = {
    "permuted": (0.88, 0.98), "once": (0.82, 0.98), "logprobs": (0.90, 0.98),
}  # fmt: skip
"""Share of the cascade's verdicts that agree with the strong judge, in the same simulations."""
_ANSWER: Final = 60
"""Tokens of a usual answer to one question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCost:
    """The cost of judging one trace by one rubric: by the first judge alone (``usd``), and by the strongest alone.

    Amounts are None without a price. ``cascade_usd`` and ``agrees`` are ranges, None where only one judge is named.
    """

    rubric: str
    judges: tuple[str, ...]
    questions: int
    usd: float | None
    strong_usd: float | None
    cascade_usd: tuple[float, float] | None
    agrees: tuple[float, float] | None


async def cost_of_trace(
    config: Config, rubrics: Sequence[Rubric], backends: EvaluationBackends, tokens: int
) -> list[TraceCost]:
    """The cost of judging one trace with this many tokens of contents, for each rubric that asks a judge.

    Counts the requests of the first round: the tokens of the real prompts, and answers of usual length.
    """
    from sidejudge.integrations.judge.client import JudgeClient  # noqa: PLC0415  # only with a judge

    if config.evaluators.judge is None or backends.library is None or backends.judge is None:
        return []
    client, first, case = backends.batches or JudgeClient(backends.library), judge_settings(config), _typical(tokens)
    choice = backends.others.choice if backends.others is not None else ONE_JUDGE
    found: list[TraceCost] = []
    for rubric in rubrics:
        opened = Evaluation(case, [rubric], backends.at_once, choice=choice).open
        questions = list(dict.fromkeys(plain(each) for each in opened if backends.judge.can_answer(each)))
        if not questions:
            continue
        judges = max((choice.of(rubric.id, metric) for metric in rubric.metric_ids), key=len)
        small, strong = [
            await _paid(first.others.get(name, first), client, case, questions, _ANSWER)
            for name in (judges[0], judges[-1])
        ]
        policy, cascade = choice.cascade, None
        method: DoubtMethod = "logprobs" if policy.logprobs else "permuted" if policy.permuted else "once"
        if len(judges) > 1 and small is not None and strong is not None:
            twice = small * (2 if policy.permuted else 1)
            low, high = (twice + (share + (1 - share) * policy.rate) * strong for share in DOUBTED[method])
            cascade = (low, high)
        found.append(
            TraceCost(
                rubric=rubric.id, judges=judges, questions=len(questions), usd=small, strong_usd=strong,
                cascade_usd=cascade, agrees=AGREES[method] if cascade is not None else None,
            )
        )  # fmt: skip
    return found


def _typical(tokens: int) -> Case:
    """A case with this many tokens of contents."""

    def words(share: float) -> str:
        return "lorem ipsum dolor sit amet " * max(1, round(tokens * share / estimate("lorem ipsum dolor sit amet ")))

    return Case(
        case_id="typical", trace_id="0" * 32, input=words(0.1), model_output=words(0.2), context=(words(0.3),),
        transcript=f"user: {words(0.15)}\nassistant: {words(0.15)}", expected_outcome=words(0.1),
    )  # fmt: skip
