"""dimensions: five weighted dimensions of an output, each on five levels (seed 004)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import (
    called_tools,
    criteria,
    ground_truth,
    has_no_sources,
    incomplete,
    stated_scenario,
    text_or_json,
)
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.metrics.settle import known, settled
from sidejudge.scoring.metrics.tool_efficiency import efficiency, states_budget
from sidejudge.scoring.questions import contract
from sidejudge.scoring.questions.kinds import GradeDimension, VerifyClaims
from sidejudge.scoring.questions.question import Steps, prompt_text
from sidejudge.scoring.result.reason import Reason, own, quoted, together
from sidejudge.scoring.result.result import Bands, Method, NotApplicable, Scored, Unavailable
from sidejudge.scoring.verdict.rubric import Criterion, Rubric

SOURCE = "seed 004"
LEVELS = {"excellent": 1.0, "good": 0.8, "acceptable": 0.6, "poor": 0.3, "failed": 0.0}
"""The value of each level, in every dimension."""
IMPORTANCE = {"major": 2, "minor": 1}
"""The weight of a claim by importance (rubrics §8)."""
_BANDS = Bands(tuple(LEVELS.items())[:-1], "failed")
_MOST_CLAIMS = 500
_CITATION = re.compile(r"https?://|\bdoi:|\[\d{1,3}\]|\(\w[^()]{0,60}\b(?:19|20)\d\d\)", re.IGNORECASE)
"""The form of a reference: an address, a number in brackets, a name with a year."""
_CITES_NOTHING = NotApplicable(Reason("there are no sources, and the answer cites none"))
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedClaim:
    """A claim of the output, its importance, and whether it matches the ground truth."""

    claim: str
    importance: str
    accurate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """A judge's level in one dimension, and why."""

    level: str
    reason: str


def parse_claims(value: object) -> tuple[CheckedClaim, ...]:
    """Read a judge's checked claims, as text or decoded; ``ValueError`` names the fault."""
    listed = contract.required(contract.read_object(value), "claims")
    if not isinstance(listed, list | tuple) or len(listed) > _MOST_CLAIMS:
        raise ValueError(f"claims is not a list of at most {_MOST_CLAIMS} claims")
    return tuple(_read_claim(one) for one in listed)


def _read_claim(value: object) -> CheckedClaim:
    found = contract.read_object(value)
    return CheckedClaim(
        claim=contract.text(found, "claim"),
        importance=contract.one_of(found, "importance", IMPORTANCE),
        accurate=contract.yes_or_no(found, "accurate"),
    )


def parse_level(value: object) -> Graded:
    """Read a judge's level, as text or decoded; ``ValueError`` names the fault."""
    found = contract.read_object(value)
    return Graded(level=contract.one_of(found, "level", LEVELS), reason=contract.text(found, "reason"))


def claim_accuracy(claims: tuple[CheckedClaim, ...]) -> float:
    """Importance-weighted mean over at least one claim: accurate 1, else 0.

    >>> claim_accuracy((CheckedClaim(claim="a", importance="major", accurate=True),
    ...                 CheckedClaim(claim="b", importance="minor", accurate=False)))
    0.6666666666666666
    """
    right = sum(IMPORTANCE[claim.importance] for claim in claims if claim.accurate)
    return right / sum(IMPORTANCE[claim.importance] for claim in claims)


def _factual_accuracy(case: Case) -> Steps:
    if case.model_output is None:
        return Unavailable(Reason("no output: model_output is null"))
    if case.expected_outcome is None and has_no_sources(case):
        return NotApplicable(Reason("no expected_outcome and no sources: there is nothing to verify claims against"))
    if not known(ground_truth(case)):
        return Unavailable(Reason("neither expected_outcome nor context: there is nothing to verify claims against"))
    replies = yield (VerifyClaims(),)
    (claims,), method, judgements = settled(replies, parse_claims)
    if not claims:
        return NotApplicable(Reason("the output makes no claim"))
    wrong = [claim for claim in claims if not claim.accurate]
    return Scored(
        value=claim_accuracy(claims),
        method=method,
        reason=together(
            (
                Reason("{n} of {all} claims match", n=len(claims) - len(wrong), all=len(claims)),
                *(
                    Reason("{weight}, not: {claim}", weight=own(claim.importance), claim=quoted(label(claim.claim, 80)))
                    for claim in wrong[:3]
                ),
            )
        ),
        details={"wrong": [{"claim": label(c.claim, 200), "importance": c.importance} for c in wrong[:_SHOWN]]},
        judgements=judgements,
    )


def _judged(case: Case, dimension: str) -> Steps:
    if case.model_output is None:
        return Unavailable(Reason("no output: model_output is null"))
    replies = yield (GradeDimension(dimension),)
    (graded,), method, judgements = settled(replies, parse_level)
    return Scored(
        value=LEVELS[graded.level],
        method=method,
        reason=graded.reason,
        details={"level": graded.level},
        judgements=judgements,
    )


