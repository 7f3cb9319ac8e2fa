"""Cascade: the outcome of a rubric under one judge comes in; whether a stronger judge is asked, and why, goes out.

A stronger judge is asked only about metrics on which the previous one is in doubt. It is in doubt if it gave no answer,
contradicts plain rules, its panel differs, or its tokens leave doubt; if the composite is near the pass mark, or a
judged value near its blocker; or if the same questions in another order give another verdict. A certain blocker
decides, whatever else is in doubt. A random share of the other verdicts is drawn by the trace's id: the strongest judge
answers all their questions, which measures the weaker judges' errors where they are sure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidejudge.monitor.config.evaluators import CascadeSection
from sidejudge.monitor.config.judge_choice import JudgeChoice
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.question import TOO_LONG
from sidejudge.scoring.result.reason import Kind, Reason
from sidejudge.scoring.result.result import Failed, Result, Scored, Unavailable
from sidejudge.scoring.verdict.escalation import Escalation, EscalationCause
from sidejudge.scoring.verdict.outcome import Outcome
from sidejudge.scoring.verdict.review_reason import JUDGES_DISAGREE, contradicts
from sidejudge.scoring.verdict.rubric import Rubric

from .backends import FILTERED

NO_ANSWER: Final = "it gave no answer"
CONTRADICTS: Final = "it contradicts what is decidable"
DIFFERS: Final = "its panel differs"
UNSURE: Final = "its tokens leave doubt"
NEAR_MARK: Final = "the composite is near the pass mark"
NEAR_BLOCKER: Final = "a value is near its blocker"
OTHER_ORDER: Final = "in another order it answers otherwise"


@dataclass(frozen=True, slots=True)
class Run:
    """The metrics to ask about, each with its judge; none at the end."""

    judges: Mapping[str, str]
    permuted: bool = False


@dataclass(frozen=True, slots=True)
class _Settled:
    """A judge's outcome of the rubric, with its results for the cascade's metrics."""

    judge: str
    outcome: Outcome
    results: Mapping[str, Result]


@dataclass(slots=True, kw_only=True)
class Climb:
    """A rubric of a case on its way through the judges. ``judges`` names each metric's judges, the cheapest first."""

    rubric: Rubric
    judges: Mapping[str, tuple[str, ...]]
    policy: CascadeSection
    drawn: bool
    over: bool = False
    _level: int = 0
    _settled: list[_Settled] = field(default_factory=list)
    _permuting: bool = False
    _cause: EscalationCause = EscalationCause.SURE
    _why: str = ""
    _unanswered: bool = False

    def settle(self, outcome: Outcome, results: Mapping[str, Result]) -> Run:
        """Take the results of the latest run; returns the next run, empty where it is over."""
        own = {metric: results[metric] for metric in self.judges}
        if self._permuting:
            self._permuting = False
            moved = self._moved(outcome, own)
            return self._climb(OTHER_ORDER, moved) if moved else self._sure()
        if not self._settled and not any(map(_is_judged, own.values())):
            return self._stop()
        if self._settled and any(
            is_unanswered(own[metric]) and not is_unanswered(before)
            for metric, before in self._settled[-1].results.items()
        ):
            self._unanswered = True
            return self._stop()
        self._settled.append(_Settled(self._judge, outcome, own))
        if self._level == self._last:
            return self._stop()
        if doubted := doubts(outcome, self.rubric, own, self.policy):
            return self._climb(next(iter(doubted.values())), doubted)
        unmeasured = [metric for metric in self._judged if certainty(own[metric]) is None]
        if self.policy.permuted and unmeasured:  # tokens measure the same doubt, at no cost
            self._permuting = True
            return Run({metric: self._at(metric) for metric in unmeasured}, permuted=True)
        return self._sure()

    @property
    def results(self) -> Mapping[str, Result]:
        """The results that count, of the cascade's metrics; empty where none was judged."""
        return self._settled[-1].results if self._settled else {}

    def escalation(self) -> Escalation | None:
        """How far it went; None where no judge was needed, or none gave an answer."""
        if not self._settled or all(map(is_unanswered, self.results.values())):
            return None
        last = self._settled[-1]
        before = self._settled[-2] if len(self._settled) > 1 else None
        return Escalation(
            judge=last.judge,
            cause=EscalationCause.SURE if self._unanswered and self._cause is EscalationCause.DRAWN else self._cause,
            why=self._why,
            rate=self.policy.rate,
            judge_before=before.judge if before else None,
            passed_before=before.outcome.passed if before else None,
            composite_before=before.outcome.composite_norm if before else None,
            certainty_before=_least_certainty(before.results) if before else None,
            unanswered=self._unanswered,
        )

    @property
    def _last(self) -> int:
        return max(map(len, self.judges.values())) - 1

    @property
    def _judge(self) -> str:
        return next(judges[self._level] for judges in self.judges.values() if len(judges) > self._level)

    @property
    def _judged(self) -> tuple[str, ...]:
        return tuple(metric for metric, result in self._settled[-1].results.items() if _is_judged(result))

    def _at(self, metric: str) -> str:
        return self.judges[metric][min(self._level, len(self.judges[metric]) - 1)]

    def _moved(self, outcome: Outcome, own: Mapping[str, Result]) -> tuple[str, ...]:
        """The metrics whose results in another order changed the verdict; unknown without answers to that order."""
        before = self._settled[-1]
        if any(map(is_unanswered, own.values())):
            return ()
        blocked = {*outcome.blockers}, {*before.outcome.blockers}
        if outcome.passed == before.outcome.passed and (blocked[0] == blocked[1] or blocked[0] & blocked[1]):
            return ()
        return tuple(metric for metric in self._judged if _value(own[metric]) != _value(before.results[metric]))

    def _climb(self, why: str, metrics: Iterable[str]) -> Run:
        self._cause, self._why = EscalationCause.DOUBT, why
        return self._ask(self._level + 1, metrics)

    def _sure(self) -> Run:
        if self._level:
            self._cause = EscalationCause.SURE  # of what the judge in the middle gets wrong nothing is known
        if not self.drawn:
            return self._stop()
        self._cause = EscalationCause.DRAWN
        return self._ask(self._last, self._judged)

    def _ask(self, level: int, metrics: Iterable[str]) -> Run:
        before, self._level = self._level, level
        higher = {m: self._at(m) for m in metrics if min(before, len(self.judges[m]) - 1) < len(self.judges[m]) - 1}
        return Run(higher) if higher else self._stop()

    def _stop(self) -> Run:
        self.over = True
        return Run({})


