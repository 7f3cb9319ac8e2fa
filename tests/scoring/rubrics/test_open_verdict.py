"""A verdict for those who may not see contents holds nothing that people or models wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from sidejudge.integrations.cases.lines import read_case
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.rubrics.open_verdict import open_verdict
from tests.golden.test_cases import STORIES, judged

CANARY = "zqcanary"
MARKED = {
    "input", "model_output", "expected_outcome", "transcript", "context", "system_prompt", "tools_used", "metadata",
    "expected_answer_criteria", "config", "error",
}  # fmt: skip


def marked(value):
    """The same with a canary at the end of every text; names of fields and of tools stay."""
    match value:
        case str():
            return f"{value} {CANARY}"
        case list():
            return [marked(each) for each in value]
        case dict():
            return {key: each if key == "name" else marked(each) for key, each in value.items()}
    return value


def verdict_on(path: Path, *, fields: set[str], judge_too: bool) -> dict:
    story = yaml.safe_load(path.read_text(encoding="utf-8"))
    case = {name: marked(each) if name in fields else each for name, each in story["case"].items()}
    tools = story["case"].get("tools_used") or []
    if all(isinstance(each, str) for each in tools):
        case["tools_used"] = tools
    judge = story.get("judge")

    def answer(case, question):
        value = None if judge is None else judged(judge, question)
        if value is None:
            return lexical.answer(case, question)
        return Answer(value=marked(value) if judge_too else value, method=Method.JUDGE)

    read = read_case(json.dumps({"case_id": path.stem, **case}), 1)
    return score(read, RUBRICS[path.parent.name], answer=answer, created_at="2026-01-01T00:00:00Z").to_json()


@pytest.mark.parametrize("judge_too", [False, True])
@pytest.mark.parametrize("path", STORIES, ids=[f"{path.parent.name}/{path.stem}" for path in STORIES])
def test_no_text_of_a_case_or_of_a_judge_is_in_an_open_verdict(path, judge_too):
    for fields in ({"model_output"}, MARKED):
        verdict = verdict_on(path, fields=fields, judge_too=judge_too)
        shown = open_verdict(verdict)
        assert CANARY not in json.dumps(shown)
        assert set(verdict) - set(shown) <= set(shown.get("withheld", ()))
        for name in ("composite", "passed", "state", "coverage", "rubric"):
            assert shown[name] == verdict[name]
        assert [each["value"] for each in shown["scores"]] == [each["value"] for each in verdict["scores"]]


def test_whole_verdicts_do_quote_so_that_the_canaries_prove_something():
    quoting = {
        (path.parent.name, each["metric"], field)
        for path in STORIES
        for fields in ({"model_output"}, MARKED)
        for each in verdict_on(path, fields=fields, judge_too=True)["scores"]
        for field in ("reason", "details")
        if CANARY in json.dumps(each[field])
    }
    assert len(quoting) >= 30
    assert len({rubric for rubric, _, _ in quoting}) >= 6


def test_names_of_tools_stay_in_a_workflow_and_only_there():
    details = {"included": ["lookup"], "missing": ["refund"], "unexpected": []}
    line = {"metric": "tools", "value": 0.5, "reason": "", "details": details}
    assert open_verdict({"rubric": "workflow", "scores": [line]})["scores"][0]["details"] == details
    assert open_verdict({"rubric": "qa", "scores": [line]})["scores"][0]["details"] == {"unexpected": []}
