"""Grounding: the claims of an output that transcript or expected outcome support (seed 000, Layer 2; rubrics §9).

Faithfulness and hallucination rate are two readings of it, the text rubric's check of a summary is a third.
Each claim is the same question, so that one answer serves all three.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.text import normalise
from sidejudge.scoring.questions.kinds import StatedClaims, SummaryClaims, Supported
from sidejudge.scoring.questions.question import Answer, NoAnswer, Question, Reply, Steps
from sidejudge.scoring.result.reason import Reason, quoted
from sidejudge.scoring.result.result import Failed, Judgement, Method, Scored, Unavailable, at_least

from .metric import metric
from .settle import NoValueError, bounded, judgements_of, least_certain, methods_of, refuted, settle, truth, unavailable
from .stated import stated
from .structure import shown_items
from .summary import MAX_FACTS, OPEN, SummaryField, known_texts, summaries, why


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounding:
    """The number of claims of an output, and the unsupported ones.

    ``against`` are the answers that refute claims; ``gap`` is why others are undecided, None where all are decided.
    """

    claims: int
    unsupported: tuple[str, ...] = ()
    against: tuple[Answer, ...] = ()
    gap: Unavailable | Failed | None = None
    method: Method = Method.EXACT
    reason: str = ""
    judgements: tuple[Judgement, ...] = ()


def grounding(case: Case) -> Generator[tuple[Question, ...], Sequence[Reply], Grounding]:
    """Check every claim. A claim in the same words as the expected outcome needs no evaluator."""
    if case.model_output is None:
        raise unavailable(Reason("no output: model_output is null"))
    if case.transcript is None and case.expected_outcome is None:
        raise unavailable(Reason("neither transcript nor expected_outcome to check claims against"))
    facts, known = case.once(_stated), case.once(_known)
    if all(_key(fact) in known for fact in facts):
        return Grounding(claims=len(facts))
    return (yield from _checked(case, facts, StatedClaims, lambda fact: _key(fact) in known))


def _checked(
    case: Case,
    facts: tuple[SummaryField, ...],
    claimed: type[StatedClaims | SummaryClaims],
    is_known: Callable[[SummaryField], bool],
) -> Generator[tuple[Question, ...], Sequence[Reply], Grounding]:
    """Split facts into claims, and ask about those that are not known already."""
    if len(facts) > MAX_FACTS:
        raise unavailable(Reason("more than {most} facts to look up", most=MAX_FACTS))
    (reply,) = yield (claimed(tuple(map(str, facts))),)
    claims = read_claims(reply, facts, at_least_one=claimed is SummaryClaims)
    requested = tuple({Supported(fact.text, fact.about): None for fact in claims if not is_known(fact)})
    replies = yield requested
    against = refuted(requested, replies)
    made_up = {(question.claim, question.about) for question in against}
    unsupported = tuple(str(fact) for fact in claims if (fact.text, fact.about) in made_up)
    if unsupported and case.transcript is None:
        raise unavailable(Reason("no transcript to look facts up in"))
    refuting = tuple(against.values())
    reported = why(refuting or replies) if requested else ""
    found = Grounding(claims=len(claims), unsupported=unsupported, against=refuting, reason=reported)
    settled = settle(replies, truth)
    if not isinstance(settled, tuple):
        return replace(found, gap=settled)
    _, method, judgements = settled
    return replace(
        found,
        method=least_certain((method, *methods_of([reply]))),
        judgements=tuple(dict.fromkeys((*judgements_of([reply]), *judgements))),
    )


@metric(
    title="Fabrication-Free Rate",
    meaning="Of the facts in the model's summary (purpose, highlights, filled fields), the share that the transcript "
    "or the reference supports. Words alone notice figures and names that are made up, and nothing else; a judge does.",
    formula="1 − fabricated_facts / total_facts_in_model_summary",
    source="seed 000, Task 3, Metric 7; rubrics §5, §9",
    bands=at_least(good=1.0, acceptable=0.98),
    methods=OPEN,
    undefined="there is no expected outcome with a summary, or no evaluator decides whether a fact is supported",
)
def fabrication_free_rate(case: Case) -> Steps:
    """Share of a call summary's claims that the transcript or the reference supports."""
    reference, given = summaries(case)
    facts, known = given.facts, known_texts(reference)
    if all(normalise(fact.text) in known for fact in facts):
        return Scored(
            value=1.0, reason=Reason("all it states stands in the reference") if facts else Reason("it states nothing")
        )
    found = yield from _checked(case, facts, SummaryClaims, lambda fact: normalise(fact.text) in known)
    fabricated, total = found.unsupported, found.claims
    value = (total - len(fabricated)) / total
    reported = Reason("{n} of {all} facts fabricated", n=len(fabricated), all=total)
    if fabricated:
        reported += Reason(": {first} ({why})", first=quoted(str(shown_items(fabricated)[0])), why=found.reason)
    if found.gap is not None:
        return bounded(found.gap, reported, found.against, at_most=value)
    return Scored(
        value=value,
        method=found.method,
        reason=reported,
        details={"fabricated": shown_items(fabricated), "hallucination_rate": len(fabricated) / total},
        judgements=found.judgements,
    )


