"""Which rubric: what each one that ships is for, what it needs, and what it asks of a judge. For people who choose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.result.result import Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.rubric import Rubric

from .library import library

PURPOSES: Mapping[str, str] = {
    "run_health": "any run: did it complete and answer, and how did its tools, steps and calls go",
    "workflow": "runs that have to use certain agents and tools, in an order, with arguments",
    "answer": "question answering under release gates: accuracy, faithfulness, latency, tokens",
    "dimensions": "answers and tests: factual accuracy, completeness, citations",
    "quality": "answers beside a reference: quality, factual correctness, completeness",
    "agent": "conversations of an agent: routing, execution, knowledge, delivery",
    "qa": "call QA: questionnaires that a model filled in about recorded calls (question answering is answer)",
    "entity": "call analysis: keywords and topics that a model found in a call",
    "text": "call analysis: sentiment, intent, highlights, summary and emotion of a call",
    "translation": "translated calls: completeness, meaning, terms, names, facts, fluency",
    "trajectory": "long runs of agents that fit no prompt: goal, errors by step, category and impact",
    "benchmarks": "the standard benchmarks: relevancy, faithfulness, hallucination, consistency and others",
}
_SEEDS = {
    "000": "call-analysis benchmark", "001": "agent conversation evaluation", "002": "answer benchmark",
    "003": "workflow and answer evaluation", "004": "evaluation dimensions",
}  # fmt: skip


BY_WORDS = (
    "words notice figures, names and quotes that are made up; they do not notice invented sentences, swapped roles or "
    "denials, which a judge adds ('sidejudge help lexical')"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """A rubric as somebody chooses it. ``needs`` is empty where traces alone suffice.

    ``without_judge`` says what is noticed of texts without a judge, and what is not; empty where words decide nothing.
    """

    id: str
    purpose: str
    needs: Sequence[str]
    helps: Sequence[str]
    cost: str
    without_judge: str = ""


def choice(rubric: Rubric) -> Choice:
    """What a rubric needs, from what its metrics declare.

    ``needs`` is what a metric of the composite cannot do without; ``helps`` what decides more where it is there.
    """
    weighted = [each.metric for each in rubric.criteria if each.weight]
    metrics = weighted or [each.metric for each in rubric.criteria]
    undefined = " ".join(metric.undefined for metric in metrics)
    only_judge = any(set(metric.methods) == {Method.JUDGE} for metric in metrics)
    used = {method for metric in metrics for method in metric.methods}
    needs = [
        name
        for name, needed in (
            ("scenario", "no scenario" in undefined),
            ("reference", "no expected outcome" in undefined),
            ("judge", only_judge),
            ("embeddings", "no embeddings" in undefined),
        )
        if needed
    ]
    helps = [name for name, method in (("judge", Method.JUDGE), ("embeddings", Method.EMBEDDING)) if method in used]
    asks = "one request to the judge, as a rule" if "judge" in needs else "none"
    if asks == "none" and "judge" in helps:
        asks = "none, or one request where a judge is configured"
    if rubric.id == "trajectory":
        asks = "one request for a short run, a tenth of the run's tokens for a long one, 200,000 at most (`trajectory`)"
    return Choice(
        id=rubric.id, purpose=PURPOSES.get(rubric.id, rubric.title), needs=needs,
        helps=[each for each in helps if each not in needs], cost=asks,
        without_judge=BY_WORDS if {Method.LEXICAL, Method.JUDGE} <= used else "",
    )  # fmt: skip


def choices() -> list[Choice]:
    """The rubrics that ship, in the order in which one would look at them."""
    return [choice(RUBRICS[name]) for name in PURPOSES]


def ready_choices() -> list[Choice]:
    """The ready rubrics: files that are copied and changed."""
    return [_ready(name, each.title, str(each.declared)) for name, each in library().items()]


def _ready(name: str, title: str, declared: str) -> Choice:
    needs = [
        word
        for word, sign in (("reference", "{{expected"), ("context", "{{context"), ("judge", "'ask'"))
        if sign in declared
    ]
    cost = "one request to the judge, as a rule" if "judge" in needs else "none"
    return Choice(id=name, purpose=title, needs=needs, helps=(), cost=cost)


def citation(source: str) -> str:
    """Where a definition comes from, for people: without the chapters that only its authors have.

    >>> citation("seed 000, Task 1, Metric 3; rubrics §3, §9")
    'call-analysis benchmark, Task 1, Metric 3'
    >>> citation("rubrics §10"), citation("RAGAS, faithfulness (Es et al. 2023)")
    ('sidejudge', 'RAGAS, faithfulness (Es et al. 2023)')
    """
    kept = "; ".join(part for part in source.split("; ") if not part.startswith("rubrics §")) or "sidejudge"
    return re.sub(r"seed (\d{3})((,)? ?§[\d., §]+)?", lambda found: _SEEDS.get(found[1], "sidejudge"), kept)
