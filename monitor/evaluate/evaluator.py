"""Evaluator: a case and the names of its rubrics → verdicts.

Its evaluation advances the metrics of all rubrics of one case, as far as the available answers allow. It does no I/O
and never waits. The caller puts the ``open`` questions to the backends and passes the replies to ``give``.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from threading import get_ident
from types import GeneratorType
from typing import TypeAlias, TypeVar

from msgspec import structs

from sidejudge.monitor.config.judge_choice import ONE_JUDGE, JudgeChoice
from sidejudge.monitor.config.rubrics import reported_names
from sidejudge.monitor.config.section import DEFAULT_JUDGE
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.questions.question import Answer, NoAnswer, PendingMetrics, Question, Reply, Steps
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.result.result import Failed, Judgement, Result, Scored
from sidejudge.scoring.verdict.outcome import OutcomeMemo, outcome
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import Selection, Verdict, reach_verdict

from .backends import OVER_BUDGET, Addressed, Admit, Backends, JudgeAccount, plain
from .cascade import Climb, climbs

T = TypeVar("T")

JudgementsByMetric: TypeAlias = Mapping[tuple[str, str], tuple[Judgement, ...]]
"""The judge requests made for a metric, by rubric id and metric id."""
NOBODY = NoAnswer(Reason("no evaluator is configured for this question"))
TOO_MUCH = Reason("the case takes more work than evaluators.max_case_cpu allows")
"""Why a metric of a case has failed whose texts take too long."""


_SHORT_S = 0.001
"""A part of the work that took less is counted by the clock: to ask for CPU time costs 30 times as much as to look."""


class _Work:
    """CPU time that the metrics of one case have taken, and whether that is all that they may take.

    It is never counted too low. It is counted too high where others had the processor, by ``_SHORT_S`` a part at most
    while the parts follow each other in one thread.
    """

    __slots__ = ("_began_s", "_cpu_s", "_most_s", "_spent_s", "_thread", "limited", "over")

    def __init__(self, most_s: float) -> None:
        self._most_s, self._spent_s, self._began_s = most_s, 0.0, 0.0
        self.over, self.limited = False, most_s < math.inf
        self._cpu_s, self._thread = (time.thread_time(), get_ident()) if self.limited else (0.0, 0)

    def begin(self) -> None:
        """Count from here. Other cases may have their turn between two such parts."""
        self._began_s = time.perf_counter()

    def count(self) -> None:
        """Count this thread's work since the last call of this or of ``begin``."""
        now_s = time.perf_counter()
        took_s, self._began_s = now_s - self._began_s, now_s
        if took_s >= _SHORT_S and self.limited:
            cpu_s, thread = time.thread_time(), get_ident()
            if thread == self._thread:
                took_s = min(took_s, cpu_s - self._cpu_s)
            self._cpu_s, self._thread = cpu_s, thread
        self._spent_s += took_s
        self.over = self._spent_s > self._most_s