def faithfulness(case: Case) -> Steps:
    """Supported claims over all claims; an output that claims nothing is faithful."""
    found = yield from grounding(case)
    supported = found.claims - len(found.unsupported)
    value = supported / found.claims if found.claims else 1.0
    if found.gap is not None:
        return bounded(found.gap, _refuted(found), found.against, at_most=value)
    return _scored(found, value, Reason("{n} of {all} claims", n=supported, all=found.claims))


def hallucination_rate(case: Case) -> Steps:
    """Unsupported facts over all facts; an output that states nothing makes nothing up."""
    found = yield from grounding(case)
    made_up = len(found.unsupported)
    value = made_up / found.claims if found.claims else 0.0
    if found.gap is not None:
        return bounded(found.gap, _refuted(found), found.against, at_least=value)
    return _scored(found, value, Reason("{n} of {all} made up", n=made_up, all=found.claims))


def read_claims(
    reply: Reply, facts: tuple[SummaryField, ...], *, at_least_one: bool = False
) -> tuple[SummaryField, ...]:
    """The claims that a judge split facts into; the facts themselves where there is no judge.

    ``at_least_one``: the facts of a summary make a claim in any case.
    """
    if isinstance(reply, NoAnswer):
        if reply.failed:
            raise NoValueError(Failed(reply.reason))
        return facts
    claims = reply.value
    if not isinstance(claims, tuple | list) or not all(isinstance(one, str) and one.strip() for one in claims):
        raise NoValueError(Failed(Reason("parse_error: claims are not a list of texts")))
    if at_least_one and not 0 < len(claims) <= MAX_FACTS:
        raise NoValueError(Failed(Reason("parse_error: not between 1 and {most} claims", most=MAX_FACTS)))
    if len(claims) > MAX_FACTS:
        raise NoValueError(Failed(Reason("parse_error: more than {most} claims", most=MAX_FACTS)))
    return tuple(map(SummaryField, claims))


def _refuted(found: Grounding) -> Reason:
    return _reported(found, Reason("{n} of {all} made up", n=len(found.unsupported), all=found.claims))


def _reported(found: Grounding, stated: Reason) -> Reason:
    if found.unsupported:
        stated += Reason("; unsupported: {first}", first=quoted(str(shown_items(found.unsupported)[0])))
        if found.reason:
            stated += Reason(" ({why})", why=found.reason)
    return stated


def _scored(found: Grounding, value: float, stated: Reason) -> Scored:
    return Scored(
        value=value,
        method=found.method,
        reason=_reported(found, stated),
        details={"claims": found.claims, "unsupported": shown_items(found.unsupported)},
        judgements=found.judgements,
    )


def _stated(case: Case) -> tuple[SummaryField, ...]:
    return tuple(stated(case.output_content))


def _known(case: Case) -> frozenset[tuple[str, str]]:
    return frozenset(map(_key, stated(case.expected_content)))


def _key(fact: SummaryField) -> tuple[str, str]:
    return normalise(fact.about), normalise(fact.text)
