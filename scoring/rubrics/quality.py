"""quality: clarity, accuracy and completeness of an answer, from one judgement (seed 003 §2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import criteria, has_no_sources, sources
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.metrics.settle import known, settled_field, unavailable
from sidejudge.scoring.questions import contract
from sidejudge.scoring.questions.kinds import GradeQuality
from sidejudge.scoring.questions.question import Question, Reply, Steps, prompt_text
from sidejudge.scoring.result.reason import Reason
from sidejudge.scoring.result.result import Bands, Method, NotApplicable, Result, Scored, Unavailable
from sidejudge.scoring.verdict.rubric import Criterion, Rubric

SOURCE = "seed 003 §2"
_THIRD = 1 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """A judge's three scores, each in [0, 1], and why."""

    answer_quality: float
    factual_correctness: float
    completeness: float
    reasoning: str


def parse_quality(value: object) -> Quality:
    """Read a judge's answer, as text or decoded; ``ValueError`` names the fault.

    The levels are anchors: a value between two of them is allowed, as in the seed's examples (0.95), and is rated by
    the lower.
    """
    found = contract.read_object(value)
    return Quality(
        answer_quality=contract.share(found, "answer_quality"),
        factual_correctness=contract.share(found, "factual_correctness"),
        completeness=contract.share(found, "completeness"),
        reasoning=contract.text(found, "reasoning"),
    )


def _graded(case: Case, field: str) -> Generator[tuple[Question, ...], Sequence[Reply], Scored]:
    if case.model_output is None:
        raise unavailable(Reason("no answer to grade: model_output is null"))
    replies = yield (GradeQuality(),)
    fields = ("answer_quality", "factual_correctness", "completeness")
    (quality,), method, judgements = settled_field(replies, field, fields, parse_quality)
    return Scored(value=getattr(quality, field), method=method, reason=quality.reasoning, judgements=judgements)


def _factual_correctness(case: Case) -> Steps:
    if has_no_sources(case):
        return NotApplicable(Reason("there are no sources: there is nothing to be correct by"))
    found = sources(case)
    if isinstance(found, Unavailable):
        return Unavailable(Reason("no sources: {why}", why=found.reason))
    if not found:
        return Unavailable(Reason("no sources: neither a context nor a result of a tool is known"))
    return (yield from _graded(case, "factual_correctness"))


def _completeness(case: Case) -> Steps:
    wanted = known(criteria(case))
    result = yield from _graded(case, "completeness")
    return replace(result, details={"compared_against": wanted.field})


def _metric(name: str, meaning: str, measure: Callable[[Case], Steps], undefined: str = "") -> Metric:
    """One score with the seed's names of its levels, best first; the last is for values below all others."""
    asked = prompt_text("quality").partition(f'"{name}":')[2].partition('\n"')[0]
    levels = re.findall(r"^  ([0-9.]+) (.+): (.)(.*)$", asked, re.MULTILINE)
    anchors = "; ".join(f"{float(at):g}: {level}, {first.lower()}{rest}" for at, level, first, rest in levels)
    *bands, (lowest, _) = ((level.lower().replace(" ", "_"), float(at)) for at, level, _, _ in levels)
    return Metric(
        id=name,
        title=name.replace("_", " ").title(),
        meaning=meaning,
        formula=f"judge's score in [0, 1]. {anchors}",
        source=f"{SOURCE}; rubrics §8",
        measure=measure,
        bands=Bands(tuple(bands), lowest),
        methods=(Method.JUDGE,),
        undefined=f"there is no judge or no answer{undefined}",
    )


answer_quality = _metric(
    "answer_quality",
    "Whether the response is clear, well-structured and helpful.",
    partial(_graded, field="answer_quality"),
)
factual_correctness = _metric(
    "factual_correctness",
    "Whether the information is accurate based on sources, without hallucinations.",
    _factual_correctness,
    "; neither context nor tool results are known, or the trace is incomplete; not applicable to a plain answer",
)
completeness = _metric(
    "completeness",
    "Whether the response meets the expected criteria.",
    _completeness,
    "; neither the scenario, the expected outcome nor the input says what was wanted",
)


def _detail(_case: Case, _composite: float | None, results: Mapping[str, Result]) -> dict[str, object]:
    """The seed's result object under ``quality``; absent unless all three are scored."""
    scored = {name: result for name, result in results.items() if isinstance(result, Scored)}
    if len(scored) != len(results):
        return {}
    values = {name: result.value for name, result in scored.items()}
    return {"quality": {**values, "reasoning": scored[answer_quality.id].reason}}


RUBRIC = Rubric(
    id="quality",
    title="Answer Quality",
    source="seed 003 §2; rubrics §1.6",
    formula="(answer_quality + factual_correctness + completeness) / 3",
    criteria=tuple(
        Criterion(metric=each, weight=_THIRD) for each in (answer_quality, factual_correctness, completeness)
    ),
    pass_mark=0.70,
    good_mark=0.80,
    detail=_detail,
)
