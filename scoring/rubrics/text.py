"""text: sentiment, summary and emotion of a call against a human analyst's (seed 000, Task 3; rubrics §5)."""

from __future__ import annotations

from functools import partial

from sidejudge.scoring.metrics.grounding import fabrication_free
from sidejudge.scoring.metrics.metric import Metric, pass_or_fail, weighted
from sidejudge.scoring.metrics.sentiment import (
    accuracy,
    dominant_emotion,
    expected_emotions,
    macro_f1,
    missing,
    read_labels,
)
from sidejudge.scoring.metrics.structure import over, structure_compliance
from sidejudge.scoring.metrics.summary import (
    call_intent,
    highlight_correctness,
    highlight_recall,
    required_fields,
    summaries,
)
from sidejudge.scoring.result.result import Bands, Blocker, Effect, Method, at_least, count
from sidejudge.scoring.verdict.rubric import Criterion, Rubric, derived_pass_mark

SOURCE = "seed 000, Task 3"
SENTIMENT, SUMMARY, EMOTION = 0.30, 0.50, 0.20
"""The weight of each part in the text score. A metric's weight is its share of its part times the part's weight."""

_OPEN = (Method.EXACT, Method.LEXICAL, Method.JUDGE)
_ALIKE = (Method.EXACT, Method.LEXICAL, Method.EMBEDDING, Method.JUDGE)
_NO_LABELS = "there is no expected outcome with labelled sentences"


_whole_summaries = partial(summaries, call_purpose="string", highlights="array", call_extracted_info="object")


def _sub_score(
    part: str, where: str, *shares: tuple[Metric, float], methods: tuple[Method, ...] = (Method.EXACT,)
) -> Metric:
    """A part of the rubric in one number; ``where`` the seed has it."""
    return Metric(
        id=f"{part}_score",
        title=f"{part.title()} Sub-Score",
        meaning=f"The {part} part in one number.",
        formula=" + ".join(metric.id if share == 1 else f"{share:.2f} × {metric.id}" for metric, share in shares),
        source=f"{SOURCE}, {where}",
        measure=weighted(*shares),
        methods=methods,
        undefined="a metric that it is made of has no value",
    )


response_structure_compliance = structure_compliance(read_labels, _whole_summaries, expected_emotions)

# -- Part 1: Sentiment

sentiment_accuracy = Metric(
    id="sentiment_accuracy",
    title="Per-Sentence Sentiment Accuracy",
    meaning="Share of the reference's sentences that the model labelled as the reference does; a missing one is wrong.",
    formula="correctly_labelled_sentences / total_sentences",
    source=f"{SOURCE}, Metric 1; rubrics §5",
    measure=over(read_labels, accuracy),
    bands=at_least(good=0.88, acceptable=0.80),
    undefined=_NO_LABELS,
)
sentiment_macro_f1 = Metric(
    id="sentiment_macro_f1",
    title="Class-Balanced Sentiment F1",
    meaning="F1 of positive, neutral and negative, each counting the same however rare it is.",
    formula="(F1_positive + F1_neutral + F1_negative) / 3; F1 of a class that neither side has is 1",
    source=f"{SOURCE}, Metric 2; rubrics §1.2, §5",
    measure=over(read_labels, macro_f1),
    bands=at_least(good=0.85, acceptable=0.75),
    undefined=_NO_LABELS,
)
missing_sentiment_labels = Metric(
    id="missing_sentiment_labels",
    title="Missing Sentiment Label Count",
    meaning="Sentences that the reference labels and for which the model gave null, or no item.",
    formula="sentences where model label is null/missing but expected_outcome has a valid label",
    source=f"{SOURCE}, Blocker; rubrics §5",
    measure=over(read_labels, missing),
    bands=count(passes=0, warns=2),
    unit="sentences",
    bounds=(0.0, None),
    undefined=_NO_LABELS,
)
sentiment_score = _sub_score("sentiment", "Sentiment Sub-Score", (sentiment_accuracy, 0.60), (sentiment_macro_f1, 0.40))

# -- Part 2: Summary

