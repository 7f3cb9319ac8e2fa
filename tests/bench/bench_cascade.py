"""What a cascade saves and what it loses, on simulated judges whose errors are known.

    python tests/bench/bench_cascade.py [TRACES]

The strong judge is the truth. The small one differs from it in two ways: by noise that changes with the order of the
questions, and by errors that it repeats in every order; its tokens, where they are asked for, show the noise alone.
The evaluator, the doubts, the draw and the estimate are those of the product; only the judges' answers are made up.
Tokens are those of the prompts as they would be sent, prices those of the list. ``agrees`` is the share of verdicts
that are the strong judge's, ``cost`` is that of asking it alone.
The last line of each part is the best that is possible by the small judge's own doubt.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

from rich.console import Console
from rich.table import Table

from sidejudge.integrations.judge.client import TokenPrice
from sidejudge.monitor.alerting.observation import Key, observe
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.monitor.config.evaluators import CascadeSection
from sidejudge.monitor.config.judge_choice import JudgeChoice
from sidejudge.monitor.evaluate.backends import Addressed, Backends, JudgeAccount, plain
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.declared.metric import Sources
from sidejudge.scoring.declared.rubric import declared_rubric
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.questions.question import Answer, Question, Reply
from sidejudge.scoring.result.result import Judgement, Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.verdict import Verdict
from tests.seed_policy import estimate_of

ANSWER_TOKENS = 60
SAMPLES = 7
"""Answers of the small judge by which the best possible cascade knows its doubt."""
STRONG = TokenPrice(input_usd_per_million=2.0, output_usd_per_million=8.0)
SMALL = TokenPrice(input_usd_per_million=0.1, output_usd_per_million=0.4)
AT = "2026-01-01T00:00:00+00:00"
YES_NO = [
    {"id": name, "ask": f"Is the answer {name}?", "answer": "boolean", "weight": weight, "blocker": "disqualify"}
    for name, weight in (("true", 0.4), ("complete", 0.3), ("polite", 0.3))
]
RUBRIC = {
    "grades": RUBRICS["quality"],
    "yes or no": declared_rubric("yes-no", {"metrics": YES_NO, "pass_mark": 0.5}, Sources(rubrics=RUBRICS)),
}
GRADES = ("answer_quality", "factual_correctness", "completeness")


def uniform(*names: object) -> float:
    """A number in (0, 1) that belongs to these names: the same whenever it is asked for."""
    digest = hashlib.sha256("\0".join(map(str, names)).encode()).digest()
    return (int.from_bytes(digest[:7]) + 0.5) / (1 << 56)


def normal(*names: object) -> float:
    return NormalDist().inv_cdf(uniform(*names))


@dataclass(slots=True)
class Simulated:
    """Both judges. ``noise`` changes with order and ``sample``, ``error`` is repeated; ``usd``: what each has cost."""

    noise: float
    error: float
    price: Mapping[str, TokenPrice]
    sample: int = 0
    logprobs: bool = False
    usd: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    outage: None = None

    def can_answer(self, question: Question) -> bool:
        return hasattr(plain(question), "metric") or "Grade" in type(plain(question)).__name__

    def share(self, priority: str) -> float:
        return 1.0

    async def answer(self, case: Case, questions: Sequence[Question], account: JudgeAccount) -> dict[Question, Reply]:
        groups: dict[tuple[str, bool], list[Question]] = {}
        for question in questions:
            addressed = isinstance(question, Addressed)
            groups.setdefault((question.judge if addressed else "default", addressed and question.permuted), []).append(
                question
            )
        replies: dict[Question, Reply] = {}
        for (judge, permuted), asked in groups.items():
            made, _ = requests(case, [plain(each) for each in asked], context_tokens=100_000, permuted=permuted)
            paid = sum(self.price[judge].of(each.prompt_tokens, ANSWER_TOKENS * len(each.questions)) for each in made)
            self.usd[judge] += paid
            self.calls[judge] += len(made)
            judgement = Judgement(judge, "v", cost_usd=paid, call=f"{case.case_id}{judge}{permuted}")
            for question in asked:
                value = self.value(case.case_id, plain(question), judge, permuted=permuted)
                of_this = replace(judgement, certainty=self.certainty(case.case_id, plain(question), judge))
                replies[question] = Answer(value=value, method=Method.JUDGE, judgement=of_this)
        return replies

    def value(self, case: str, question: Question, judge: str, *, permuted: bool) -> object:
        if not hasattr(question, "metric"):
            return {name: self.grade(case, name, judge, permuted=permuted) for name in GRADES} | {"reasoning": "so"}
        name = question.metric
        strong = uniform(case, name, "strong") < 0.93
        if judge == "strong":
            return strong
        if uniform(case, name, "hard") < self.noise:
            return uniform(case, name, permuted, *self._drawn) < 0.5
        return strong ^ (uniform(case, name, "wrong") < self.error)

    def certainty(self, case: str, question: Question, judge: str) -> float | None:
        """What the tokens of the small judge say of its noise, and nothing of the errors that it repeats."""
        if not self.logprobs or judge == "strong" or not hasattr(question, "metric"):
            return None
        return 0.55 if uniform(case, question.metric, "hard") < self.noise else 0.97

    def grade(self, case: str, name: str, judge: str, *, permuted: bool) -> float:
        strong = 0.82 + 0.14 * normal(case, "case") + 0.06 * normal(case, name)
        if judge == "strong":
            return rounded(strong)
        off = self.error * normal(case, name, "error") + self.noise * normal(case, name, permuted, *self._drawn)
        return rounded(strong + 0.02 + off)

    @property
    def _drawn(self) -> tuple[int, ...]:
        return (self.sample,) if self.sample else ()


def rounded(grade: float) -> float:
    return round(min(1.0, max(0.0, grade)) * 20) / 20


def case(number: int) -> Case:
    text = f"Your refund of ${number} is booked and takes {number % 9} days. " * 12
    trace_id = hashlib.sha256(str(number).encode()).hexdigest()[:32]
    return Case(
        case_id=str(number), trace_id=trace_id, input="Where is my refund?",
        expected_outcome=text, model_output=text, transcript=f"Customer: Where is my refund {number}?\n" * 20,
        context=(text,),
    )  # fmt: skip


async def verdicts(
    judges: Simulated, rubric: str, names: tuple[str, ...], policy: CascadeSection, n: int
) -> list[Verdict]:
    made = RUBRIC[rubric]
    choice = JudgeChoice({made.id: names}, cascade=policy)
    evaluator = Evaluator({made.id: made}, None, Backends(order=(judges,), judge=judges, choice=choice))
    found = []
    for number in range(n):
        evaluation = evaluator.open(case(number), [made.id])
        await evaluator.finish(evaluation)
        found += evaluation.verdicts(created_at=AT)
    return found


def ratio(found: Sequence[Verdict]) -> tuple[float, float, float]:
    windows, now = Windows(10**18, max_verdicts=10**6), 0
    for verdict in found:
        key, seen = observe(verdict)
        now = seen.at_ns
        windows.add(key, seen)
    estimate = estimate_of(windows, Key("unknown_service", "unknown", found[0].rubric), now)
    return estimate.pass_ratio, estimate.lower, estimate.upper


async def main(n: int) -> None:
    console = Console(width=150)
    settings = {
        "defaults": CascadeSection(),
        "permuted: false": CascadeSection(permuted=False),
        "margin: 0.05": CascadeSection(margin=0.05),
        "margin: 0.1": CascadeSection(margin=0.1),
        "rate: 0.1": CascadeSection(rate=0.1),
        "logprobs: true": CascadeSection(permuted=False, logprobs=True, rate=0.04),
    }
    prices = {"default": SMALL, "strong": STRONG}
    for rubric, noise, error in (
        ("grades", 0.05, 0.05), ("grades", 0.15, 0.10), ("yes or no", 0.04, 0.01), ("yes or no", 0.10, 0.03),
    ):  # fmt: skip
        truth = Simulated(noise, error, prices)
        strong = await verdicts(truth, rubric, ("strong",), CascadeSection(), n)
        small = await verdicts(Simulated(noise, error, prices), rubric, ("default",), CascadeSection(), n)
        table = Table(
            "cascade", "agrees", "cost (small 1/20)", "cost (small 1/5)", "strong asked", "delivered", "corrected",
            "bounds", box=None,
        )  # fmt: skip
        for name, policy in settings.items():
            judges = Simulated(noise, error, prices, logprobs=policy.logprobs)
            found = await verdicts(judges, rubric, ("default", "strong"), policy, n)
            asked = sum(each.cascade is not None and each.cascade.cause != "sure" for each in found) / n
            whole, few = truth.usd["strong"], judges.usd["default"]
            mended, lower, upper = ratio(found)
            table.add_row(
                name, f"{agreement(strong, found):.1%}", f"{(judges.usd['strong'] + few) / whole:.1%}",
                f"{(judges.usd['strong'] + 4 * few) / whole:.1%}", f"{asked:.1%}", f"{passing(found):.4f}",
                f"{mended:.4f}", f"{lower:.4f} to {upper:.4f}",
            )  # fmt: skip
        console.print(
            f"\n{rubric}, noise {noise:g}, repeated error {error:g}: the small judge alone agrees in "
            f"{agreement(strong, small):.1%} and passes {passing(small):.4f}, the strong one passes "
            f"{passing(strong):.4f} ({n} traces)"
        )
        console.print(table)
        samples = [
            await verdicts(Simulated(noise, error, prices, sample=each), rubric, ("default",), CascadeSection(), n)
            for each in range(SAMPLES)
        ]
        curve = best_possible(strong, samples, SMALL.input_usd_per_million / STRONG.input_usd_per_million)
        console.print("best possible: " + ", ".join(f"{agrees:.1%} at {cost:.0%}" for cost, agrees in curve))


def best_possible(
    strong: Sequence[Verdict], samples: Sequence[Sequence[Verdict]], small_share: float
) -> list[tuple[float, float]]:
    """(cost, agreement) of a cascade that knew how often the small judge contradicts itself, and paid for one answer.

    The strong judge is asked where samples of the small one differ most, the rest is what most of them say: no rule
    that goes by the small judge's own doubt does better. What it is wrong about in every sample it cannot know.
    """
    passed = [[each[place].passed for each in samples] for place in range(len(strong))]
    most = [sum(map(bool, each)) * 2 > len(each) for each in passed]
    doubt = [min(sum(map(bool, each)), len(each) - sum(map(bool, each))) for each in passed]
    order = sorted(range(len(strong)), key=lambda place: -doubt[place])
    found = []
    for cost in (0.10, 0.15, 0.20, 0.25, 0.30, 0.40):
        asked = set(order[: max(0, round((cost - small_share) * len(strong)))])
        right = sum(place in asked or most[place] == each.passed for place, each in enumerate(strong))
        found.append((cost, right / len(strong)))
    return found


def agreement(one: Sequence[Verdict], other: Sequence[Verdict]) -> float:
    return sum(a.passed == b.passed for a, b in zip(one, other, strict=True)) / len(one)


def passing(found: Sequence[Verdict]) -> float:
    return sum(each.passed is True for each in found) / len(found)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
