"""No rubric takes long over a text that was made for it: the time grows hardly faster than the text."""

from __future__ import annotations

import json
import time

import pytest

from sidejudge.integrations.cases.lines import read_case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.rubrics import RUBRICS

SMALL, LARGE = 6_000, 24_000
MOST_S = 4.0
EXPONENT = 1.5
SHORTEST_S = 0.2
"""CPU time from which on growth is looked at: below it, it is noise."""
PIECES = {
    "phrases": "\ufdfa", "numbers": "7 1.5 3% $20 ", "quotes": "'\"", "lines": "\n- x\n", "no spaces": "漢字仮名交",
    "accents": "e\u0301\u0301", "lists": "a, b, ", "initials": "A.B. ", "brackets": "[{(",
    "sentences": "No. Yes! Not so? ",
    "objects": '{"a":[1,{"b":"c"}]},', "dates": "2024-01-02 12:30 ", "names": "Alice Bob Carol ", "ids": "id_1a-3c4d ",
    "tables": "| a | b |\n", "emoji": "\U0001f600",
}  # fmt: skip


def case(piece: str, size: int):
    """A case all of whose parts hold the text, each as long as it may be there."""
    text = piece * (size // len(piece))
    question = {"question": text[:2000], "score": 5, "reason": text[: size // 8], "score_type": "PASS_FAIL"}
    parts = [text[at : at + 50] for at in range(0, size, 400)]
    output = {
        "questions": [{"question_id": f"q{n}", **question} for n in range(8)], "detected_keywords": parts,
        "summary": {"x": text}, "sentence_translations": parts, "valid_entity_set": parts,
    }  # fmt: skip
    line = {
        "case_id": "c", "input": text, "transcript": text, "context": [text], "system_prompt": text,
        "tools_used": [{"name": "x", "arguments": {"a": text}, "result": text}] * 3, "agents_called": ["a"],
        "model_output": output, "expected_outcome": output,
    }  # fmt: skip
    return read_case(json.dumps(line), 1)


def seconds(piece: str, size: int, rubric: str, times: int = 1) -> float:
    """CPU time of this thread alone, the least of several: what other tests left in the process is not counted."""
    taken = []
    for _ in range(times):
        made, began = case(piece, size), time.thread_time()
        score(made, RUBRICS[rubric], created_at="2026-01-01T00:00:00Z")
        taken.append(time.thread_time() - began)
    return min(taken)


def too_long(piece: str, rubric: str, times: int) -> bool:
    took = seconds(piece, LARGE, rubric, times)
    grown = took > SHORTEST_S and took > seconds(piece, SMALL, rubric, times) * (LARGE / SMALL) ** EXPONENT
    return grown or took > MOST_S


@pytest.mark.parametrize("rubric", RUBRICS)
def test_no_text_takes_a_rubric_long_and_twice_as_much_of_it_hardly_more_than_twice_as_long(rubric):
    # A collection of garbage may fall into one measurement; three of them are not all hit.
    slow = [name for name, piece in PIECES.items() if too_long(piece, rubric, 1) and too_long(piece, rubric, 3)]
    assert not slow