def climbs(case: Case, rubrics: Sequence[Rubric], choice: JudgeChoice) -> dict[str, Climb]:
    """The rubrics of a case that have a cascade, by id."""
    found: dict[str, Climb] = {}
    for rubric in rubrics if choice.has_cascades else ():
        judges = {metric: choice.of(rubric.id, metric) for metric in rubric.metric_ids}
        cascaded = {metric: names for metric, names in judges.items() if len(names) > 1}
        if cascaded:
            drawn = choice.cascade.draws(case.trace_id or case.case_id)
            policy = choice.cascade if choice.learned is None else choice.learned.policy(rubric.id, choice.cascade)
            found[rubric.id] = Climb(rubric=rubric, judges=cascaded, policy=policy, drawn=drawn)
    return found


def doubts(outcome: Outcome, rubric: Rubric, results: Mapping[str, Result], policy: CascadeSection) -> dict[str, str]:
    """The metrics that the judge that gave these results is in doubt about, each with why; the gravest first.

    Args:
        outcome: of all results of the rubric.
        rubric: the rubric.
        results: those that the judge is asked about.
        policy: the margin around a mark, and the certainty that counts as sure.
    """
    found = {metric: NO_ANSWER for metric, result in results.items() if is_unanswered(result)}
    scored = {metric: result for metric, result in results.items() if isinstance(result, Scored)}
    flags = {metric: {flag for each in result.judgements for flag in each.flags} for metric, result in scored.items()}
    unsure = {
        metric: UNSURE
        for metric, result in scored.items()
        if (sure := certainty(result)) is not None and sure < policy.sure_from
    }
    disputed = (
        {metric: DIFFERS for metric in scored if JUDGES_DISAGREE in flags[metric]}
        | {metric: CONTRADICTS for metric in scored if contradicts(flags[metric])}
        | unsure
        | _near_blockers(rubric, scored, policy.margin)
    )
    decided = any(blocker not in disputed for blocker in outcome.blockers)
    if not decided:
        found |= {metric: why for metric, why in disputed.items() if metric not in found}
        if not found and _near_mark(outcome, rubric, policy.margin):
            judged = {metric: result for metric, result in scored.items() if result.judgements}
            ends = {criterion.metric.id: criterion.metric.bounds for criterion in rubric.criteria}
            # Where each value is the end of its scale, a plain yes or no, nothing lies near anything.
            if any(result.value not in ends[metric] for metric, result in judged.items()):
                found = dict.fromkeys(judged, NEAR_MARK)
    return found


def is_unanswered(result: Result) -> bool:
    """Whether the judge gave no answer where another may: it failed, a filter stopped it, or the case is too long."""
    if isinstance(result, Unavailable) and isinstance(result.reason, Reason):
        words = [part.text for part in result.reason.parts if part.kind is Kind.WORDS]
        return any(f"{FILTERED}: " in text or TOO_LONG in text for text in words)
    return isinstance(result, Failed)


def certainty(result: Result) -> float | None:
    """The probability of the least certain answer of a result, by its tokens; None where one is unknown."""
    known = [each.certainty for each in result.judgements] if isinstance(result, Scored) else []
    return None if not known or None in known else min(each for each in known if each is not None)


def _least_certainty(results: Mapping[str, Result]) -> float | None:
    return min((sure for result in results.values() if (sure := certainty(result)) is not None), default=None)


def _near_mark(outcome: Outcome, rubric: Rubric, margin: float) -> bool:
    mark = rubric.pass_mark
    if outcome.composite is None or mark is None:
        return False
    return abs(outcome.composite - mark) <= margin * rubric.scale + 1e-9


def _near_blockers(rubric: Rubric, scored: Mapping[str, Scored], margin: float) -> dict[str, str]:
    found: dict[str, str] = {}
    for criterion, blocker in rubric.blocking:
        result, (low, high) = scored.get(criterion.metric.id), criterion.metric.bounds
        bound = blocker.below if blocker.below is not None else blocker.above
        if result is None or high is None or bound is None or result.value in (low, high):
            continue  # the end of a scale is a plain yes or no
        if abs(result.value - bound) <= margin * (high - low) + 1e-9:
            found[criterion.metric.id] = NEAR_BLOCKER
    return found


def _value(result: Result) -> float | None:
    return result.value if isinstance(result, Scored) else None


def _is_judged(result: Result) -> bool:
    """Whether a judge was asked for it: it has a judgement, or no answer."""
    return is_unanswered(result) or (isinstance(result, Scored) and bool(result.judgements))