call_intent_match = Metric(
    id="call_intent_match",
    title="Call Intent Match",
    meaning="Whether the model's call purpose is the reference's: 1 equivalent, 0.5 incomplete, 0 another intent.",
    formula="1.0 = exact or semantically equivalent match; 0.5 = correct domain but incomplete intent; "
    "0.0 = wrong intent entirely",
    source=f"{SOURCE}, Metric 3; rubrics §5",
    measure=call_intent,
    bands=Bands((("good", 1.0), ("acceptable", 0.5)), "blocker"),
    methods=_OPEN,
    undefined="there is no expected outcome with a call purpose, or no evaluator decides if two texts mean the same",
)
highlight_recall_rate = Metric(
    id="highlight_recall_rate",
    title="Highlight Recall Rate",
    meaning="Of the reference's highlights, the share that the model captured; each of its own serves one at most.",
    formula="highlights_matched_to_expected_outcome / total_highlights_in_expected_outcome, "
    "by a largest one-to-one matching; by embeddings two match at cosine >= 0.80 where figures agree",
    source=f"{SOURCE}, Metric 4; rubrics §5",
    measure=highlight_recall,
    bands=at_least(good=0.85, acceptable=0.75),
    methods=_ALIKE,
    undefined="there is no expected outcome with highlights, or no evaluator decides a pair that matters",
)
highlight_correctness_rate = Metric(
    id="highlight_correctness_rate",
    title="Highlight Correctness Rate",
    meaning="Of the model's highlights, the share that contradicts nothing in the reference and makes up no figure, "
    "date or name.",
    formula="factually_accurate_highlights / total_highlights_model_returned",
    source=f"{SOURCE}, Metric 5; rubrics §5",
    measure=highlight_correctness,
    bands=at_least(good=0.90, acceptable=0.80),
    methods=_OPEN,
    undefined="there is no expected outcome with highlights, or no evaluator decides whether one is correct",
)
required_field_presence_rate = Metric(
    id="required_field_presence_rate",
    title="Required Field Presence Rate",
    meaning="Of the fields that the reference extracts, the share that the model filled: not null, blank, "
    '"N/A", "unknown" or "none". One that the reference leaves empty counts as filled where the model names it.',
    formula="fields_present_and_non_empty / total_required_fields_in_expected_outcome",
    source=f"{SOURCE}, Metric 6; rubrics §5",
    measure=required_fields,
    bands=at_least(good=0.90, acceptable=0.75),
    undefined="there is no expected outcome with call_extracted_info",
)
fabrication_free_rate = Metric(
    id="fabrication_free_rate",
    title="Fabrication-Free Rate",
    meaning="Of the facts in the model's summary (purpose, highlights, filled fields), the share that the transcript "
    "or the reference supports. Words alone notice figures and names that are made up, and nothing else; a judge does.",
    formula="1 − fabricated_facts / total_facts_in_model_summary",
    source=f"{SOURCE}, Metric 7; rubrics §5, §9",
    measure=fabrication_free,
    bands=at_least(good=1.0, acceptable=0.98),
    methods=_OPEN,
    undefined="there is no expected outcome with a summary, or no evaluator decides whether a fact is supported",
)
summary_score = _sub_score(
    "summary",
    "Summary Sub-Score",
    (call_intent_match, 0.30),
    (highlight_recall_rate, 0.10),
    (highlight_correctness_rate, 0.10),
    (required_field_presence_rate, 0.20),
    (fabrication_free_rate, 0.30),
    methods=_ALIKE,
)

# -- Part 3: Emotion

dominant_emotion_correctness = pass_or_fail(
    id="dominant_emotion_correctness",
    title="Dominant Emotion Correctness",
    meaning="Whether the model's strongest emotion is the reference's (all of them, where several tie); 1 or 0.",
    formula="1 if model's top emotion matches expected_outcome's top emotion, else 0",
    source=f"{SOURCE}, Metric 8; rubrics §5",
    measure=dominant_emotion,
    undefined="there is no expected outcome with emotions",
)
emotion_score = _sub_score("emotion", "Part 3", (dominant_emotion_correctness, 1.0))

_CRITERIA = (
    Criterion(metric=response_structure_compliance, prerequisite=True),
    Criterion(metric=sentiment_accuracy, weight=SENTIMENT * 0.60),
    Criterion(metric=sentiment_macro_f1, weight=SENTIMENT * 0.40),
    Criterion(metric=missing_sentiment_labels, blocker=Blocker(effect=Effect.INVALID, above=2)),
    # 1.0, 0.5 and 0.0 are its only values: below 0.5 is the seed's "= 0.0".
    Criterion(metric=call_intent_match, weight=SUMMARY * 0.30, blocker=Blocker(effect=Effect.INVALID, below=0.5)),
    Criterion(metric=highlight_recall_rate, weight=SUMMARY * 0.10),
    Criterion(metric=highlight_correctness_rate, weight=SUMMARY * 0.10),
    Criterion(metric=required_field_presence_rate, weight=SUMMARY * 0.20),
    # Hallucination rate > 3 %.
    Criterion(metric=fabrication_free_rate, weight=SUMMARY * 0.30, blocker=Blocker(effect=Effect.INVALID, below=0.97)),
    Criterion(metric=dominant_emotion_correctness, weight=EMOTION),
    Criterion(metric=sentiment_score),
    Criterion(metric=summary_score),
    Criterion(metric=emotion_score),
)

RUBRIC = Rubric(
    id="text",
    title="Text Analysis",
    source="seed 000, Task 3; rubrics §5",
    formula="0.30 × sentiment_score + 0.50 × summary_score + 0.20 × emotion_score; "
    "invalid if response_structure_compliance = 0, call_intent_match = 0.0, missing_sentiment_labels > 2 "
    "or hallucination rate (1 − fabrication_free_rate) > 3 %",
    criteria=_CRITERIA,
    pass_mark=derived_pass_mark(*_CRITERIA),
)
