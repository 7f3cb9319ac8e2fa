"""Failures of tools, error messages as answers, refusals: on texts of many frameworks and languages, with the truth.

All of the texts were seen when the rules were made. Of 58 that were written after a first version of the rules, 10 of
30 failures were noticed and 1 of 28 others was flagged, before the rules were mended by them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sidejudge.scoring.metrics.answer_failure import answer_failure, is_refusal
from sidejudge.scoring.metrics.tool_failure import failure_of
from sidejudge.scoring.trace.span import ToolCall

DATA = Path(__file__).parent / "data"


def read(name):
    return yaml.safe_load((DATA / f"{name}.yaml").read_text(encoding="utf-8"))


def failed(result):
    return failure_of(ToolCall(name="tool", result=result)) is not None


@pytest.mark.parametrize("name", ["tool_results", "tool_results_further", "tool_results_shells"])
def test_failed_results_are_noticed_and_others_left_alone(name):
    held = read(name)
    missed = [result for result in held["failed"] if not failed(result)]
    wrong = [result for result in held["fine"] if failed(result)]
    assert len(missed) <= 0.02 * len(held["failed"]), missed
    assert len(wrong) <= 0.02 * len(held["fine"]), wrong


def test_an_error_message_as_an_answer_is_noticed():
    assert [answer for asked, answer in read("answers")["errors"] if answer_failure(answer, asked) is None] == []


def test_a_refusal_is_noticed_in_ten_languages():
    assert [answer for _, answer in read("answers")["refusals"] if not is_refusal(answer)] == []


def test_an_assistant_that_explains_an_error_has_answered():
    wrong = [answer for asked, answer in read("answers")["fine"] if answer_failure(answer, asked) or is_refusal(answer)]
    assert wrong == []


def test_an_answer_that_was_meant_to_be_is_neither():
    refusals = [answer for asked, answer in read("answers")["refusals"] if answer_failure(answer, asked)]
    assert refusals == []
