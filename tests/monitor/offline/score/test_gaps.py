"""Gaps: what is told of incomplete verdicts."""

from __future__ import annotations

from sidejudge.monitor.offline.score.tally import Gaps
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import nobody, score
from sidejudge.scoring.rubrics import RUBRICS


def reported(rubric, **about):
    gaps = Gaps()
    case = Case(case_id="c", model_output="Paris", **about)
    gaps.add(score(case, RUBRICS[rubric], answer=nobody, created_at="2026-11-21T00:00:00Z").to_json())
    return list(gaps.reported())


def test_a_metric_that_is_only_shown_is_no_reason_for_an_incomplete_verdict():
    lines = reported("answer", latency_e2e_ms=10.0, input_tokens=5)
    assert "accuracy_score" in lines[0]
    assert any("total_tokens" in line for line in lines)
    assert not any("latency_model_ms" in line for line in lines)


def test_what_blocks_without_weight_is_one():
    assert any("response_structure_compliance" in line for line in reported("qa"))


def test_who_is_said_to_be_needed_is_who_can_tell():
    """A grade is a judge's: embeddings would not help. A cosine is no judge's."""
    (shown,) = [line for line in worded("answer") if "accuracy_score" in line]
    assert "it needs a judge" in shown
    assert "embeddings" not in "".join(worded("answer"))
    sentence = {"source_id": 1, "source_text": "x", "translated_text": "Kunde Erstattung"}
    lists = {"domain_terms_handled": [], "named_entities_handled": []}
    sentences = {"full_translation": "Kunde", "sentence_translations": [sentence], **lists}
    reported_of = worded("translation", expected_outcome=sentences, config={"target_language": "hi"})
    assert "remedy: configure embeddings (evaluators.embedding)" in reported_of


def worded(rubric, **about):
    gaps = Gaps()
    other = {"sentence_translations": [{"source_id": 1, "source_text": "x", "translated_text": "Anders"}]}
    output = {**about["expected_outcome"], **other} if about else "Paris"
    gaps.add(
        score(
            Case(case_id="c", model_output=output, **about), RUBRICS[rubric], created_at="2026-11-21T00:00:00Z"
        ).to_json()
    )
    return list(gaps.reported())
