"""The aggregates of a run, held against numpy and against the seed's formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Method, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.runs.aggregates import Accumulator, read_sample

AT = "2026-01-01T00:00:00Z"
CASES = st.fixed_dictionaries(
    {},
    optional={
        "latency_e2e_ms": st.floats(0, 60_000),
        "latency_model_ms": st.floats(0, 60_000),
        "input_tokens": st.integers(0, 9000),
        "output_tokens": st.integers(0, 3000),
        "timed_out": st.booleans(),
    },
)
GRADES = st.none() | st.tuples(st.integers(0, 2), st.integers(0, 2))


def verdict(about, grade):
    def answer(*_):
        if grade is None:
            return NoAnswer("parse_error: not JSON", failed=True)
        value = {"accuracy_score": grade[0], "faithfulness_score": grade[1], "rationale": "Because."}
        return Answer(value=value, method=Method.JUDGE)

    return score(Case(case_id="c", model_output="Paris", **about), RUBRICS["answer"], answer=answer, created_at=AT)


def aggregated(verdicts):
    run = Accumulator()
    for each in verdicts:
        run.add(read_sample(each.to_json() if hasattr(each, "to_json") else each))
    return run.aggregates()


def assert_is(figure, expected):
    """A figure is the number expected, or unavailable where none is."""
    if expected is None:
        assert isinstance(figure, Unavailable)
        assert figure.reason
    else:
        assert figure == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(CASES, GRADES), max_size=25))
def test_every_figure_is_what_numpy_and_the_seeds_formulas_say(samples):
    verdicts = [verdict(about, grade) for about, grade in samples]
    run = aggregated(verdicts)
    cases = [about for about, _ in samples]
    graded = [grade for _, grade in samples if grade is not None]
    accuracy, faithfulness = [g[0] for g in graded], [g[1] for g in graded]
    figures = run.figures
    mean = lambda values: float(np.mean(values)) if values else None  # noqa: E731  # a formula, named where it is used

    assert_is(figures["accuracy_mean"], mean(accuracy))
    assert_is(figures["accuracy_full_credit_rate"], mean([a == 2 for a in accuracy]))
    assert_is(figures["faithfulness_mean"], mean(faithfulness))
    assert_is(figures["faithfulness_failure_rate"], mean([f == 0 for f in faithfulness]))
    for name in ("latency_e2e", "latency_model"):
        known = [c[f"{name}_ms"] for c in cases if f"{name}_ms" in c]
        for q in (50, 95):
            expected = float(np.percentile(known, q, method="linear")) if known else None
            assert_is(figures[f"{name}_p{q}_ms"], expected)
    inputs = [c["input_tokens"] for c in cases if "input_tokens" in c]
    outputs = [c["output_tokens"] for c in cases if "output_tokens" in c]
    both = [(c["input_tokens"], c["output_tokens"]) for c in cases if {"input_tokens", "output_tokens"} <= set(c)]
    assert_is(figures["total_input_tokens"], sum(inputs) if inputs else None)
    assert_is(figures["total_output_tokens"], sum(outputs) if outputs else None)
    total = sum(map(sum, both)) if both else None
    assert_is(figures["total_tokens"], total)
    assert_is(figures["token_efficiency_ratio_mean"], mean([o / max(i, 1) for i, o in both]))
    per_correct = None if total is None or not graded else total / max(accuracy.count(2), 1)
    assert_is(figures["tokens_per_correct_answer"], per_correct)
    assert_is(figures["aggregate_score"], mean([v.composite for v in verdicts if v.composite is not None]))
    assert_is(figures["pass_rate"], mean([v.passed for v in verdicts if v.passed is not None]))
    assert_is(figures["evaluator_error_rate"], mean([grade is None for _, grade in samples]))
    assert_is(figures["incomplete_rate"], mean([v.passed is None for v in verdicts]))
    assert run.n == len(samples) == run.passed + run.failed + run.incomplete
    assert run.timed_out == sum(c.get("timed_out", False) for c in cases)
    assert run.evaluator_errors == len(samples) - len(graded)


@given(st.lists(st.tuples(CASES, GRADES), max_size=12), st.randoms())
def test_the_order_of_the_samples_does_not_matter(samples, chance):
    verdicts = [verdict(about, grade).to_json() for about, grade in samples]
    shuffled = list(verdicts)
    chance.shuffle(shuffled)
    assert aggregated(verdicts).figures == aggregated(shuffled).figures


@given(st.lists(st.tuples(CASES, GRADES, st.sampled_from([1, 2, 4, 8])), max_size=12))
def test_a_sample_stands_for_as_many_as_the_inverse_of_its_probability(samples):
    every = {"latency_e2e_ms": 10.0, "latency_model_ms": 5.0, "input_tokens": 7, "output_tokens": 3}
    samples = [(every, (2, 1), 1), *samples]
    drawn = [verdict(about, grade).to_json() | {"sampling_probability": 1 / weight} for about, grade, weight in samples]
    all_of_them = [verdict(about, grade) for about, grade, weight in samples for _ in range(weight)]
    run, whole = aggregated(drawn), aggregated(all_of_them)
    for name, expected in whole.figures.items():
        if not name.startswith("total_"):
            assert_is(run.figures[name], None if isinstance(expected, Unavailable) else expected)
    unweighed = aggregated([verdict(about, grade) for about, grade, _ in samples])
    for name in ("total_input_tokens", "total_output_tokens", "total_tokens"):
        assert run.figures[name] == unweighed.figures[name]
    assert (run.n, run.passed, run.known) == (unweighed.n, unweighed.passed, unweighed.known)


def test_the_per_sample_score_is_the_seeds_formula():
    stated = verdict({"latency_e2e_ms": 4000.0, "input_tokens": 2000, "output_tokens": 500}, (1, 2))
    expected = 0.45 * 1 / 2 + 0.30 * 2 / 2 + 0.15 * min(1, 3000 / 4000) + 0.10 * min(1, 2000 / 2500)
    assert aggregated([stated]).figures["aggregate_score"] == pytest.approx(expected)


def line(metric, value, **more):
    return {"metric": metric, "value": value, "status": "scored" if value is not None else "error", **more}


VALID = {"case_id": "c", "rubric": "answer", "state": "valid", "composite": 0.9, "passed": True, "scores": []}


def test_the_fields_that_the_contract_names_are_enough():
    stated = VALID | {
        "scores": [
            line("accuracy_score", 2), line("faithfulness_score", 2),
            line("latency_e2e_ms", 100, details={"timed_out": True}),
            line("total_tokens", 30, details={"input_tokens": 10, "output_tokens": 20}),
        ],
    }  # fmt: skip
    run = aggregated([stated])
    assert (run.figures["total_input_tokens"], run.figures["total_output_tokens"], run.timed_out) == (10, 20, 1)
    assert isinstance(run.figures["token_efficiency_ratio_mean"], Unavailable)


def test_why_the_first_sample_has_no_grade_is_kept():
    run = aggregated([verdict({}, (2, 2)), verdict({}, None)])
    assert run.evaluator_error == "accuracy_score error: parse_error: not JSON"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"passed": "yes"}, "passed"),
        ({"passed": 1}, "passed"),
        ({"composite": "0.9"}, "composite"),
        ({"composite": 90}, "composite"),
        ({"composite": -0.1}, "composite"),
        ({"composite": math.inf}, "composite"),
        ({"scores": None}, "scores"),
        ({"scores": {}}, "scores"),
        ({"scores": ["x"]}, "scores"),
        ({"scores": [line("accuracy_score", 1.5)]}, "accuracy_score"),
        ({"scores": [line("faithfulness_score", 3)]}, "faithfulness_score"),
        ({"scores": [line("latency_e2e_ms", -1)]}, "latency_e2e_ms"),
        ({"scores": [line("total_tokens", True)]}, "total_tokens"),
        ({"answer": {"input_tokens": 10**400}}, "input_tokens"),
    ],
)
def test_what_is_no_verdict_is_refused_by_its_field(change, field):
    with pytest.raises(ValueError, match=field):
        read_sample({**VALID, **change})
