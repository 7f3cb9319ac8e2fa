"""Summary of a call: purpose, highlights, extracted fields (seed 000, Task 3, Part 2; rubrics §5).

Of highlights it counts those of the reference that the model captured, and the correct ones among its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.lexical.text import normalise, same
from sidejudge.scoring.questions.kinds import CorrectHighlight, SameHighlight, SameIntent
from sidejudge.scoring.questions.question import Answer, Reply, Steps
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.result.result import Bands, Method, Result, Scored, Unavailable, at_least
from sidejudge.scoring.trace.jsontext import kind, mapping
from sidejudge.scoring.trace.span import Json

from .metric import metric
from .pairing import pair_up
from .settle import settled, truth, unavailable
from .structure import items, reference, shown_items

_WHY = 200
"""Most characters of an answer's reason that are quoted."""
MAX_FACTS = 500
"""Most facts of one summary that are looked up."""

_EMPTY = frozenset(("", "n/a", "unknown", "none"))
"""Contents of an unfilled field, normalised."""
_INTENT_LEVELS = (0.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class SummaryField:
    """A statement of a summary; ``about`` names the field that it fills, empty for a sentence."""

    text: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" if self.about else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One side's summary without blank highlights; ``fields`` are unchanged."""

    call_purpose: str
    highlights: tuple[str, ...]
    fields: Mapping[str, Json]

    @property
    def facts(self) -> tuple[SummaryField, ...]:
        """The purpose, each highlight, each field that is filled."""
        purpose = (SummaryField(self.call_purpose),) if self.call_purpose.strip() else ()
        reported = (_field(name, value) for name, value in self.fields.items() if is_filled(value))
        return (*purpose, *map(SummaryField, self.highlights), *reported)


def _field(name: str, value: Json) -> SummaryField:
    """The statement of a field. A bare truth value states nothing apart from its field's name."""
    text = text_or_json(value)
    return SummaryField(f"{name}: {text}") if isinstance(value, bool) else SummaryField(text, name)


def is_filled(value: Json) -> bool:
    """Whether a field has content: null, blank, an empty list and "N/A", "unknown", "none" do not."""
    if isinstance(value, str):
        return normalise(value) not in _EMPTY
    return value not in (None, [], {})


def read_summary(value: Json) -> Summary:
    """A summary read leniently: its structure has been checked, and missing parts are empty."""
    summary = mapping(value).get("summary")
    purpose, fields = (mapping(summary).get(key) for key in ("call_purpose", "call_extracted_info"))
    return Summary(
        call_purpose=purpose if isinstance(purpose, str) else "",
        highlights=tuple(one for one in items(summary, "highlights") if isinstance(one, str) and one.strip()),
        fields=fields if isinstance(fields, dict) else {},
    )


def summaries(case: Case, **needed: str) -> tuple[Summary, Summary]:
    """The reference's summary and the model's; ``NoValueError`` unless the reference's keys have these kinds."""
    expected = reference(case)
    summary = expected.get("summary") if isinstance(expected, dict) else None
    if not isinstance(summary, dict):
        raise unavailable(Reason("expected_outcome.summary is not an object"))
    for key, wanted in needed.items():
        if kind(summary.get(key)) != wanted:
            raise unavailable(
                Reason("expected_outcome.summary.{key} is not of kind {kind}", key=own(key), kind=own(wanted))
            )
    if "highlights" in needed and not all(isinstance(one, str) for one in items(summary, "highlights")):
        raise unavailable(Reason("expected_outcome.summary.highlights is not a list of strings"))
    return read_summary(expected), read_summary(case.output.value)


OPEN = (Method.EXACT, Method.LEXICAL, Method.JUDGE)
ALIKE = (Method.EXACT, Method.LEXICAL, Method.EMBEDDING, Method.JUDGE)


@metric(
    title="Call Intent Match",
    formula="1.0 = exact or semantically equivalent match; 0.5 = correct domain but incomplete intent; "
    "0.0 = wrong intent entirely",
    source="seed 000, Task 3, Metric 3; rubrics §5",
    bands=Bands((("good", 1.0), ("acceptable", 0.5)), "blocker"),
    methods=OPEN,
    undefined="there is no expected outcome with a call purpose, or no evaluator decides if two texts mean the same",
)
def call_intent_match(case: Case) -> Steps:
    """Whether the model's call purpose is the reference's: 1 equivalent, 0.5 incomplete, 0 another intent."""
    expected, found = (each.call_purpose for each in summaries(case, call_purpose="string"))
    if same(expected, found):
        return Scored(value=1.0, reason=Reason("equal"))
    if not expected.strip():
        return Unavailable(Reason("expected_outcome.summary.call_purpose is blank"))
    if not found.strip():
        return Scored(value=0.0, reason=Reason("the model gave no call purpose"))
    replies = yield (SameIntent(expected, found),)
    (level,), method, judgements = settled(replies, _intent_level)
    return Scored(value=level, method=method, reason=why(replies), judgements=judgements)


@metric(
    title="Required Field Presence Rate",
    meaning="Of the fields that the reference extracts, the share that the model filled: not null, blank, "
    '"N/A", "unknown" or "none". One that the reference leaves empty counts as filled where the model names it.',
    formula="fields_present_and_non_empty / total_required_fields_in_expected_outcome",
    source="seed 000, Task 3, Metric 6; rubrics §5",
    bands=at_least(good=0.90, acceptable=0.75),
    undefined="there is no expected outcome with call_extracted_info",
)
def required_field_presence_rate(case: Case) -> Result:
    """Share of the reference's fields that the model filled; fields that the reference leaves empty may stay empty."""
    wanted, found = (each.fields for each in summaries(case, call_extracted_info="object"))
    if not wanted:
        filled = any(map(is_filled, found.values()))
        return Scored(value=0.0 if filled else 1.0, reason=Reason("the reference has no field"))
    missing = [
        name for name, value in wanted.items() if name not in found or (is_filled(value) and not is_filled(found[name]))
    ]
    shown = shown_items(missing)
    return Scored(
        value=(len(wanted) - len(missing)) / len(wanted),
        reason=Reason("{n} of {all} fields", n=len(wanted) - len(missing), all=len(wanted))
        + (Reason("; missing: {names}", names=quoted(", ".join(map(str, shown[:5])))) if missing else ""),
        details={"missing": shown},
    )


def known_texts(expected: Summary) -> frozenset[str]:
    """The reference's statements, normalised: the same words need no further support."""
    return frozenset(normalise(fact.text) for fact in expected.facts)


def why(replies: Sequence[Reply], values: Sequence[bool] = ()) -> str:
    """The reason of the first answer, or of the first *no*."""
    at = values.index(False) if False in values else 0
    reply = replies[at]
    if not isinstance(reply, Answer):
        return ""
    return reply.reason if len(reply.reason) <= _WHY else reply.reason[:_WHY]


def _intent_level(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in _INTENT_LEVELS:
        raise ValueError("not one of 1.0, 0.5 and 0.0")
    return float(value)


@metric(
    title="Highlight Recall Rate",
    formula="highlights_matched_to_expected_outcome / total_highlights_in_expected_outcome, "
    "by a largest one-to-one matching; by embeddings two match at cosine >= 0.80 where figures agree",
    source="seed 000, Task 3, Metric 4; rubrics §5",
    bands=at_least(good=0.85, acceptable=0.75),
    methods=ALIKE,
    undefined="there is no expected outcome with highlights, or no evaluator decides a pair that matters",
)
def highlight_recall_rate(case: Case) -> Steps:
    """Of the reference's highlights, the share that the model captured; each of its own serves one at most."""
    wanted, found = (each.highlights for each in summaries(case, highlights="array"))
    if not wanted or not found:
        return Scored(
            value=float(not wanted and not found),
            reason=Reason("{n} expected, {given} given", n=len(wanted), given=len(found)),
        )
    paired = yield from pair_up(wanted, found, SameHighlight, "highlights")
    missed = list(paired.missed)
    matched = len(wanted) - len(missed)
    return Scored(
        value=matched / len(wanted),
        method=paired.method,
        reason=Reason("{n} of {all} highlights", n=matched, all=len(wanted))
        + (Reason("; missed: {first}", first=quoted(str(shown_items(missed)[0]))) if missed else ""),
        details={"missed": shown_items(missed)},
        judgements=paired.judgements,
    )


@metric(
    title="Highlight Correctness Rate",
    meaning="Of the model's highlights, the share that contradicts nothing in the reference and makes up no figure, "
    "date or name.",
    formula="factually_accurate_highlights / total_highlights_model_returned",
    source="seed 000, Task 3, Metric 5; rubrics §5",
    bands=at_least(good=0.90, acceptable=0.80),
    methods=OPEN,
    undefined="there is no expected outcome with highlights, or no evaluator decides whether one is correct",
)
def highlight_correctness_rate(case: Case) -> Steps:
    """Share of the model's highlights that nothing contradicts and whose figures and names stand somewhere."""
    reference_summary, given = summaries(case, highlights="array")
    found, known = given.highlights, known_texts(reference_summary)
    if not found:
        return Scored(value=float(not reference_summary.highlights), reason=Reason("the model gave no highlight"))
    open_ones = tuple(dict.fromkeys(one for one in found if normalise(one) not in known))
    if not open_ones:
        return Scored(value=1.0, reason=Reason("all {n} stand in the reference", n=len(found)))
    if len(open_ones) > MAX_FACTS:
        return Unavailable(Reason("more than {most} highlights to look up", most=MAX_FACTS))
    replies = yield tuple(map(CorrectHighlight, open_ones))
    values, method, judgements = settled(replies, truth)
    refuted = {one for one, held in zip(open_ones, values, strict=True) if not held}
    wrong = [one for one in found if one in refuted]
    return Scored(
        value=(len(found) - len(wrong)) / len(found),
        method=method,
        reason=Reason("{n} of {all} highlights", n=len(found) - len(wrong), all=len(found))
        + (
            Reason("; wrong: {first} ({why})", first=quoted(str(shown_items(wrong)[0])), why=why(replies, values))
            if wrong
            else ""
        ),
        details={"wrong": shown_items(wrong)},
        judgements=judgements,
    )
