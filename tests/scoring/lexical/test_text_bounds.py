"""What a text becomes when it is normalised is bounded, and so is the time that rubrics take on it."""

from __future__ import annotations

import time

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.lexical.text import fold_digits, normalise
from sidejudge.scoring.rubrics import RUBRICS


@pytest.mark.parametrize("character", ["\ufdfa", "\ufdfb", "\u33af", "\u3316", "\u1e9b\u0323", "½", "ß"])
def test_a_normal_form_is_at_most_twice_as_long(character):
    text = character * 1000
    assert len(fold_digits(text)) <= 2 * len(text) + 48
    assert len(normalise(text)) <= 4 * len(text) + 144


def test_signs_that_stand_for_a_phrase_are_still_equal_to_themselves_alone():
    assert normalise("\ufdfa") == normalise(" \ufdfa ") != normalise("\ufdfb")
    assert normalise("salam \ufdfa ok") == normalise("SALAM \ufdfa OK")


@pytest.mark.parametrize("rubric", ["entity", "text", "agent", "benchmarks"])
def test_characters_that_expand_cost_little_more_than_as_many_letters(rubric):
    def seconds(text):
        content = {
            "summary": {"call_purpose": text, "highlights": [text], "call_extracted_info": {"a": text}},
            "detected_keywords": [text], "detected_topics": [text],
        }  # fmt: skip
        case = Case(
            case_id="c", model_output=content, expected_outcome=content, transcript=f"Agent: {text}", context=(text,)
        )
        start = time.process_time()
        score(case, RUBRICS[rubric], created_at="")
        return time.process_time() - start

    plain = max(seconds("لا بأس " * 4000) for _ in range(2))
    assert seconds("\ufdfa" * 28_000) < 5 * plain + 0.5  # before: 100 times as much
