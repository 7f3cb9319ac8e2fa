"""Catalogue: every metric of every rubric, for people and for programs, and the rubrics as configured.

For people who choose it states the purpose, needs and judge questions of each built-in rubric.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sidejudge.scoring.metrics.judge_metrics import parse_judge_config
from sidejudge.scoring.metrics.reported_score import ReportedMeasure
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.rubrics.agent import agent_rubric
from sidejudge.scoring.rubrics.trajectory import trajectory_rubric
from sidejudge.scoring.runs.final import FINAL, RunScore
from sidejudge.scoring.verdict.rubric import Criterion, Rubric, all_criteria
from sidejudge.scoring.verdict.score import score_name

from . import Config
from .library import library
from .match import MatchSection
from .rubric_section import RubricSection


@dataclass(frozen=True, slots=True)
class Card:
    """A metric's part in one rubric: its meaning, its computation, and its effect on the verdict."""

    rubric: Rubric
    criterion: Criterion

    @property
    def id(self) -> str:
        return self.criterion.metric.id

    @property
    def score_name(self) -> str:
        """The name of its score where verdicts are written back."""
        return score_name(self.rubric.id, self.criterion.metric)

    @property
    def weight(self) -> str:
        """The weight as people read it: a metric may be reported without one, or wait to be selected."""
        if self.criterion in self.rubric.opt_in:
            return "none: it is opt-in, and gets its weight where it is selected"
        return weight_text(self.criterion.weight) if self.criterion.weight else "none: it is reported, not weighed"

    @property
    def bands(self) -> str:
        bands = self.criterion.metric.bands
        return bands.describe() if bands is not None else "-"

    @property
    def blocker(self) -> str:
        blocker = self.criterion.blocker
        if blocker is not None:
            return blocker.describe()
        return "must be 1, else the composite is invalid" if self.criterion.prerequisite else "-"

    @property
    def range(self) -> str:
        return range_text(self.criterion.metric.bounds)

    def to_json(self) -> dict[str, object]:
        metric, criterion = self.criterion.metric, self.criterion
        bands, blocker = metric.bands, criterion.blocker
        return {
            "id": metric.id, "rubric": self.rubric.id, "rubric_version": self.rubric.version,
            "score_name": self.score_name, "title": metric.title, "meaning": metric.meaning, "formula": metric.formula,
            "unit": metric.unit, "bounds": list(metric.bounds), "weight": criterion.weight,
            "bands": None if bands is None else {
                "steps": [list(step) for step in bands.steps], "otherwise": bands.otherwise,
                "higher_is_better": bands.higher_is_better,
            },
            "blocker": None if blocker is None else {
                "effect": blocker.effect.value, "below": blocker.below, "above": blocker.above,
            },
            "prerequisite": criterion.prerequisite, "methods": [method.value for method in metric.methods],
            "undefined": metric.undefined, "source": citation(metric.source),
        }  # fmt: skip


def weight_text(weight: float) -> str:
    """A weight for people, to three digits.

    >>> weight_text(1 / 11), weight_text(0.125), weight_text(1.0)
    ('0.0909', '0.125', '1')
    """
    return f"{weight:.3g}"


def range_text(bounds: tuple[float, float | None]) -> str:
    """``[0, 1]``, or ``[0, ∞)``."""
    low, high = bounds
    return f"[{low:g}, {high:g}]" if high is not None else f"[{low:g}, ∞)"


def run_score_json(score: RunScore) -> dict[str, object]:
    """The card of a score of a run, with the keys that a metric's card has for the same things."""
    return {
        "id": score.id, "rubric": FINAL, "title": score.title, "meaning": score.meaning, "formula": score.formula,
        "unit": score.unit, "bounds": list(score.bounds), "undefined": score.undefined,
        "source": citation(score.source),
        "weights": {name: dict(parts) for name, parts in score.weights.items()},
    }  # fmt: skip


def cards(rubrics: Mapping[str, Rubric] = RUBRICS) -> list[Card]:
    """Every metric in every rubric, those that can be opted in included, in the order of the declarations."""
    return [Card(rubric, criterion) for rubric in rubrics.values() for criterion in all_criteria(rubric)]


def configured(config: Config) -> dict[str, Rubric]:
    """The rubrics with the configuration's changes."""
    changes, embedding = config.rubrics, config.evaluators.embedding
    rubrics = {
        name: _as_selected(rubric, changes[name]).with_overrides(
            pass_mark=changes[name].pass_mark, min_coverage=changes[name].min_coverage
        )
        if name in changes
        else rubric
        for name, rubric in RUBRICS.items()
    }
    rubrics |= config.declared
    if embedding is None:
        return rubrics
    return {name: each.with_embeddings(embedding.in_version) for name, each in rubrics.items()}


def reported_names(rubrics: Iterable[Rubric]) -> tuple[str, ...]:
    """The names of scores that metrics of these rubrics take from others."""
    measures = (criterion.metric.measure for rubric in rubrics for criterion in rubric.criteria)
    return tuple(sorted({each.name for each in measures if isinstance(each, ReportedMeasure)}))


def reached(config: Config) -> dict[str, Rubric]:
    """Those that a route can reach, of traces or of sessions, by name."""
    rubrics = configured(config)
    routed = {name for route in config.routes for name in route.rubrics} or set(rubrics)
    return {name: rubrics[name] for name in sorted(routed | {*config.default_rubrics} | config.session_rubrics)}


def rubrics_of(config: Config, service: str) -> frozenset[str]:
    """Names of all rubrics that a trace of this service may be judged by.

    Routes that name other services are left out, as are those behind a route that takes everything of this service.
    """
    found = {*config.session_rubrics}
    if not config.routes:
        return frozenset(reached(config))
    for route in config.routes:
        of = route.match.service
        if of and not any(fnmatchcase(service, glob) for glob in of):
            continue
        found.update(route.rubrics)
        if route.match.model_copy(update={"service": ()}) == MatchSection():
            return frozenset(found)
    return frozenset(found | {*config.default_rubrics})


def _as_selected(rubric: Rubric, change: RubricSection) -> Rubric:
    """The rubric with the metrics that its judge's configuration selects, and with the judge's budget for a run."""
    if change.trajectory is not None:
        return trajectory_rubric(change.trajectory.budget)
    return rubric if change.judge_config is None else agent_rubric(parse_judge_config(change.judge_config))


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

    ``without_judge`` states what is noticed in texts without a judge, and what is not; empty where words decide
    nothing.
    """

    id: str
    purpose: str
    needs: Sequence[str]
    helps: Sequence[str]
    cost: str
    without_judge: str = ""


def choice(rubric: Rubric) -> Choice:
    """The needs of a rubric, from its metrics' declarations.

    ``needs`` are inputs that a metric of the composite requires; ``helps`` are optional inputs that decide more.
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
    """A definition's source for people, without chapter numbers that only its authors can look up.

    >>> citation("seed 000, Task 1, Metric 3; rubrics §3, §9")
    'call-analysis benchmark, Task 1, Metric 3'
    >>> citation("rubrics §10"), citation("RAGAS, faithfulness (Es et al. 2023)")
    ('sidejudge', 'RAGAS, faithfulness (Es et al. 2023)')
    """
    kept = "; ".join(part for part in source.split("; ") if not part.startswith("rubrics §")) or "sidejudge"
    return re.sub(r"seed (\d{3})((,)? ?§[\d., §]+)?", lambda found: _SEEDS.get(found[1], "sidejudge"), kept)
