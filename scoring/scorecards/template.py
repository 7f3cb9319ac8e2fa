"""The scorecard's rows, in the order and the words of seed 000's Scorecard Template, each declared only here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sidejudge.scoring.verdict.rubric import Criterion, Rubric

LEGEND = "`[!]` = Blocker — breach disqualifies the model for that task."


class RowKind(StrEnum):
    """The kind of a row."""

    HEADING = "heading"
    METRIC = "metric"
    BENCHMARK = "benchmark"
    """A binary; its raw value stands beside it."""
    SCORE = "score"
    """The composite of a rubric."""
    FINAL = "final"


class Unit(StrEnum):
    """The unit in which people read a row's number."""

    RATIO = "ratio"
    PERCENT = "percent"
    COUNT = "count"
    DOLLARS = "dollars"
    RANK = "rank"
    YES_NO = "yes_no"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorecardRow:
    """A row of the template. ``metric`` is the id of the metric, or of a value that the last section computes.

    ``blocker`` is the template's ``[!]``. ``unit`` is the unit of the value, for a benchmark of its raw value. ``own``
    is the rubric where it is a custom one.
    """

    title: str
    threshold: str
    kind: RowKind
    rubric: str | None = None
    metric: str | None = None
    blocker: bool = False
    unit: Unit = Unit.RATIO
    own: Rubric | None = None


def _section(
    rubric: str, heading: str, *rows: ScorecardRow, total: str, range_: str = "0.0 – 1.0"
) -> tuple[ScorecardRow, ...]:
    score = ScorecardRow(title=total, threshold=range_, kind=RowKind.SCORE, rubric=rubric)
    return (ScorecardRow(title=heading, threshold="", kind=RowKind.HEADING, rubric=rubric), *rows, score)


def _metric(
    at: str,
    title: str,
    threshold: str,
    *,
    blocker: bool = False,
    unit: Unit = Unit.RATIO,
    kind: RowKind = RowKind.METRIC,
) -> ScorecardRow:
    rubric, _, metric = at.partition(".")
    return ScorecardRow(
        title=title, threshold=threshold, kind=kind, rubric=rubric, metric=metric, blocker=blocker, unit=unit
    )


def _blocker(at: str, title: str, threshold: str, unit: Unit = Unit.RATIO) -> ScorecardRow:
    return _metric(at, title, threshold, blocker=True, unit=unit)


def _structure(rubric: str) -> ScorecardRow:
    return _blocker(f"{rubric}.response_structure_compliance", "Response Structure Compliance", "must = 1")


def _benchmark(metric: str, title: str, threshold: str, unit: Unit = Unit.RATIO) -> ScorecardRow:
    return _metric(f"benchmarks.{metric}", title, threshold, unit=unit, kind=RowKind.BENCHMARK)


def _final(what: str, title: str, threshold: str, unit: Unit) -> ScorecardRow:
    return ScorecardRow(title=title, threshold=threshold, kind=RowKind.FINAL, metric=what, unit=unit)


