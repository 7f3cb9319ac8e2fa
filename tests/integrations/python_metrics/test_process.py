"""Functions of somebody's own: what they return is the result, and what they break is theirs alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sidejudge.integrations.python_metrics.process import FunctionError, FunctionProcess
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.question import Answer, run
from sidejudge.scoring.result.result import Failed, Method, NotApplicable, Scored, Unavailable

CASE = Case(case_id="c", model_output="a refund")


@pytest.fixture(scope="module")
def process():
    made = FunctionProcess([Path(__file__).parent])
    yield made
    made.close()


def called(process, name, **more):
    arguments = {"arguments": {}, "timeout_s": 5.0, **more}
    return process.call(f"acme_metrics:{name}", case=CASE, **arguments)


@pytest.mark.parametrize(
    ("name", "more", "result"),
    [
        ("truth", {}, Scored(value=1.0)),
        ("number", {"arguments": {"factor": 2}}, Scored(value=16.0)),
        ("library", {}, Scored(value=0.25)),
        ("waits", {}, Scored(value=8.0)),
        ("category", {"passes": ["short"]}, Scored(value=1.0, details={"category": "short"})),
        ("category", {}, Failed("the function returned a text; passes has to name the categories that pass")),
        ("whole", {}, Scored(value=0.5, reason="half", details={"of": "c"})),
        ("nothing", {}, Unavailable("the function returned nothing")),
        ("strange", {}, Failed("the function returned a dict, which is no result")),
        ("no_number", {}, Failed("the function returned nan, which is no result")),
        ("own", {}, Failed("acme_metrics:own: the case or the answer cannot travel: ModuleNotFoundError")),
        (
            "no_value",
            {},
            Failed("acme_metrics:no_value: what the function returned cannot travel: AttributeError"),
        ),
        ("applicable", {}, NotApplicable("no refund")),
        ("raises", {}, Failed("acme_metrics:raises: RuntimeError: no such order")),
        ("prints", {}, Scored(value=1.0)),
        (
            "yields_text",
            {},
            Failed("acme_metrics:yields_text: TypeError: the function yielded 'is it right?', which is no question"),
        ),
        (
            "yields_texts",
            {},
            Failed("acme_metrics:yields_texts: TypeError: the function yielded ['is it right?'], which is no question"),
        ),
        (
            "yields_number",
            {},
            Failed("acme_metrics:yields_number: TypeError: the function yielded 5, which is no question"),
        ),
    ],
)
def test_what_a_function_returns_is_its_result(process, name, more, result):
    assert called(process, name, **more) == result


@pytest.mark.parametrize("name", ["asks", "asks_one"])
def test_a_generator_asks_and_is_sent_the_answers(process, name):
    answer = Answer(value=(0,), method=Method.JUDGE, reason="alike")
    found = run({"m": called(process, name)}, lambda _: answer).results["m"]
    assert isinstance(found, Scored)
    assert found.value == 1.0


@pytest.mark.parametrize(
    ("name", "stated"),
    [("hangs", "took longer than 0.3 s"), ("spins", "took longer than 0.3 s"), ("dies", "ended its process")],
)
def test_a_function_that_hangs_or_dies_costs_its_metric_and_the_next_one_runs(process, name, stated):
    before = time.monotonic()
    found = called(process, name, timeout_s=0.3)
    assert isinstance(found, Failed)
    assert stated in found.reason
    assert called(process, "truth") == Scored(value=1.0)
    assert time.monotonic() - before < 30


def test_a_function_that_hangs_again_and_again_rests_and_keeps_nobody_waiting():
    process = FunctionProcess([Path(__file__).parent])
    try:
        for _ in range(3):
            called(process, "hangs", timeout_s=0.05)
        before = time.monotonic()
        found = called(process, "hangs", timeout_s=5.0)
        assert time.monotonic() - before < 1
        assert "rests for a minute" in found.reason
    finally:
        process.close()


@pytest.mark.parametrize(
    "name", ["acme_metrics:none", "no_module:f", "acme_metrics:not_a_function", "nobody-installed"]
)
def test_a_function_that_does_not_exist_is_refused_before_anything_starts(process, name):
    with pytest.raises(FunctionError, match="cannot be imported"):
        process.resolve(name)


def test_the_digest_is_of_the_source(process):
    assert process.resolve("acme_metrics:truth") != process.resolve("acme_metrics:number")


@pytest.mark.parametrize("name", ["asks", "asks_one"])
def test_a_function_that_waits_for_an_answer_survives_the_end_of_its_process_by_another(name):
    process = FunctionProcess([Path(__file__).parent])

    def answer(_):
        assert "ended its process" in called(process, "dies").reason
        return Answer(value=(0,), method=Method.JUDGE, reason="alike")

    try:
        found = run({"m": called(process, name)}, answer).results["m"]
    finally:
        process.close()
    assert isinstance(found, Scored)
    assert found.value == 1.0


def test_what_a_function_has_started_ends_with_its_process(tmp_path):
    process = FunctionProcess([Path(__file__).parent])
    try:
        found = called(process, "starts")
        assert isinstance(found, Scored)
        started = int(found.value)
        os.kill(started, 0)
    finally:
        process.close()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{started}").exists() and " Z " not in Path(f"/proc/{started}/stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_function_that_leaves_by_exit_raises_as_any_other(process):
    assert called(process, "leaves") == Failed("acme_metrics:leaves: SystemExit: 3")


def test_a_function_that_asks_without_end_is_given_up(process):
    answer = Answer(value=(0,), method=Method.JUDGE, reason="alike")
    found = run({"m": called(process, "asks_on")}, lambda _: answer).results["m"]
    assert found == Failed("acme_metrics:asks_on was given up: it asked 20 times and asks again")