class Evaluation:
    """All metrics of all rubrics of a case, advanced together: a shared question is asked once.

    ``at_once`` answers without waiting (None: no evaluator does). Metrics advance as far as its answers allow before
    the others are asked, so that the remaining questions travel in one request. ``alone``: there are no others: a
    question that ``at_once`` does not answer has no answer, and none is ever open.
    """

    def __init__(
        self,
        case: Case,
        rubrics: Sequence[Rubric],
        at_once: Callable[[Case, Question], Reply] | None,
        memo: OutcomeMemo | None = None,
        max_cpu_s: float = math.inf,
        *,
        choice: JudgeChoice = ONE_JUDGE,
        alone: bool = False,
    ) -> None:
        self.case = case
        self._alone = alone
        self._climbs = climbs(case, rubrics, choice)
        self._first: frozenset[Question] | None = None
        self._work = work = _Work(max_cpu_s)
        self.rubrics = rubrics
        self._at_once = at_once
        self._memo = memo
        self._known: dict[Question, Reply] = {}
        self._passed: dict[Question, NoAnswer] = {}
        self._probability: dict[str, float | None] = {}
        self._earlier: JudgementsByMetric = {}
        self._results: dict[str, dict[str, Result]] = {}
        asking: dict[tuple[str, str], Steps] = {}
        work.begin()
        for rubric in rubrics:
            results = self._results[rubric.id] = {}
            for metric in rubric.metrics:
                if work.over:
                    results[metric.id] = Failed(TOO_MUCH)
                    continue
                begun = metric.start(case)
                if work.limited:
                    work.count()
                if isinstance(begun, GeneratorType):
                    asking[rubric.id, metric.id] = self._bounded(begun, choice.of(rubric.id, metric.id)[0])
                else:
                    results[metric.id] = begun  # type: ignore[assignment]  # all steps are generators of Python's own
        self._evaluation = PendingMetrics(asking)
        self._advance()

    def _bounded(self, steps: Steps, judge: str, *, permuted: bool = False) -> Steps:
        """The same steps, their questions for this judge, until the case has taken all the work that it may take."""
        addressed = judge != DEFAULT_JUDGE or permuted
        return self._each_step(steps, judge, permuted) if addressed or self._work.limited else steps

    def _each_step(self, steps: Steps, judge: str, permuted: bool) -> Steps:  # noqa: FBT001  # called above alone
        replies: Sequence[Reply] | None = None
        while not self._work.over:
            self._work.begin()
            try:
                requested = next(steps) if replies is None else steps.send(replies)
            except StopIteration as done:
                self._work.count()
                result: Result = done.value
                return result
            self._work.count()
            if judge != DEFAULT_JUDGE or permuted:
                requested = tuple(Addressed(each, judge, permuted) for each in requested)
            replies = yield requested
        steps.close()
        return Failed(TOO_MUCH)

    @property
    def open(self) -> tuple[Question, ...]:
        """The questions to ask now, each once, in order of appearance."""
        requested = self._evaluation.questions
        return tuple([q for q in requested if q not in self._known]) if requested and not self.dropped else ()

    @property
    def undecided(self) -> tuple[str, ...]:
        """Ids of the rubrics that wait for answers."""
        waiting = {rubric for rubric, _ in self._evaluation.running}
        return tuple(rubric.id for rubric in self.rubrics if rubric.id in waiting)

    @property
    def failures(self) -> tuple[str, ...]:
        """The reasons of failed replies, except a stronger judge's that the budget does not cover."""
        return tuple(
            reply.reason
            for question, reply in self._known.items()
            if isinstance(reply, NoAnswer)
            and reply.failed
            and (self._first is None or question in self._first or not reply.reason.startswith(OVER_BUDGET))
        )

    @property
    def requested_in_vain(self) -> bool:
        """Whether a judge received a request about the case and gave no answer."""
        return any(isinstance(reply, NoAnswer) and reply.judgement is not None for reply in self._known.values())

    @property
    def dropped(self) -> tuple[str, ...]:
        """Ids of the rubrics without a verdict: the case was not drawn for them."""
        return tuple([rubric for rubric, probability in self._probability.items() if probability is None])

    @property
    def judgements(self) -> JudgementsByMetric:
        """The judge requests so far, by rubric and metric, including those of interrupted evaluations."""
        now = self._evaluation.judgements
        if not now:
            return self._earlier
        return {
            name: tuple(dict.fromkeys((*self._earlier.get(name, ()), *now.get(name, ()))))
            for name in {**self._earlier, **now}
        }

    def resume(self, earlier: JudgementsByMetric) -> None:
        """Take over the ``judgements`` of an evaluation of the case that was interrupted; the verdicts include them."""
        self._earlier = earlier

    def draw(self, probability: float | None) -> None:
        """Set the inclusion probability of the case for the undecided rubrics; None: not drawn, they are dropped.

        Decided rubrics keep the probability of the case.
        """
        self._probability |= dict.fromkeys(self.undecided, probability)

    def escalate(self) -> bool:
        """Without open questions: ask a cascade's next judge where the previous one is in doubt or the case was drawn.

        Returns:
            Whether more is to be asked.
        """
        if self.dropped:
            return False
        more = False
        for rubric in self.rubrics:
            climb = self._climbs.get(rubric.id)
            if climb is None or climb.over:
                continue
            results = self._results[rubric.id] | {
                metric: result for (name, metric), result in self._evaluation.results.items() if name == rubric.id
            }
            run = climb.settle(outcome(rubric, results, {}), results)
            counting = climb.results.items()
            self._evaluation.results.update({(rubric.id, metric): result for metric, result in counting})
            shared = {} if run.permuted else self._resting_on(rubric, climb, run.judges)
            for metric, judge in {**run.judges, **shared}.items():
                more = True
                begun = next(each for each in rubric.metrics if each.id == metric).start(self.case)
                steps = (
                    self._bounded(begun, judge, permuted=run.permuted) if isinstance(begun, GeneratorType) else begun
                )
                self._evaluation.begin((rubric.id, metric), steps)
        if more:
            self._first = self._first if self._first is not None else frozenset(self._known)
            self._advance()
        return more

    def _resting_on(self, rubric: Rubric, climb: Climb, judges: Mapping[str, str]) -> dict[str, str]:
        """Further metrics of a cascade that rest on what a stronger judge is asked anyway: they cost nothing more."""
        if not judges or len(judges) == len(climb.judges):
            return {}
        first = {each.id: self._first_questions(each) for each in rubric.metrics if each.id in climb.judges}
        asked = {question: judge for metric, judge in judges.items() for question in first[metric]}
        found: dict[str, str] = {}
        for metric, questions in first.items():
            answering = {asked.get(question) for question in questions}
            if metric not in judges and len(answering) == 1 and (judge := answering.pop()) in climb.judges[metric]:
                found[metric] = judge
        return found

    def _first_questions(self, metric: Metric) -> tuple[Question, ...]:
        begun = metric.start(self.case)
        if not isinstance(begun, GeneratorType):
            return ()
        questions = tuple(next(begun, ()))
        begun.close()
        return questions

    def withdraw(self) -> None:
        """Drop the rubrics that it was drawn for: the budget could not pay for them."""
        self._probability = dict.fromkeys(self._probability)

    def give(self, replies: Mapping[Question, Reply]) -> None:
        """Answer every open question. A question without a reply has no answer."""
        for question in self.open:
            self._known[question] = replies.get(question) or self._passed.get(question, NOBODY)
        self._advance()

    def _advance(self) -> None:
        moved = True
        while moved and (questions := self._evaluation.questions):
            for question in questions:
                if question not in self._known and question not in self._passed:
                    reply = self._answer(question)
                    if self._alone or isinstance(reply, Answer) or reply.failed:
                        self._known[question] = reply
                    else:
                        self._passed[question] = reply
            moved = self._evaluation.advance(self._known)

    def _answer(self, question: Question) -> Reply:
        """The answer that costs no waiting."""
        if self._at_once is None:
            return NOBODY
        if self._work.over:
            return NoAnswer(TOO_MUCH, failed=True)
        self._work.begin()
        reply = self._at_once(self.case, plain(question))
        self._work.count()
        return reply

    def verdicts(self, *, created_at: str, selection: Selection = "random") -> tuple[Verdict, ...]:
        """A verdict for each rubric that was not dropped, in order. Nothing may be open.

        Args:
            created_at: the verdicts' time, ISO 8601.
            selection: how the trace was drawn.
        """
        requested = self.judgements
        shares = _shares(requested) if requested else {}
        judgements = _by_rubric({name: _apportioned(each, shares) for name, each in requested.items()})
        for (rubric_id, metric), result in self._evaluation.results.items():
            if isinstance(result, Scored) and result.judgements:
                result = structs.replace(result, judgements=_apportioned(result.judgements, shares))  # noqa: PLW2901  # the same result
            self._results[rubric_id][metric] = result
        dropped = self.dropped
        reached = [
            reach_verdict(
                rubric,
                self._as_drawn_for(rubric),
                self._results[rubric.id],
                judgements=judgements.get(rubric.id),
                memo=self._memo,
                created_at=created_at,
                selection=selection,
            )
            for rubric in self.rubrics
            if rubric.id not in dropped
        ]
        return tuple([self._with_escalation(verdict) for verdict in reached])

    def _with_escalation(self, verdict: Verdict) -> Verdict:
        climb = self._climbs.get(verdict.rubric)
        found = climb.escalation() if climb is not None else None
        return verdict if found is None else replace(verdict, cascade=found)

    def _as_drawn_for(self, rubric: Rubric) -> Case:
        probability = self._probability.get(rubric.id)
        return self.case if probability is None else replace(self.case, sampling_probability=probability)


