"""Sentiment of sentences, the model's labels against the reference's, and the strongest emotion of a call.

Source: seed 000, Task 3, Parts 1 and 3; rubrics §5.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.lexical.text import normalise
from sidejudge.scoring.result.reason import Reason, ReasonPart, own, quoted, together
from sidejudge.scoring.result.result import Result, Scored, at_least, count
from sidejudge.scoring.trace.jsontext import kind
from sidejudge.scoring.trace.span import Json

from .metric import metric, pass_or_fail
from .settle import unavailable
from .structure import Matched, items_by_id, over, reference, shown_by_name, shown_items, strict_key

CLASSES = ("positive", "neutral", "negative")


@dataclass(frozen=True, slots=True)
class SentimentSentence:
    """A sentence that the reference labels, and the model's label: None when missing, "" when it is no class."""

    sentence_id: Json
    expected: str
    found: str | None

    @property
    def correct(self) -> bool:
        return self.found == self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Both sides matched by sentence id.

    ``unlabelled`` are sentences without a label in the reference: they are not counted.
    """

    sentences: tuple[SentimentSentence, ...]
    unlabelled: tuple[Json, ...]
    matched: Matched

    @property
    def without_sentences(self) -> float | None:
        """The value where the reference has no sentence: 1 if the output has none either, else 0 (rubrics §1.2).

        None where the reference has sentences.
        """
        if self.sentences:
            return None
        return 0.0 if self.matched.answered else 1.0

    def remarks(self) -> dict[str, object]:
        """Remarks on what was ignored."""
        matched = self.matched
        return shown_by_name(
            unknown_ids=matched.unknown, repeated_ids=matched.repeated, unlabelled_in_reference=self.unlabelled
        )


def read_labels(case: Case) -> Labels:
    """The reference's sentences with the model's labels; ``NoValueError`` without a reference that can be used."""
    wanted, matched = items_by_id(case, "sentiment", "sentence_id", _unusable)
    labelled = [sentence for sentence in wanted if sentence.get("label") is not None]
    if wanted and not labelled:
        raise unavailable(Reason("expected_outcome.sentiment has no label"))
    return Labels(
        sentences=tuple(
            SentimentSentence(
                sentence["sentence_id"],
                _label(sentence["label"]) or "",
                _label(matched.by_id.get(strict_key(sentence["sentence_id"]), {}).get("label")),
            )
            for sentence in labelled
        ),
        unlabelled=tuple(sentence["sentence_id"] for sentence in wanted if sentence.get("label") is None),
        matched=matched,
    )


def _unusable(sentence: Json) -> str | None:
    if not isinstance(sentence, dict):
        return "not an object"
    if kind(sentence.get("sentence_id")) not in ("string", "number"):
        return "sentence_id is missing"
    if _label(sentence.get("label")) == "":
        return "label is neither positive, neutral nor negative"
    return None


def _label(value: Json) -> str | None:
    """One of the classes; "" for anything else (a wrong label); None for null (a missing label)."""
    if value is None:
        return None
    found = normalise(value) if isinstance(value, str) and len(value) < 100 else ""
    return found if found in CLASSES else ""


_NO_LABELS = "there is no expected outcome with labelled sentences"


@metric(
    title="Per-Sentence Sentiment Accuracy",
    formula="correctly_labelled_sentences / total_sentences",
    source="seed 000, Task 3, Metric 1; rubrics §5",
    bands=at_least(good=0.88, acceptable=0.80),
    undefined=_NO_LABELS,
)
@over(read_labels)
def sentiment_accuracy(labels: Labels) -> Result:
    """Share of the reference's sentences that the model labelled as the reference does; a missing one is wrong."""
    if labels.without_sentences is not None:
        return Scored(value=labels.without_sentences, reason=Reason("no sentence expected"))
    wrong = [sentence for sentence in labels.sentences if not sentence.correct]
    total = len(labels.sentences)
    return Scored(
        value=(total - len(wrong)) / total,
        reason=Reason("{n} of {all} sentences", n=total - len(wrong), all=total),
        details={"wrong": shown_items(sentence.sentence_id for sentence in wrong), **labels.remarks()},
    )