ROWS: tuple[ScorecardRow, ...] = (
    *_section(
        "qa", "QA TASK METRICS",
        _metric("qa.question_score_accuracy", "Question Score Accuracy", ">= 0.95"),
        _metric("qa.score_gap_accuracy", "Score Gap Accuracy", ">= 0.90"),
        _metric("qa.evidence_backed_reasoning", "Evidence-Backed Reasoning", ">= 0.90"),
        _blocker("qa.compliance_false_pass_rate", "Compliance False Pass Rate", "<= 1% | > 3% blocker", Unit.PERCENT),
        _structure("qa"),
        total="QA Score",
    ),
    *_section(
        "entity", "ENTITY TASK METRICS",
        _metric("entity.keyword_f1", "Keyword F1", ">= 0.90"),
        _metric("entity.topic_f1", "Topic F1", ">= 0.88"),
        _blocker("entity.configured_entity_compliance", "Configured Entity Compliance", ">= 0.95 | < 0.95 blocker"),
        _metric("entity.cross_language_match_rate", "Cross-Language Match Rate", ">= 0.90"),
        _blocker("entity.fabricated_entity_count", "Fabricated Entity Count", "0 | > 2 blocker", Unit.COUNT),
        _structure("entity"),
        total="Entity Score",
    ),
    *_section(
        "text", "TEXT TASK METRICS",
        _metric("text.sentiment_accuracy", "Per-Sentence Sentiment Accuracy", ">= 0.88"),
        _metric("text.sentiment_macro_f1", "Sentiment Macro F1", ">= 0.85"),
        _blocker("text.missing_sentiment_labels", "Missing Sentiment Labels", "0 | > 2 blocker", Unit.COUNT),
        _blocker("text.call_intent_match", "Call Intent Match", "1.0 | 0.0 = blocker"),
        _metric("text.highlight_recall_rate", "Highlight Recall Rate", ">= 0.85"),
        _metric("text.highlight_correctness_rate", "Highlight Correctness Rate", ">= 0.90"),
        _metric("text.required_field_presence_rate", "Required Field Presence Rate", ">= 0.90"),
        _blocker("text.fabrication_free_rate", "Fabrication-Free Rate", "> 3% hallucination = blocker"),
        _metric("text.dominant_emotion_correctness", "Dominant Emotion Correctness", "= 1"),
        _structure("text"),
        total="Text Score",
    ),
    *_section(
        "translation", "TRANSLATION TASK METRICS",
        _metric("translation.translation_completeness_rate", "Translation Completeness Rate", "1.00"),
        _metric("translation.sentence_meaning_accuracy", "Sentence-Level Meaning Accuracy", ">= 0.85"),
        _metric("translation.target_language_fluency", "Target Language Fluency Score", ">= 0.85"),
        _blocker("translation.domain_term_preservation_rate", "Domain Term Preservation Rate",
                 ">= 0.95 | < 0.90 blocker"),
        _metric("translation.proper_noun_preservation_rate", "Proper Noun Preservation Rate", ">= 0.95"),
        _blocker("translation.critical_fact_preservation_rate", "Critical Fact Preservation Rate",
                 ">= 0.97 | < 0.97 blocker"),
        _structure("translation"),
        total="Translation Score",
    ),
    *_section(
        "benchmarks", "STANDARD BENCHMARKS — OPTIONAL (0 or 1)",
        _benchmark("faithfulness", "Faithfulness", "1 if >= 0.90"),
        _benchmark("hallucination_rate", "Hallucination Rate", "1 if <= 2%", Unit.PERCENT),
        _benchmark("answer_relevancy", "Answer Relevancy", "1 if >= 0.85"),
        _benchmark("answer_correctness", "Answer Correctness", "1 if >= 0.85"),
        _benchmark("contextual_precision", "Contextual Precision", "1 if >= 0.85"),
        _benchmark("contextual_recall", "Contextual Recall", "1 if >= 0.85"),
        _benchmark("contextual_relevancy", "Contextual Relevancy", "1 if >= 0.85"),
        _benchmark("argument_correctness", "Argument Correctness", "1 if >= 0.85"),
        _benchmark("instruction_following", "Instruction Following", "1 if >= 0.95"),
        _benchmark("exact_match", "Exact Match", "1 if >= 0.90"),
        _benchmark("consistency", "Consistency Score", "1 if >= 0.90"),
        total="Benchmark Score", range_=">= 0.80 recommended",
    ),
    ScorecardRow(title="FINAL", threshold="", kind=RowKind.HEADING),
    _final("final_with_benchmarks", "Final Score (with benchmarks)", "Option A", Unit.RATIO),
    _final("final_without_benchmarks", "Final Score (without benchmarks)", "Option B", Unit.RATIO),
    _final("cost_per_1000_calls", "Cost per 1000 calls", "$", Unit.DOLLARS),
    _final("cost_adjusted_rank", "Cost-Adjusted Rank", "—", Unit.RANK),
    _final("any_blocker_triggered", "Any Blocker Triggered?", "Yes / No", Unit.YES_NO),
)  # fmt: skip
"""Every row, headings included."""

SHOWN: dict[str, frozenset[str]] = {
    rubric: frozenset(row.metric for row in ROWS if row.rubric == rubric and row.metric is not None)
    for rubric in dict.fromkeys(row.rubric for row in ROWS if row.rubric is not None)
}
"""The metrics that the scorecard shows, by rubric, in the order of its sections."""


def rows_of(rubric: Rubric) -> tuple[ScorecardRow, ...]:
    """The rows of a custom rubric: its metrics, and its score."""
    mark = "" if rubric.pass_mark is None else f">= {rubric.pass_mark / rubric.scale:g}"
    return (
        ScorecardRow(title=rubric.title.upper(), threshold="", kind=RowKind.HEADING, rubric=rubric.id, own=rubric),
        *(_own_metric(rubric, criterion) for criterion in rubric.criteria),
        ScorecardRow(title=f"{rubric.title} score", threshold=mark, kind=RowKind.SCORE, rubric=rubric.id, own=rubric),
    )


def _own_metric(rubric: Rubric, criterion: Criterion) -> ScorecardRow:
    metric, blocker = criterion.metric, criterion.blocker
    limits = [each.describe() for each in (metric.bands, blocker) if each is not None]
    return ScorecardRow(
        title=metric.title, threshold="must = 1" if criterion.prerequisite else " | ".join(limits),
        kind=RowKind.METRIC, rubric=rubric.id, metric=metric.id, blocker=blocker is not None or criterion.prerequisite,
        unit=Unit.RATIO if metric.bounds == (0.0, 1.0) else Unit.COUNT, own=rubric,
    )  # fmt: skip
