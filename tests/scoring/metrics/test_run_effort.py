"""What a run took, against what is usual and against its budget."""

from __future__ import annotations

import pytest
from msgspec import structs

from sidejudge.scoring.case.case import Case, Usual
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.metrics.run_effort import UNITS, run_effort
from sidejudge.scoring.result.reason import Rights
from sidejudge.scoring.result.result import NotApplicable, Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from tests.scoring.metrics.test_run_health import SOUND, judged, model, run, tool

HEALTH = RUBRICS["run_health"]


def usual(**limits):
    return Usual(limits=limits, medians={name: limit / 2 for name, limit in limits.items()}, runs=60, needed=50)


def result(case, metric, **fields):
    case = case.drawn(1.0, None, **fields)
    return next(each.result for each in score(case, HEALTH, created_at="").scores if each.metric == metric)


def test_effort_is_what_the_spans_show():
    first = structs.replace(SOUND[0], first_token_s=0.4)
    effort = run_effort(run(first, *SOUND[1:], tool("t2", 9), tool("t3", 20)))
    assert effort == {
        "tokens": 30, "steps": 6, "duration_s": 0.1, "first_token_s": 0.4, "gap_s": pytest.approx(0.010), "in_a_row": 3,
    }  # fmt: skip
    assert effort.keys() <= UNITS.keys()


def test_steps_that_overlap_leave_no_gap():
    assert "gap_s" not in run_effort(run(model("m1", 1, "x"), tool("t1", 1)))


def test_a_run_far_above_the_usual_is_noticed_with_both_numbers():
    found = result(run(*SOUND), "within_usual", usual=usual(tokens=20, steps=50, cost_usd=1))
    assert isinstance(found, Scored)
    assert found.value == 0.5, "cost is not known of this run, so two measures are"
    assert "tokens 30, usually 10" in found.reason


def test_nothing_is_usual_before_enough_runs():
    assert isinstance(result(run(*SOUND), "within_usual"), Unavailable)
    early = Usual(limits={}, medians={}, runs=7, needed=50)
    found = result(run(*SOUND), "within_usual", usual=early)
    assert isinstance(found, Unavailable)
    assert "7 runs" in found.reason


def test_a_run_above_its_budget_fails():
    assert isinstance(result(run(*SOUND), "within_budget"), NotApplicable)
    assert result(run(*SOUND), "within_budget", budget={"tokens": 30}).value == 1.0
    assert isinstance(result(run(*SOUND), "within_budget", budget={"cost_usd": 1}), Unavailable)
    late = Case(case_id="1", model_output="x", tools_used=(), agents_called=("a",), latency_e2e_ms=100_400.0)
    assert result(late, "within_budget", budget={"duration_s": 100.0}).reason == "duration 100.4 s > 100"
    over = run(*SOUND).drawn(1.0, None, budget={"tokens": 29})
    assert judged(over).passed is False


def test_how_many_calls_in_a_row_are_usual_is_a_measure_and_calls_that_differ_are_no_repetition():
    row = run(*[tool(f"t{n}", n, f"r{n}", port=f"port {n}") for n in range(1, 44)])
    for known in (None, usual(in_a_row=6), usual(in_a_row=60)):
        assert result(row, "no_repetition", usual=known).value == 1.0
    assert result(row, "within_usual", usual=usual(in_a_row=6)).reason == (
        "calls of one tool in a row 43 calls, usually 3"
    )
    assert result(row, "within_usual", usual=usual(in_a_row=60)).value == 1.0


@pytest.mark.parametrize(("seconds", "value"), [(3.0, 1.0), (9.9, 1.0), (11.0, 0.0)])
def test_a_pause_that_nobody_would_notice_is_not_far_above_the_usual(seconds, value):
    late = structs.replace(SOUND[2], start_ns=int(seconds * 1e9), end_ns=int(seconds * 1e9) + 1)
    found = result(run(SOUND[0], SOUND[1], late), "within_usual", usual=usual(gap_s=0.2))
    assert found.value == value, found.reason


def test_callers_who_may_not_see_contents_are_told_what_was_unusual():
    late = structs.replace(SOUND[2], start_ns=11 * 10**9, end_ns=11 * 10**9 + 1)
    found = result(run(SOUND[0], SOUND[1], late), "within_usual", usual=usual(gap_s=0.2))
    assert found.reason.shown(Rights.OWN) == found.reason != ""
