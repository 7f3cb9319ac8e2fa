"""Run: configured judges before golden questions, each as often as asked for, within the budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from sidejudge.monitor.config.section import DEFAULT_JUDGE
from sidejudge.monitor.evaluate.judge.judge_backend import JudgeBackend, JudgeStorage
from sidejudge.monitor.evaluate.judge.observer import JudgeAttempt, SilentJudgeObserver
from sidejudge.monitor.evaluate.judge.panel_member import Client
from sidejudge.monitor.evaluate.judge.settings import JudgeSettings
from sidejudge.scoring.judging.golden import GoldenCase, GoldenQuestion, facts
from sidejudge.scoring.questions.question import Answer, Question, Reply
from sidejudge.scoring.runs.judge_report import MIN_ACCURACY, Effort, Given, GoldenAnswer, JudgeReport, judge_report

_CALL: ContextVar[_CaseEffort] = ContextVar("golden case")


@dataclass(slots=True)
class _CaseEffort:
    """What one case took: seconds by model, for the members of a panel are asked at the same time."""

    seconds: dict[str, float] = field(default_factory=dict)
    usd: float = 0.0
    unpriced: bool = False


@dataclass(slots=True)
class _Counting(SilentJudgeObserver):
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    invalid: int = 0
    repaired_answers: int = 0

    def attempted(self, attempt: JudgeAttempt) -> None:
        model, usage = attempt.model, attempt.usage
        self.requests += 1
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        effort = _CALL.get()
        effort.seconds[model] = effort.seconds.get(model, 0.0) + attempt.duration_s
        effort.usd += usage.cost_usd or 0.0
        effort.unpriced |= usage.cost_usd is None and attempt.completion is not None

    def repaired(self, model: str, *, requested: int, answered: int) -> None:  # noqa: ARG002  # the observer's signature
        self.invalid += requested
        self.repaired_answers += answered


def judges(settings: JudgeSettings) -> dict[str, JudgeSettings]:
    """Each configured model alone, and each panel. The budget is that of the default judge, for all of them."""
    found: dict[str, JudgeSettings] = {}
    for name, each in {DEFAULT_JUDGE: settings, **settings.others}.items():
        own = replace(
            each, others={}, cache_entries=0, redaction=settings.redaction,
            budget_usd_per_hour=settings.budget_usd_per_hour, budget_usd_per_day=settings.budget_usd_per_day,
        )  # fmt: skip
        for model in each.models:
            alone = replace(own, models=(model,))
            known = found.setdefault(model.name, alone)
            if known.models != alone.models:  # the same name at another address
                found[f"{model.name} of {name}"] = alone
        if len(each.models) > 1:
            found[f"panel {name}"] = own
    return found


async def try_judge(
    name: str,
    settings: JudgeSettings,
    cases: Sequence[GoldenCase],
    *,
    client: Client,
    memory: JudgeStorage,
    repeats: int,
    min_accuracy: float = MIN_ACCURACY,
    done: Callable[[int], None] = lambda _: None,
) -> JudgeReport:
    """Ask one judge all questions, the questions of a case together, and report what came of it.

    Args:
        name: of the judge, for the report.
        settings: one of ``judges``; its budget holds for what ``memory`` remembers too.
        cases: of the golden set.
        client: sends the requests.
        memory: what was spent, shared by the judges of one run.
        repeats: how often everything is asked; more than once shows how stable the answers are.
        min_accuracy: see ``judge_report``.
        done: is called with the number of questions after each case.
    """
    observer = _Counting()
    backend = JudgeBackend(settings, client=client, memory=memory, observer=observer)
    slots = asyncio.Semaphore(settings.concurrency)
    efforts: list[_CaseEffort] = []

    async def ask(golden: GoldenCase) -> Mapping[Question, Reply]:
        async with slots:
            effort = _CaseEffort()
            _CALL.set(effort)
            replies = await backend.answer(golden.case, [each.question for each in golden.questions])
        if effort.seconds:
            efforts.append(effort)
        done(len(golden.questions))
        return replies

    given: dict[str, list[Given]] = {each.name: [] for golden in cases for each in golden.questions}
    for _ in range(repeats):
        for golden, replies in zip(cases, await asyncio.gather(*map(ask, cases)), strict=True):
            for each in golden.questions:
                given[each.name].append(_given(each, replies))
    panel = len(settings.models) > 1
    counted = Effort(
        requests=observer.requests,
        input_tokens=observer.input_tokens,
        output_tokens=observer.output_tokens,
        # Members of a panel are asked again one by one: the sum is about none of the answers that are compared here.
        invalid=0 if panel else observer.invalid,
        repaired=0 if panel else observer.repaired_answers,
        seconds=tuple(max(each.seconds.values()) for each in efforts),
        usd=tuple(each.usd for each in efforts if not each.unpriced),
        unpriced=sum(each.unpriced for each in efforts),
    )
    answers = [
        GoldenAnswer(question=each, given=tuple(given[each.name])) for golden in cases for each in golden.questions
    ]
    timeout_s = max(model.timeout_s for model in settings.models)
    return judge_report(name, answers, counted, cases=len(cases), timeout_s=timeout_s, min_accuracy=min_accuracy)


def _given(golden: GoldenQuestion, replies: Mapping[Question, Reply]) -> Given:
    reply = replies.get(golden.question)
    if isinstance(reply, Answer):
        return facts(reply.value)
    return reply.reason if reply is not None else "nobody was asked"
