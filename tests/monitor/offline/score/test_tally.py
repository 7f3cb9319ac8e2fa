"""Tally: what a run comes to, and whether to anything; what is told of incomplete verdicts, and of the cost."""

from __future__ import annotations

import pytest

from sidejudge.integrations.provider.attempt import JudgeAttempt
from sidejudge.integrations.provider.errors import ProviderUsage
from sidejudge.monitor.offline.score.tally import Expense, Gaps, ScoreTally
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.evaluators.score import nobody, score
from sidejudge.scoring.rubrics import RUBRICS


def verdict(rubric, passed, *statuses):
    return {
        "rubric": rubric, "passed": passed, "composite": None,
        "scores": [{"metric": f"m{n}", "status": status, "reason": "r"} for n, status in enumerate(statuses)],
    }  # fmt: skip


def test_a_rubric_is_broken_when_each_of_its_verdicts_ended_in_an_error():
    tally = ScoreTally()
    assert tally.broken == []
    tally.add(verdict("a", None, "error", "scored"))
    tally.add(verdict("a", None, "unavailable", "error"))
    tally.add(verdict("b", None, "error"))
    tally.add(verdict("b", False, "scored", "error"))  # decided all the same
    tally.add(verdict("c", None, "unavailable"))  # nobody is configured who could tell: as was asked for
    assert tally.broken == ["a"]


def test_tallies_of_parts_add_up_to_that_of_the_whole_to_the_last_digit():
    composites = [0.1, 1e16, 0.2, 0.3, -1e16, 1 / 3]
    verdicts = [
        {**verdict("qa" if n % 2 else "answer", n % 3 == 0 or None, "unavailable"), "composite": composite}
        for n, composite in enumerate(composites)
    ]
    whole = ScoreTally()
    for each in verdicts:
        whole.add(each)
    for cut in range(len(verdicts) + 1):
        first, second = ScoreTally(bad_lines=1), ScoreTally(unrouted=2)
        for n, each in enumerate(verdicts):
            (first if n < cut else second).add(each)
        first.merge(second)
        assert (first.bad_lines, first.unrouted) == (1, 2)
        assert list(first.rubrics) == list(whole.rubrics)
        assert first.counts == whole.counts
        assert [c.mean_composite for c in first.rubrics.values()] == [c.mean_composite for c in whole.rubrics.values()]
        assert list(first.gaps.reported()) == list(whole.gaps.reported())


def reported(rubric, answer=nobody, output="Paris", **about):
    gaps = Gaps()
    case = Case(case_id="c", model_output=output, **about)
    gaps.add(score(case, RUBRICS[rubric], answer=answer, created_at="2026-11-21T00:00:00Z").to_json())
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
    lines = reported("answer", lexical.answer)
    (shown,) = [line for line in lines if "accuracy_score" in line]
    assert "it needs a judge" in shown
    assert "embeddings" not in "".join(lines)
    sentence = {"source_id": 1, "source_text": "x", "translated_text": "Kunde Erstattung"}
    lists = {"domain_terms_handled": [], "named_entities_handled": []}
    expected = {"full_translation": "Kunde", "sentence_translations": [sentence], **lists}
    output = {**expected, "sentence_translations": [{**sentence, "translated_text": "Anders"}]}
    lines = reported("translation", lexical.answer, output, expected_outcome=expected, config={"target_language": "hi"})
    assert "remedy: configure embeddings (evaluators.embedding)" in lines


PAID, FREE = (
    ProviderUsage(input_tokens=10, output_tokens=2, cost_usd=0.5),
    ProviderUsage(input_tokens=10, output_tokens=2),
)
UNKNOWN = ProviderUsage(input_tokens=10, output_tokens=2, cost_usd=None)


@pytest.mark.parametrize(
    ("requests", "hits", "line"),
    [
        ([], 0, None),
        ([(PAID, None)], 0, "judge: 1 request, 10 + 2 tokens, 0.5000 USD"),
        ([(PAID, None), (PAID, "parse_error")], 0, "judge: 2 requests (1 in vain), 20 + 4 tokens, 1.0000 USD"),
        ([(FREE, "overloaded")], 0, "judge: 1 request (1 in vain), 10 + 2 tokens, 0.0000 USD"),
        ([(UNKNOWN, None)] * 2, 0, "judge: 2 requests, 20 + 4 tokens, cost not known"),
        (
            [(UNKNOWN, None), (PAID, None)], 0,
            "judge: 2 requests, 20 + 4 tokens, 0.5000 USD, and 1 of unknown price",
        ),
        ([], 3, "judge: 0 requests, 0 + 0 tokens, 0.0000 USD, 3 answers out of the cache"),
    ],
)  # fmt: skip
def test_what_was_asked_and_paid_is_one_line(requests, hits, line):
    expense = Expense()
    for usage, failure in requests:
        expense.attempted(JudgeAttempt(model="m", duration_s=1.0, usage=usage, failure=failure))
    expense.looked_up(hits=hits, misses=0)
    assert expense.reported() == line
