"""Which settings a verdict carries: those that its values depend on, and no others."""

from __future__ import annotations

import pytest

from sidejudge.monitor.config import Config
from sidejudge.monitor.offline.score.judged_with import changed, judged_with

MODEL = {"model": "openai/a-1"}
STRONG = {"judge": MODEL, "judges": {"strong": {"model": "openai/b-2"}}}


def of(rubric: str, evaluators: dict, rubrics: dict | None = None) -> dict:
    found = dict(judged_with(Config(evaluators=evaluators, rubrics=rubrics or {}))[rubric])
    if found:
        assert len(found.pop("prompts")) == 16
    return found


@pytest.mark.parametrize(
    ("judge", "stated"),
    [
        (MODEL, {"model": "openai/a-1"}),
        (
            {**MODEL, "panel": ["openai/c-1", "openai/d-1"]},
            {"model": "openai/a-1", "panel": ["openai/c-1", "openai/d-1"]},
        ),
        ({**MODEL, "seed": 7, "temperature": 0.0}, {"model": "openai/a-1", "seed": 7}),
        (
            {**MODEL, "api_base": "http://u:secret@h", "api_key": "k", "retries": 9, "timeout": "9s"},
            {"model": "openai/a-1"},
        ),
        ({**MODEL, "redact_patterns": ["x+"]}, {"model": "openai/a-1", "redact_patterns": ["x+"]}),
    ],
)
def test_a_verdict_carries_what_changes_an_answer(judge, stated):
    assert of("quality", {"judge": judge}) == {f"evaluators.judge.{name}": value for name, value in stated.items()}


def test_a_rubric_that_no_judge_answers_carries_nothing():
    assert of("run_health", {"judge": MODEL}) == of("quality", {}) == of("quality", {"order": ["lexical"]}) == {}


def test_the_judges_of_a_rubric_and_their_cascade_are_its_own():
    named = of("qa", STRONG, {"qa": {"judge": ["default", "strong"]}})
    assert named == {
        "evaluators.judge.model": "openai/a-1", "evaluators.judges.strong.model": "openai/b-2",
        "rubrics.qa.judge": ["default", "strong"],
    }  # fmt: skip
    rarer = {**STRONG, "cascade": {"rate": 0.01}}
    assert of("qa", rarer, {"qa": {"judge": ["default", "strong"]}}) == {**named, "evaluators.cascade.rate": 0.01}
    assert of("quality", rarer, {"qa": {"judge": "strong"}}) == {"evaluators.judge.model": "openai/a-1"}
    assert of("qa", rarer, {"qa": {"judge": "strong"}}) == {
        "evaluators.judges.strong.model": "openai/b-2", "rubrics.qa.judge": ["strong"],
    }  # fmt: skip
    assert of("qa", {**STRONG, "order": ["judge", "lexical", "embedding"]})["evaluators.order"][0] == "judge"


def test_the_first_difference_is_named_with_both_values():
    assert changed({"a": 1, "b": 2}, {"a": 1, "b": 3}) == "b has changed (was 2, now 3)"
    assert changed(None, {"a": 1}) == "a has changed (was not set, now 1)"
    assert changed({"a": 1}, {}) == "a has changed (was 1, now not set)"
    assert changed(None, {}) is changed({"a": [1]}, {"a": [1]}) is None
