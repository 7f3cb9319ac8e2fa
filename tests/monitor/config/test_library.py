"""Ready rubrics: each is valid, says where it comes from, and its examples come out as they are labelled."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from sidejudge.integrations.cases.lines import read_case
from sidejudge.monitor.cli.rubrics import rubrics
from sidejudge.monitor.config import load
from sidejudge.monitor.config.library import library
from sidejudge.monitor.config.rubrics import configured
from sidejudge.scoring.declared.metric import Sources
from sidejudge.scoring.declared.rubric import declared_rubric
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Method, Scored
from sidejudge.scoring.rubrics import RUBRICS

pytest.importorskip("cel_expr_python")
pytest.importorskip("sqlglot")
LIBRARY = library()
EACH = pytest.mark.parametrize("name", LIBRARY)


def test_the_library_has_what_people_ask_for():
    assert set(LIBRARY) >= {
        "answer-relevance", "faithfulness", "context-relevance", "completeness", "instruction-following", "tone",
        "toxicity", "refusal", "pii", "sql-validity", "json-validity", "rag-triad", "tool-call-quality",
        "conversation-resolution",
    }  # fmt: skip


def rubric_of(name):
    return declared_rubric(name, LIBRARY[name].declared, Sources(rubrics=RUBRICS))


def case_of(example):
    return read_case(json.dumps({key: value for key, value in example.items() if key != "expect"}), 1)


@EACH
def test_a_ready_rubric_compiles_and_names_its_source(name):
    assert rubric_of(name).metrics
    assert LIBRARY[name].source
    assert LIBRARY[name].title


@EACH
def test_examples_show_both_ends_of_every_metric(name):
    rubric, seen = rubric_of(name), {}
    for example in LIBRARY[name].examples:
        assert set(example["expect"]) == set(rubric.metric_ids)
        for metric, wanted in example["expect"].items():
            seen.setdefault(metric, set()).add(json.dumps(wanted))
    assert all(len(each) > 1 for each in seen.values())


@EACH
def test_what_is_decided_without_a_judge_comes_out_as_labelled(name):
    rubric = rubric_of(name)
    for example in LIBRARY[name].examples:
        case = case_of(example)
        for metric in rubric.metrics:
            if metric.methods != (Method.JUDGE,):
                found = metric.start(case)
                assert isinstance(found, Scored), (example["case_id"], metric.id, found)
                assert found.value == float(example["expect"][metric.id]), (example["case_id"], metric.id)


@EACH
def test_every_question_can_be_asked_of_its_examples_and_a_right_answer_is_valued_as_labelled(name):
    rubric = rubric_of(name)
    answers = {}

    def answer(_case, question):
        metric = question.metric.rpartition("-")[0]
        return Answer(value=answers[metric](question), method=Method.JUDGE, reason="r")

    for example in LIBRARY[name].examples:
        by_id = {each.metric.id: each for each in rubric.criteria}
        answers = {metric: right(wanted, by_id[metric].metric) for metric, wanted in example["expect"].items()}
        verdict = score(case_of(example), rubric, answer=answer, created_at="2026-01-01T00:00:00Z")
        for each in verdict.scores:
            assert each.result.status in ("scored", "not_applicable"), (example["case_id"], each.metric, each.result)


def right(wanted, metric):
    """An answer that is right by the label, of whatever kind the question asks for."""

    def answer(question):
        if question.kind == "boolean":
            return wanted if '"passes": [true]' in metric.formula else not wanted
        if question.kind == "findings":
            return tuple("a finding" for _ in range(wanted[0]))
        if question.kind == "one_of":
            return question.choices[0 if wanted in (True, [1, 1]) else -1]
        return wanted[0]

    return answer


def test_a_ready_rubric_is_added_to_a_folder_once_and_can_be_used_from_there(tmp_path):
    def run(*args):
        return CliRunner().invoke(rubrics, args)

    assert "faithfulness" in run("list").output
    assert run("show", "pii").output == LIBRARY["pii"].text
    done = run("add", "pii", "--to", str(tmp_path / "own"), "--examples")
    assert done.exit_code == 0, done.output
    assert "is there already" in str(run("add", "pii", "--to", str(tmp_path / "own")).exception)
    assert "did you mean" in run("show", "piii").exception.remedy
    config = tmp_path / "sidejudge.yaml"
    config.write_text("rubric_files: ['own/*.yaml']\nroutes: [{rubrics: [pii]}]\n")
    assert "pii" in configured(load(config, {}))