def _completeness(case: Case) -> Steps:
    known(criteria(case))
    return (yield from _judged(case, "completeness"))


def _citation_accuracy(case: Case) -> Steps:
    if _cites_nothing(case):
        return _CITES_NOTHING
    known(ground_truth(case))
    return (yield from _judged(case, "citation_accuracy"))


def _source_quality(case: Case) -> Steps:
    if _cites_nothing(case):
        return _CITES_NOTHING
    return (yield from _judged(case, "source_quality"))


def _cites_nothing(case: Case) -> bool:
    """Whether citations do not apply: there was nothing to cite, and the output does not claim otherwise."""
    output = case.model_output
    return output is not None and has_no_sources(case) and not _CITATION.search(text_or_json(output))


def _tool_efficiency(case: Case) -> Steps:
    if not case.complete:
        return incomplete(case)
    scenario = stated_scenario(case)
    calls = called_tools(case, None if isinstance(scenario, Unavailable) else scenario)
    if calls is None:
        if case.trace is None and case.trace_id is None and scenario is None:
            return NotApplicable(Reason("the case reports no tools and expects none"))
        return Unavailable(Reason("tools_used is not known"))
    if isinstance(scenario, Unavailable):
        return scenario
    if scenario is None or not states_budget(scenario):
        return (yield from _judged(case, "tool_efficiency"))
    found = efficiency(scenario, calls)
    level = next(name for name, value in LEVELS.items() if value == found.value)
    return Scored(value=found.value, reason=together(found.faults), details={"level": level})


def _dimension(
    name: str,
    title: str,
    meaning: str,
    measure: Callable[[Case], Steps],
    *,
    formula: str = "value of the judge's level",
    methods: tuple[Method, ...] = (Method.JUDGE,),
    undefined: str,
) -> Metric:
    levels = re.findall(r"^(\w+) (\([0-9.]+\): .*)$", prompt_text(f"dimensions/{name}"), re.MULTILINE)
    anchors = "; ".join(f"{level.lower()} {words}" for level, words in levels)
    return Metric(
        id=name,
        title=title,
        meaning=meaning,
        formula=f"{formula}. {anchors}",
        source=f"{SOURCE}; rubrics §8",
        measure=measure,
        bands=_BANDS,
        methods=methods,
        undefined=undefined,
    )


factual_accuracy = _dimension(
    "factual_accuracy",
    "Factual Accuracy",
    "Whether claims in the output match the ground truth: the expected outcome, else the sources.",
    _factual_accuracy,
    formula="Σ importance of accurate claims / Σ importance of claims; major 2, minor 1",
    undefined="there is no judge or no output, or the sources are not known; not applicable without any claim, and "
    "where there is neither an expected outcome nor a source",
)
completeness = _dimension(
    "completeness",
    "Completeness",
    "Whether the output covers all requested aspects.",
    _completeness,
    undefined="there is no judge, no output, or nothing says what was requested",
)
citation_accuracy = _dimension(
    "citation_accuracy",
    "Citation Accuracy",
    "Whether cited sources match claimed sources.",
    _citation_accuracy,
    undefined="there is no judge, no output, or neither expected outcome nor sources are known; not applicable to an "
    "answer without sources that cites none",
)
source_quality = _dimension(
    "source_quality",
    "Source Quality",
    "Whether appropriate primary sources were used.",
    _source_quality,
    undefined="there is no judge or no output; not applicable to an answer without sources that cites none",
)
tool_efficiency = _dimension(
    "tool_efficiency",
    "Tool Efficiency",
    "Whether the agent used appropriate tools a reasonable number of times.",
    _tool_efficiency,
    formula="where the scenario states expected tools and max_calls, the worse of selection (0.3: an expected tool "
    "missing or a wrong one; 0.0: no expected tool, or most calls wrong) and call count (0.8: an equal call repeated; "
    "0.6: over the budget by one call or up to half; 0.3: by two or up to as much again; 0.0: by more); else the value "
    "of the judge's level",
    methods=(Method.EXACT, Method.JUDGE),
    undefined="tools_used is absent or the trace incomplete; there is no judge and no budget to compute it by; not "
    "applicable where a case without a trace reports no tools and its scenario expects none",
)

RUBRIC = Rubric(
    id="dimensions",
    title="Evaluation Dimensions",
    source="seed 004; rubrics §8",
    formula="0.30 × factual_accuracy + 0.25 × completeness + 0.15 × citation_accuracy + 0.10 × source_quality "
    "+ 0.20 × tool_efficiency",
    criteria=(
        Criterion(metric=factual_accuracy, weight=0.30),
        Criterion(metric=completeness, weight=0.25),
        Criterion(metric=citation_accuracy, weight=0.15),
        Criterion(metric=source_quality, weight=0.10),
        Criterion(metric=tool_efficiency, weight=0.20),
    ),
    pass_mark=0.70,
    good_mark=0.80,
)
