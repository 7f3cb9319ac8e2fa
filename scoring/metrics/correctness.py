"""Answer correctness and relevancy: an output's facts and meaning compared with the reference and with the question."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.conversation import question_of
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.lexical.text import same
from sidejudge.scoring.questions.kinds import SameFact, SentenceSimilarity, StatedClaims
from sidejudge.scoring.questions.question import NoAnswer, Question, Reply, Steps
from sidejudge.scoring.result.reason import Reason, quoted
from sidejudge.scoring.result.result import Judgement, Method, NotApplicable, Result, Scored, Unavailable
from sidejudge.scoring.trace.span import Json

from .closed_form import FieldComparison, compare
from .grounding import read_claims
from .pairing import Pairing, pair_up
from .settle import judgements_of, least_certain, methods_of, read_cosines, settled, unavailable
from .stated import ECHOES, sentences
from .structure import shown_items
from .summary import MAX_FACTS, SummaryField

_SHOWN_WRONG = 20


def both_sides(case: Case) -> tuple[Json, Json]:
    """The output and the expected outcome, each as JSON or text."""
    if case.expected_outcome is None:
        raise unavailable(Reason("no expected_outcome"))
    if case.model_output is None:
        raise unavailable(Reason("no output: model_output is null"))
    return case.output_content, case.expected_content


def answer_relevancy(case: Case) -> Steps:
    """The cosine of output and question; an empty output, or one that repeats the question, answers nothing."""
    question = question_of(case)
    if not question.strip():
        return Unavailable(Reason("no input that asks anything: the question is not known"))
    if case.model_output is None:
        return Unavailable(Reason("no output: model_output is null"))
    output = text_or_json(case.output_content)
    if not output.strip():
        return Scored(value=0.0, reason=Reason("the output is empty"))
    if same(output, question):
        return Scored(value=0.0, reason=Reason("the output repeats the question"))
    return (yield from _similar(output, question))


def answer_correctness(case: Case) -> Steps:
    """0.50 × F1 of the facts + 0.50 × similarity of the texts."""
    sides = both_sides(case)
    facts = yield from _facts(case.once(_compared))
    alike = yield from _similar(*map(text_or_json, sides))
    return Scored(
        value=0.5 * facts.f1 + 0.5 * alike.value,
        method=least_certain((facts.method, alike.method)),
        reason=Reason(
            "F1 of facts {f1:.3f} ({matched} matched, {expected} expected, {found} given), similarity {alike:.3f}",
            f1=facts.f1,
            matched=facts.matched,
            expected=facts.expected,
            found=facts.found,
            alike=alike.value,
        ),
        details={"f1": facts.f1, "semantic_similarity": alike.value, "missed": shown_items(facts.missed)},
        judgements=tuple(dict.fromkeys((*facts.judgements, *alike.judgements))),
    )


def exact_match(case: Case) -> Result:
    """Closed-form fields that equal the reference's, over all that either side has."""
    both_sides(case)
    made = case.once(_compared)
    if not made.expected:
        return NotApplicable(Reason("the expected outcome has no closed-form field"))
    wrong = [path or "the output as a whole" for path in made.wrong]
    details: dict[str, object] = {"wrong": shown_items(wrong[:_SHOWN_WRONG])}
    if made.strange:
        details["ignored"] = shown_items(made.strange)
    return Scored(
        value=made.matched / made.places,
        reason=Reason("{n} of {all} fields", n=made.matched, all=made.places)
        + (Reason("; wrong: {names}", names=quoted(", ".join(wrong[:3]))) if wrong else ""),
        details=details,
    )


def _similar(output: str, other: str) -> Generator[tuple[Question, ...], Sequence[Reply], Scored]:
    if same(output, other):
        return Scored(value=1.0, reason=Reason("equal"))
    if not output.strip() or not other.strip():
        return Scored(value=0.0, reason=Reason("one of the two is empty"))
    replies = yield (SentenceSimilarity(((output, other),)),)
    (cosine,), method, judgements = settled(replies, lambda value: read_cosines(value, 1)[0])
    return Scored(
        value=cosine, method=method, reason=Reason("cosine {cosine:.3f}", cosine=cosine), judgements=judgements
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    matched: int
    expected: int
    found: int
    missed: tuple[str, ...]
    method: Method
    judgements: tuple[Judgement, ...]

    @property
    def f1(self) -> float:
        """2 × matched / (expected + found), which is the F1 of precision and recall; nothing on either side: 1."""
        both = self.expected + self.found
        return 2 * self.matched / both if both else 1.0


def _compared(case: Case) -> FieldComparison:
    return compare(case.output_content, case.expected_content, echoes=ECHOES)


def _facts(made: FieldComparison) -> Generator[tuple[Question, ...], Sequence[Reply], _Facts]:
    """Facts matched one to one: closed-form fields at their places, and the statements of the prose anywhere."""
    stated, wanted = _statements(made.stated), _statements(made.wanted)
    if max(len(stated), len(wanted)) > MAX_FACTS:
        raise unavailable(Reason("more than {most} facts to compare", most=MAX_FACTS))
    apart: Sequence[Reply] = ()
    if stated and wanted and sorted(map(str, stated)) != sorted(map(str, wanted)):
        taken_apart = yield tuple(StatedClaims(tuple(map(str, side))) for side in (stated, wanted))
        # Claims of one side are not held against whole sentences of the other.
        if not any(isinstance(reply, NoAnswer) and not reply.failed for reply in taken_apart):
            stated, wanted = map(read_claims, taken_apart, (stated, wanted))
            apart = taken_apart
    paired = yield from pair_up([f.text for f in wanted], [f.text for f in stated], SameFact, "facts")
    counted = _counted(made, paired, len(stated), len(wanted))
    return replace(
        counted,
        method=least_certain((counted.method, *methods_of(apart))),
        judgements=tuple(dict.fromkeys((*judgements_of(apart), *counted.judgements))),
    )


def _statements(texts: Sequence[str]) -> tuple[SummaryField, ...]:
    return tuple(SummaryField(sentence) for text in texts for sentence in sentences(text))


def _counted(made: FieldComparison, paired: Pairing, stated: int, wanted: int) -> _Facts:
    # An id by which an item was found is no fact of its own.
    return _Facts(
        matched=made.matched - made.ids + wanted - len(paired.missed),
        expected=made.expected - made.ids + wanted,
        found=made.found - made.ids + stated,
        missed=(*made.wrong, *paired.missed),
        method=paired.method,
        judgements=paired.judgements,
    )
