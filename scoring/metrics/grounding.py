"""Grounding: which claims of an output the transcript or the expected outcome supports (seed 000, Layer 2; rubrics §9).

Faithfulness and hallucination rate are two readings of it. Each claim is the same question as in the text rubric's
fabrication check, so that one answer serves all three.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from scoring.case.case import Case
from scoring.lexical.text import normalise
from scoring.questions.benchmarks import StatedClaims
from scoring.questions.question import NoAnswer, Question, Reply, Steps
from scoring.questions.text import Supported
from scoring.result.result import Failed, Judgement, Method, Scored, Unavailable

from .settle import judgements_of, least_certain, methods_of, settle, truth
from .stated import stated
from .structure import shown
from .summary import MAX_FACTS, SummaryField, why


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounding:
    """How many claims an output makes, and which of them nothing supports."""

    claims: int
    unsupported: tuple[str, ...] = ()
    method: Method = Method.EXACT
    reason: str = ""
    judgements: tuple[Judgement, ...] = ()


def grounding(case: Case) -> Generator[tuple[Question, ...], Sequence[Reply], Grounding | Unavailable | Failed]:
    """Check every claim. What stands in the expected outcome in the same words needs nobody's opinion."""
    if case.model_output is None:
        return Unavailable("no output: model_output is null")
    if case.transcript is None and case.expected_outcome is None:
        return Unavailable("neither transcript nor expected_outcome to check claims against")
    facts, known = case.once(_stated), case.once(_known)
    if all(_key(fact) in known for fact in facts):
        return Grounding(claims=len(facts))
    if len(facts) > MAX_FACTS:
        return Unavailable(f"more than {MAX_FACTS} facts to look up")
    (reply,) = yield (StatedClaims(tuple(map(str, facts))),)
    claims = read_claims(reply, facts)
    if isinstance(claims, Failed):
        return claims
    requested = tuple({Supported(fact.text, fact.about): None for fact in claims if _key(fact) not in known})
    replies = yield requested
    settled = settle(replies, truth)
    if not isinstance(settled, tuple):
        return settled
    values, method, judgements = settled
    refuted = {(question.claim, question.about) for question, held in zip(requested, values, strict=True) if not held}
    unsupported = tuple(str(fact) for fact in claims if (fact.text, fact.about) in refuted)
    if unsupported and case.transcript is None:
        return Unavailable("no transcript to look facts up in")
    reported = why(replies, values) if requested else ""
    return Grounding(
        claims=len(claims),
        unsupported=unsupported,
        method=least_certain((method, *methods_of([reply]))),
        reason=reported,
        judgements=tuple(dict.fromkeys((*judgements_of([reply]), *judgements))),
    )


def faithfulness(case: Case) -> Steps:
    """Supported claims over all claims; an output that claims nothing is faithful."""
    found = yield from grounding(case)
    if not isinstance(found, Grounding):
        return found
    supported = found.claims - len(found.unsupported)
    return _scored(found, supported / found.claims if found.claims else 1.0, f"{supported} of {found.claims} claims")


def hallucination_rate(case: Case) -> Steps:
    """Unsupported facts over all facts; an output that states nothing makes nothing up."""
    found = yield from grounding(case)
    if not isinstance(found, Grounding):
        return found
    made_up = len(found.unsupported)
    return _scored(found, made_up / found.claims if found.claims else 0.0, f"{made_up} of {found.claims} made up")


def read_claims(reply: Reply, facts: tuple[SummaryField, ...]) -> tuple[SummaryField, ...] | Failed:
    """The claims that a judge took facts apart into; the facts themselves where there is no judge."""
    if isinstance(reply, NoAnswer):
        return Failed(reply.reason) if reply.failed else facts
    claims = reply.value
    if not isinstance(claims, tuple | list) or not all(isinstance(one, str) and one.strip() for one in claims):
        return Failed("parse_error: claims are not a list of texts")
    if len(claims) > MAX_FACTS:
        return Failed(f"parse_error: more than {MAX_FACTS} claims")
    return tuple(map(SummaryField, claims))


def _scored(found: Grounding, value: float, stated: str) -> Scored:
    first = f"; unsupported: {shown(found.unsupported)[0]}" if found.unsupported else ""
    if first and found.reason:
        first += f" ({found.reason})"
    return Scored(
        value=value,
        method=found.method,
        reason=f"{stated}{first}",
        details={"claims": found.claims, "unsupported": shown(found.unsupported)},
        judgements=found.judgements,
    )


def _stated(case: Case) -> tuple[SummaryField, ...]:
    return tuple(stated(case.output_content))


def _known(case: Case) -> frozenset[tuple[str, str]]:
    return frozenset(map(_key, stated(case.expected_content)))


def _key(fact: SummaryField) -> tuple[str, str]:
    return normalise(fact.about), normalise(fact.text)