@metric(
    title="Class-Balanced Sentiment F1",
    formula="(F1_positive + F1_neutral + F1_negative) / 3; F1 of a class that neither side has is 1",
    source="seed 000, Task 3, Metric 2; rubrics §1.2, §5",
    bands=at_least(good=0.85, acceptable=0.75),
    undefined=_NO_LABELS,
)
@over(read_labels)
def sentiment_macro_f1(labels: Labels) -> Result:
    """F1 of positive, neutral and negative, each counting the same however rare it is."""
    if labels.without_sentences is not None:
        return Scored(value=labels.without_sentences, reason=Reason("no sentence expected"))
    expected = Counter(sentence.expected for sentence in labels.sentences)
    found = Counter(sentence.found for sentence in labels.sentences)
    both = Counter(sentence.expected for sentence in labels.sentences if sentence.correct)
    each = {name: _f1(both[name], found[name], expected[name]) for name in CLASSES}
    return Scored(
        value=sum(each.values()) / len(CLASSES),
        reason=together((Reason("{name} {f1:.2f}", name=own(name), f1=value) for name, value in each.items()), ", "),
        details={"f1": {name: round(value, 9) for name, value in each.items()}},
    )


@metric(
    title="Missing Sentiment Label Count",
    formula="sentences where model label is null/missing but expected_outcome has a valid label",
    source="seed 000, Task 3, Blocker; rubrics §5",
    bands=count(passes=0, warns=2),
    unit="sentences",
    bounds=(0.0, None),
    undefined=_NO_LABELS,
)
@over(read_labels)
def missing_sentiment_labels(labels: Labels) -> Result:
    """Sentences that the reference labels and for which the model gave null, or no item."""
    skipped = [sentence.sentence_id for sentence in labels.sentences if sentence.found is None]
    named = shown_items(skipped)
    return Scored(
        value=len(skipped),
        reason=Reason("without a label: {ids}", ids=quoted(", ".join(map(str, named[:5])))) if skipped else "",
        details={"missing": named},
    )


def _f1(both: int, found: int, expected: int) -> float:
    # 2PR / (P + R) with both ratios written out; 0/0 is 1 (rubrics §1.2).
    return 2 * both / (found + expected) if found + expected else 1.0


_DIGITS = 9


def top_emotions(emotions: dict[str, Json]) -> frozenset[str]:
    """The emotions with the highest percentage, several when they tie; none when none is above 0.

    >>> sorted(top_emotions({"anger": 45, "Fear": 45.0, "joy": 10}))
    ['anger', 'fear']
    """
    reported = {
        name: round(value, _DIGITS)
        for name, value in emotions.items()
        if kind(value) == "number" and isinstance(value, int | float)
    }
    most = max(reported.values(), default=0)
    return frozenset(normalise(name) for name, value in reported.items() if value == most) if most > 0 else frozenset()


def expected_emotions(case: Case) -> dict[str, Json]:
    """The reference's emotions; ``NoValueError`` when they cannot be used."""
    expected = reference(case)
    wanted = expected.get("emotion") if isinstance(expected, dict) else None
    if not isinstance(wanted, dict):
        raise unavailable(Reason("expected_outcome.emotion is not an object"))
    for name, value in wanted.items():
        if kind(value) != "number" or not isinstance(value, int | float) or value < 0:
            raise unavailable(
                Reason("expected_outcome.emotion.{name} is not a number of 0 or more", name=quoted(label(name)))
            )
    return wanted


@metric(
    pass_or_fail,
    title="Dominant Emotion Correctness",
    formula="1 if model's top emotion matches expected_outcome's top emotion, else 0",
    source="seed 000, Task 3, Metric 8; rubrics §5",
    undefined="there is no expected outcome with emotions",
)
def dominant_emotion_correctness(case: Case) -> Result:
    """Whether the model's strongest emotion is the reference's (all of them, where several tie); 1 or 0."""
    given = case.output.value.get("emotion") if isinstance(case.output.value, dict) else None
    top, found = top_emotions(expected_emotions(case)), top_emotions(given if isinstance(given, dict) else {})
    return Scored(
        value=float(top == found),
        reason="" if top == found else Reason("{found}, expected {top}", found=_named(found), top=_named(top)),
        details={"top": shown_items(sorted(found)), "expected": shown_items(sorted(top))},
    )


def _named(emotions: frozenset[str]) -> ReasonPart:
    return quoted(" and ".join(map(str, shown_items(sorted(emotions)[:3])))) if emotions else own("none")
