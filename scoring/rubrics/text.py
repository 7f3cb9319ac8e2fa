"""text: sentiment, summary and emotion of a call against a human analyst's (seed 000, Task 3; rubrics §5)."""

from __future__ import annotations

from functools import partial

from sidejudge.scoring.metrics.grounding import fabrication_free_rate
from sidejudge.scoring.metrics.metric import Metric, weighted
from sidejudge.scoring.metrics.sentiment import (
    dominant_emotion_correctness,
    expected_emotions,
    missing_sentiment_labels,
    read_labels,
    sentiment_accuracy,
    sentiment_macro_f1,
)
from sidejudge.scoring.metrics.structure import structure_compliance
from sidejudge.scoring.metrics.summary import (
    ALIKE,
    call_intent_match,
    highlight_correctness_rate,
    highlight_recall_rate,
    required_field_presence_rate,
    summaries,
)
from sidejudge.scoring.result.result import Blocker, Effect, Method
from sidejudge.scoring.verdict.rubric import Criterion, Rubric, derived_pass_mark

SOURCE = "seed 000, Task 3"
SENTIMENT, SUMMARY, EMOTION = 0.30, 0.50, 0.20
"""The weight of each part in the text score. A metric's weight is its share of its part times the part's weight."""


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
sentiment_score = _sub_score("sentiment", "Sentiment Sub-Score", (sentiment_accuracy, 0.60), (sentiment_macro_f1, 0.40))
summary_score = _sub_score(
    "summary",
    "Summary Sub-Score",
    (call_intent_match, 0.30),
    (highlight_recall_rate, 0.10),
    (highlight_correctness_rate, 0.10),
    (required_field_presence_rate, 0.20),
    (fabrication_free_rate, 0.30),
    methods=ALIKE,
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
