"""Slips that many make in their first rubric: each message names what to write instead."""

from __future__ import annotations

import textwrap

import pytest

from sidejudge.monitor.config import ConfigError, load

METRIC = "rubrics:\n  own:\n    metrics:\n      - {}\n"


@pytest.mark.parametrize(
    ("metric", "stated"),
    [
        ("{id: a, ask: {{output}} polite?}", "a text with {{…}} stands in quotes"),
        ("{id: a, ask: {{output}}}", "a text with {{…}} stands in quotes"),
        (r'{id: a, check: {regex: "\d+ EUR"}}', "a pattern stands in single quotes"),
        (r'{id: a, check: {regex: "\bEUR\b"}}', "write the pattern in single ones"),
        ("{check: {contains: x}}", "metrics[0].id"),
        ("{check: {contains: x}}", "is missing: each has a name of its own, such as id: no_apology"),
        ("{id: a, use: question_score_accuracy}", "did you mean qa.question_score_accuracy?"),
        ("{id: a, use: qaa.question_score_accuracy}", "did you mean qa.question_score_accuracy?"),
        ("{id: a, use: qa.question_score_acuracy}", "did you mean qa.question_score_accuracy?"),
        ('{id: a, check: {word-count: "50"}}', "a whole number such as 50, without quotation marks"),
        ('{id: a, check: {word-count: {max: "50"}}}', "write it without quotation marks"),
        ("{id: a, check: {similar: {to: x, threshold: 85}}}", "for 85 % write 0.85"),
        ("{id: a, check: {contains: x}, weight: 50%}", "for 50 % write 0.5"),
    ],
)
def test_a_slip_in_a_metric_is_answered_with_what_to_write(tmp_path, metric, stated):
    (tmp_path / "sidejudge.yaml").write_text(METRIC.format(metric))
    with pytest.raises(ConfigError) as refused:
        load(tmp_path / "sidejudge.yaml", {})
    assert stated in str(refused.value)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("sampling: {rate: 5%}", "sampling.rate: must be a number, got '5%'; for 5 % write 0.05"),
        ("alerts: {thresholds: {warning: 85}}", "must be in (0, 1], got 85; for 85 % write 0.85"),
        ("sampling: {rate: 0}", "must be in (0, 1], got 0"),
    ],
)
def test_a_percentage_is_answered_with_its_ratio(tmp_path, text, stated):
    (tmp_path / "sidejudge.yaml").write_text(textwrap.dedent(text))
    with pytest.raises(ConfigError) as refused:
        load(tmp_path / "sidejudge.yaml", {})
    found = str(refused.value).replace(f" ({tmp_path}/sidejudge.yaml, line 1)", "")
    assert found.endswith(stated)


@pytest.mark.parametrize(
    "text", ['ask: "Is {{output}} polite?"', "ask: 'Is {{output}} polite?'", "ask: Is {{output}} polite?"]
)
def test_a_question_in_quotes_or_behind_other_words_is_read(tmp_path, text):
    (tmp_path / "sidejudge.yaml").write_text(METRIC.format(f"id: a\n        {text}\n        answer: boolean"))
    load(tmp_path / "sidejudge.yaml", {})