def _shares(requested: JudgementsByMetric) -> Mapping[str, float]:
    """Each metric's share of a call's cost, by call. A call's cost is divided equally among its metrics."""
    metrics = Counter(call for each in requested.values() for call in {judgement.call for judgement in each})
    return {call: 1 / count for call, count in metrics.items()}


def _apportioned(judgements: tuple[Judgement, ...], shares: Mapping[str, float]) -> tuple[Judgement, ...]:
    return tuple(replace(each, share=shares.get(each.call, 1.0)) for each in judgements)


def _by_rubric(by_metric: Mapping[tuple[str, str], T]) -> dict[str, dict[str, T]]:
    found: dict[str, dict[str, T]] = {}
    for (rubric, metric), each in by_metric.items():
        found.setdefault(rubric, {})[metric] = each
    return found


@dataclass
class Evaluator:
    """Advances all metrics of all chosen rubrics of a case together: a question that two of them share is asked once.

    ``at_once`` answers first and without waiting; by default it is the lexical evaluator, which is pure and always
    available. ``others`` get the questions that it leaves open. A metric whose question has no answer is *unavailable*.
    Once the metrics of a case have taken ``max_cpu_s`` seconds of CPU the others of its metrics fail.
    """

    rubrics: Mapping[str, Rubric]
    at_once: Callable[[Case, Question], Reply] | None = lexical.answer
    others: Backends | None = None
    _: KW_ONLY
    max_cpu_s: float = math.inf
    _memo: OutcomeMemo = field(default_factory=OutcomeMemo, init=False)

    def open(self, case: Case, names: Sequence[str]) -> Evaluation:
        """Start an evaluation and answer what ``at_once`` can. A rubric that is named twice is evaluated once.

        Without ``others`` no question stays open.
        """
        rubrics = [self.rubrics[name] for name in dict.fromkeys(names)]
        choice = self.others.choice if self.others is not None else ONE_JUDGE
        alone = self.others is None
        return Evaluation(case, rubrics, self.at_once, self._memo, self.max_cpu_s, choice=choice, alone=alone)

    def reported(self, names: Sequence[str]) -> frozenset[str]:
        """The names of scores that these rubrics take from others."""
        return frozenset(reported_names(self.rubrics[name] for name in names))

    async def finish(
        self, evaluation: Evaluation, admit: Admit = lambda: None, account: JudgeAccount | None = None
    ) -> None:
        """Ask the others, round after round and judge after judge, until nothing is open.

        Metrics advance in the default thread pool.

        Args:
            evaluation: advanced in place.
            admit: called before each round of the judge.
            account: the judge's cost record of the case; None: a new one.
        """
        account = account or JudgeAccount()
        while self.others is not None:
            while questions := evaluation.open:
                replies = await self.others.ask(evaluation.case, questions, admit, account)
                if evaluation.open:  # ``admit`` may have dropped it
                    await asyncio.to_thread(evaluation.give, replies)
            if not await asyncio.to_thread(evaluation.escalate):
                break

    def evaluate(self, case: Case, names: Sequence[str], *, created_at: str) -> tuple[Verdict, ...]:
        """One verdict for each rubric named, in that order, from what ``at_once`` answers."""
        if self.others is None and self.max_cpu_s == math.inf:
            return self._evaluate_alone(case, names, created_at)
        evaluation = self.open(case, names)
        while evaluation.open:
            evaluation.give({})
        return evaluation.verdicts(created_at=created_at)

    def _evaluate_alone(self, case: Case, names: Sequence[str], created_at: str) -> tuple[Verdict, ...]:
        """As ``evaluate``, without waiting and without counting work, which takes a third less time."""
        known: dict[Question, Reply] = {}

        def answer(about: Case, question: Question) -> Reply:
            reply = known.get(question)
            if reply is None:
                reply = known[question] = NOBODY if self.at_once is None else self.at_once(about, question)
            return reply

        return tuple(
            [
                score(case, self.rubrics[name], answer=answer, created_at=created_at, memo=self._memo)
                for name in dict.fromkeys(names)
            ]
        )

    def verdicts(self, case: Case, names: Sequence[str], *, created_at: str) -> tuple[Verdict, ...]:
        """As ``evaluate``; a bug in a metric costs this case its values and does not end the run."""
        try:
            return self.evaluate(case, names, created_at=created_at)
        except Exception as error:  # noqa: BLE001  # every verdict records it
            return self.failed(case, names, error, created_at=created_at)

    def failed(self, case: Case, names: Sequence[str], error: Exception, *, created_at: str) -> tuple[Verdict, ...]:
        """The verdicts on a case whose evaluation raised: every metric has failed."""
        why = Failed(Reason("{kind}: {why}", kind=own(type(error).__name__), why=quoted(str(error))))
        return tuple(
            reach_verdict(rubric, case, {c.metric.id: why for c in rubric.criteria}, created_at=created_at)
            for rubric in (self.rubrics[name] for name in dict.fromkeys(names))
        )
