"""Judge report: a judge's answers to golden questions come in; how good it is and what is wrong with it go out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from sidejudge.scoring.judging.beside import Compared, compared
from sidejudge.scoring.judging.golden import TRAPS, Facts, GoldenQuestion, Trap, is_right, stable
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.descriptive import p50, p95
from sidejudge.scoring.statistics.paired import sign_test

from .calibrated import ErrorRate, error_rate
from .judge_leaning import FEW, Error, JudgeLeaning, Rate, judge_leaning

MAX_UNANSWERED: Final = 0.01
"""Share of questions without an answer that a monitor can live with."""
MIN_PARSED: Final = 0.90
"""Below it, asking again costs more than a tenth of the calls."""
MIN_ACCURACY: Final = 0.80
MIN_SAME: Final = 0.90
FALSE_ALARM: Final = 0.05
"""Chance of calling an unbiased judge biased, over all traps together (Bonferroni)."""
Given: TypeAlias = Facts | str
"""The facts of an answer, or the reason why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenAnswer:
    """A judge's answers to one question, one for each repeat."""

    question: GoldenQuestion
    given: tuple[Given, ...]

    @property
    def first(self) -> Facts | None:
        """The facts of the first answer; None where there is none."""
        return None if not self.given or isinstance(self.given[0], str) else self.given[0]

    @property
    def right(self) -> bool | None:
        """Whether the first answer is right; None where there is none."""
        return None if self.first is None else is_right(self.question.right, self.first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The cost of the answers. ``invalid`` answers were asked again; ``repaired`` of them were valid then.

    ``seconds`` and ``usd`` are by case; ``usd`` lacks cases without a known price.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    invalid: int = 0
    repaired: int = 0
    seconds: tuple[float, ...] = ()
    usd: tuple[float, ...] = ()
    unpriced: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """Pairs of a question with and without a trap, both answered: what the trap made ``worse`` and ``better``.

    ``p`` is the chance of a split at least this uneven if the trap has no effect.
    """

    trap: Trap
    pairs: int
    worse: int
    better: int
    p: float

    @property
    def biased(self) -> bool:
        """Whether chance does not explain it, with ``FALSE_ALARM`` shared by all traps."""
        return self.p <= FALSE_ALARM / len(TRAPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReport:
    """One judge's results. Rates are in [0, 1]; except ``answered``, ``parsed`` and ``repaired``, of the first repeat.

    ``parsed``: answers that were valid at once; ``repaired``: the share of the others that were valid when asked again.
    ``same``: questions with the same answer in every repeat. ``leaning``: in which direction answers are wrong.
    ``latency_s`` holds p50 and p95 by case.
    """

    judge: str
    repeats: int
    questions: int
    cases: int
    answered: Rate
    parsed: Rate
    repaired: Rate
    accuracy: Rate
    same: Rate
    metrics: Mapping[str, Rate]
    leaning: JudgeLeaning
    biases: tuple[Bias, ...]
    effort: Effort
    usd_per_case: float | None
    latency_s: tuple[float | None, float | None]
    reasons: Mapping[str, int]
    answers: tuple[GoldenAnswer, ...]
    findings: tuple[str, ...] = field(default=())

    @property
    def usd(self) -> float | None:
        """US dollars of all questions; None where a price is unknown."""
        return None if self.effort.unpriced else sum(self.effort.usd)

    @property
    def wrong(self) -> tuple[GoldenAnswer, ...]:
        """The questions whose first answer is wrong."""
        return tuple(one for one in self.answers if one.right is False)

    def to_json(self) -> dict[str, object]:
        """As JSON; an unknown figure is a null ``value`` with its ``reason``."""
        rates = {name: _json(getattr(self, name)) for name in ("answered", "parsed", "repaired", "accuracy", "same")}
        return {
            "judge": self.judge, "repeats": self.repeats, "questions": self.questions, "cases": self.cases, **rates,
            "metrics": {name: _json(rate) for name, rate in self.metrics.items()},
            **{name: _json(rate) for name, rate in self.leaning.rates().items()},
            **{name: _json(error) for name, error in self.leaning.errors().items()},
            "confusion": {right: dict(given) for right, given in self.leaning.confusion.items()},
            "by_direction": {
                name: {"too_much": list(much), "too_little": list(little)}
                for name, (much, little) in self.leaning.by_metric.items()
            },
            "traps": {
                each.trap: {"pairs": each.pairs, "worse": each.worse, "better": each.better, "p": each.p}
                for each in self.biases
            },
            "requests": self.effort.requests, "input_tokens": self.effort.input_tokens,
            "output_tokens": self.effort.output_tokens, "usd_per_case": self.usd_per_case,
            "latency_p50_s": self.latency_s[0], "latency_p95_s": self.latency_s[1],
            "unanswered": dict(self.reasons),
            "wrong": [
                {"question": one.question.name, "metric": one.question.metric, "right": dict(one.question.right),
                 "given": dict(one.first or {})}
                for one in self.wrong
            ],
            "findings": list(self.findings),
        }  # fmt: skip


def judge_report(
    judge: str,
    answers: Sequence[GoldenAnswer],
    effort: Effort,
    *,
    cases: int,
    timeout_s: float,
    min_accuracy: float = MIN_ACCURACY,
) -> JudgeReport:
    """The report on one judge.

    Args:
        judge: its name.
        answers: one for each question, all with the same number of repeats.
        effort: of all repeats.
        cases: of one repeat.
        timeout_s: of one attempt, as configured; half of it is slow.
        min_accuracy: in [0, 1]; a lower rate, over all or in one direction, is a finding.
    """
    every = [given for answer in answers for given in answer.given]
    unanswered = Counter(given for given in every if isinstance(given, str))
    valid_at_once = len(every) - unanswered.total() - effort.repaired
    graded = [answer for answer in answers if answer.right is not None]
    by_metric: dict[str, list[bool]] = {}
    for answer in answers:
        known = by_metric.setdefault(answer.question.metric, [])
        if answer.right is not None:
            known.append(answer.right)
    leanings: dict[str, list[Compared]] = {}
    for answer in answers:
        if answer.first is not None:
            leanings.setdefault(answer.question.metric, []).extend(compared(answer.question, answer.first))
    repeated = [one.given for one in answers if len(one.given) > 1 and not any(isinstance(g, str) for g in one.given)]
    report = JudgeReport(
        judge=judge,
        repeats=max((len(answer.given) for answer in answers), default=0),
        questions=len(answers),
        cases=cases,
        answered=error_rate(len(every) - unanswered.total(), len(every), "nothing was asked"),
        parsed=error_rate(valid_at_once, valid_at_once + effort.invalid, "nothing was answered"),
        repaired=error_rate(effort.repaired, effort.invalid, "no answer had to be asked for again"),
        accuracy=error_rate(sum(bool(one.right) for one in graded), len(graded), "nothing was answered"),
        same=error_rate(sum(_same(given) for given in repeated), len(repeated), "nothing was answered twice"),
        metrics={name: error_rate(sum(known), len(known), "nothing was answered") for name, known in by_metric.items()},
        leaning=judge_leaning(leanings),
        biases=tuple(_bias(trap, answers) for trap in TRAPS),
        effort=effort,
        usd_per_case=sum(effort.usd) / len(effort.usd) if effort.usd and not effort.unpriced else None,
        latency_s=(p50(effort.seconds), p95(effort.seconds)),
        reasons=dict(unanswered.most_common()),
        answers=tuple(answers),
    )
    return _with_findings(report, timeout_s, min_accuracy)


def _bias(trap: Trap, answers: Sequence[GoldenAnswer]) -> Bias:
    by_name = {answer.question.name: answer for answer in answers}
    worse = better = pairs = 0
    for answer in answers:
        if answer.question.trap != trap or answer.question.twin is None:
            continue
        plain, trapped = by_name[answer.question.twin].right, answer.right
        if plain is None or trapped is None:
            continue
        pairs += 1
        worse += plain and not trapped
        better += trapped and not plain
    return Bias(trap=trap, pairs=pairs, worse=worse, better=better, p=sign_test(worse, better))


def _same(given: Sequence[Given]) -> bool:
    first, *others = (stable(one) for one in given if not isinstance(one, str))
    return all(other == first for other in others)


def _with_findings(report: JudgeReport, timeout_s: float, min_accuracy: float) -> JudgeReport:
    found: list[str] = []
    if (short := _below(report.answered, 1 - MAX_UNANSWERED)) is not None:
        why = next(iter(report.reasons), "")
        found.append(f"unreliable: {short:.0%} of the questions have an answer; most often: {why}")
    if (short := _below(report.parsed, MIN_PARSED)) is not None:
        found.append(f"breaks the format: {short:.0%} of the answers are valid at once")
    if (short := _below(report.accuracy, min_accuracy)) is not None:
        found.append(f"wrong: {short:.0%} of the answers are right, {min_accuracy:.0%} are asked for")
    found += report.leaning.findings(min_accuracy)
    found += [
        f"biased by {each.trap}: of {each.pairs} answers it makes {each.worse} wrong and {each.better} right"
        for each in report.biases
        if each.biased
    ]
    if (short := _below(report.same, MIN_SAME)) is not None:
        found.append(f"unstable: {short:.0%} of the answers are the same when asked again")
    if (slow := report.latency_s[1]) is not None and slow > timeout_s / 2:
        found.append(f"slow: p95 of a case is {slow:.1f} s, more than half of the timeout of {timeout_s:g} s")
    return replace(report, findings=tuple(found))


def unproven(report: JudgeReport) -> list[str]:
    """The rates with too few answers, each with their number: that they are good is not shown."""
    leaning = report.leaning
    sides = (("sensitivity", leaning.sensitivity), ("specificity", leaning.specificity))
    if not any(isinstance(rate, ErrorRate) for _, rate in sides) and any(
        not isinstance(of, Unavailable) and of.n >= FEW for of in (leaning.choices, leaning.bias)
    ):
        return []  # nothing that was asked is a yes or no
    return [
        f"{name} ({rate.n:.0f} answers)" if isinstance(rate, ErrorRate) else f"{name} ({rate.reason})"
        for name, rate in sides
        if not isinstance(rate, ErrorRate) or rate.n < FEW
    ]


def _below(rate: Rate, least: float) -> float | None:
    """The rate where it is below the required one; None where it is not, or is unknown."""
    return rate.value if isinstance(rate, ErrorRate) and rate.value < least else None


def _json(rate: Rate | Error) -> dict[str, object]:
    if isinstance(rate, Unavailable):
        return {"value": None, "reason": rate.reason}
    return {"value": rate.value, "lower": rate.lower, "upper": rate.upper, "n": rate.n}
