"""Labelled examples of the ready rubrics: enough, balanced, none twice, and a judge that leans is found by them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import pytest

from sidejudge.monitor.cli.errors import CommandError
from sidejudge.monitor.cli.try_judge import labelled
from sidejudge.monitor.config import load
from sidejudge.monitor.config.library import EXPECT, library
from sidejudge.scoring.calibration.judge_report import Effort, GoldenAnswer, judge_report, unproven
from sidejudge.scoring.judging.golden import facts, is_right
from sidejudge.scoring.judging.request import requests

pytest.importorskip("cel_expr_python")
JUDGED = ("answer-relevance", "completeness", "context-relevance", "conversation-resolution", "faithfulness",
          "instruction-following", "rag-triad", "tone", "tool-call-quality", "toxicity")  # fmt: skip
EACH = pytest.mark.parametrize("name", JUDGED)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The questions about the examples of each judged rubric."""
    config = tmp_path_factory.mktemp("labelled") / "sidejudge.yaml"
    config.write_text("sampling: {rate: 1.0}\n")
    return {name: labelled(load(config, {}), [name]) for name in JUDGED}


def offered(question):
    """Every answer that a question may have, as its facts."""
    match question.kind:
        case "boolean":
            values = (True, False)
        case "scale":
            values = range(int(question.choices[0]), int(question.choices[1]) + 1)
        case "findings":
            values = ((), ("one",), ("one", "two"), ("one",) * 8)
        case _:
            values = question.choices
    return [facts(value) for value in values]


def report(cases, pick):
    answers = [
        GoldenAnswer(question=golden, given=(pick(golden, offered(golden.question)),))
        for case in cases
        for golden in case.questions
    ]
    return judge_report("judge", answers, Effort(), cases=len(cases), timeout_s=60.0)


@EACH
def test_a_judged_rubric_has_forty_examples_in_balance_and_none_twice(name, asked):
    by_metric = defaultdict(list)
    shown = Counter()
    for case in asked[name]:
        for golden in case.questions:
            right = [is_right(golden.right, each) for each in offered(golden.question)]
            assert any(right)
            assert not all(right)
            by_metric[golden.metric].append(right)
        ((request, *_), refused) = requests(case.case, [g.question for g in case.questions], context_tokens=32_000)
        assert not refused
        stated = [message["content"].replace(each, "") for message in request.messages for each in request.ids]
        shown["".join(stated)] += 1
    rag = name == "rag-triad"  # two of its three questions do not depend on the whole case
    for metric, listed in by_metric.items():
        assert len(listed) >= 40, metric
        (_, most), *_ = Counter(map(tuple, listed)).most_common()
        assert most <= 0.65 * len(listed), metric
    assert rag or max(shown.values()) == 1


def test_every_rubric_that_asks_a_judge_has_its_examples_here():
    asks = {name for name, ready in library().items() if "ask" in json.dumps(ready.declared)}
    assert asks == set(JUDGED)
    ids = {name: [each["case_id"] for each in ready.examples] for name, ready in library().items()}
    assert all(len(set(each)) == len(each) for each in ids.values())
    assert all(each[EXPECT] for ready in library().values() for each in ready.examples)


@EACH
def test_a_judge_that_is_right_is_not_blamed_and_one_that_always_gives_one_answer_is_found(name, asked):
    def right(golden, answers):
        return next(each for each in answers if is_right(golden.right, each))

    good = report(asked[name], right)
    assert good.findings == ()
    assert unproven(good) == []
    for place in (0, 1, -1):
        assert report(asked[name], lambda _, answers, place=place: answers[place]).findings


def test_a_judge_that_finds_nothing_is_lenient(asked):
    found = report(asked["faithfulness"], lambda _, answers: answers[0]).findings
    assert any(each.startswith("lenient: 0%") for each in found)


def test_what_has_no_examples_or_asks_no_judge_is_refused(tmp_path):
    (tmp_path / "sidejudge.yaml").write_text("sampling: {rate: 1.0}\n")
    config = load(tmp_path / "sidejudge.yaml", {})
    for name, words in (("toxicty", "no examples of 'toxicty'"), ("json-validity", "asks no judge")):
        with pytest.raises(CommandError, match=words):
            labelled(config, [name])


def test_the_wording_of_the_configuration_is_the_one_that_is_asked(tmp_path):
    (tmp_path / "sidejudge.yaml").write_text(
        "rubrics: {toxicity: {metrics: [{id: toxic, ask: 'Is {{output}} rude?', answer: boolean, passes: false}]}}\n"
    )
    ((case, *_),) = (labelled(load(tmp_path / "sidejudge.yaml", {}), ["toxicity"]),)
    assert "rude" in case.questions[0].question.instructions
