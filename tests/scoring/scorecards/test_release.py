"""The gates, the repeats and the decision."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.runs.aggregates import FIELDS, Aggregates
from sidejudge.scoring.runs.final import over_runs
from sidejudge.scoring.scorecards.gates import GATES, check_gates, decide, gates_of_any

AT_EVERY_BOUND = {gate.figure: gate.bound for gate in GATES}


def run(n=100, **figures):
    return Aggregates(
        n=n, passed=n, failed=0, incomplete=0, evaluator_errors=0, evaluator_error=None, timed_out=0,
        known=dict.fromkeys(FIELDS, n), figures={**AT_EVERY_BOUND, **figures},
    )  # fmt: skip


def unmet(found):
    return {result.gate.figure: result.reason for result in check_gates(found) if not result.met}


def test_the_gates_are_the_seeds_and_those_against_samples_that_say_nothing():
    assert [(g.figure, g.comparison, g.bound) for g in GATES] == [
        ("aggregate_score", ">=", 0.80),
        ("pass_rate", ">=", 0.85),
        ("faithfulness_failure_rate", "<=", 0.05),
        ("latency_e2e_p95_ms", "<=", 10_000),
        ("evaluator_error_rate", "<=", 0.05),
        ("incomplete_rate", "<=", 0.05),
    ]


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.figure)
@pytest.mark.parametrize("away", [1e-6, 1e-3])
def test_a_value_beyond_its_bound_does_not(gate, away):
    value = gate.bound * (1 - away if gate.comparison == ">=" else 1 + away)
    assert list(unmet(run(**{gate.figure: value}))) == [gate.figure]


def test_the_bound_is_compared_after_rounding_too():
    assert GATES[1].holds(0.85)
    assert gates_of_any(1 / 3)[0].holds(1 / 3)
    assert not gates_of_any(1 / 3)[0].holds(0.333333332)


@pytest.mark.parametrize("gate", [*GATES, *gates_of_any(0.8512345), *gates_of_any(1 / 3)])
def test_what_is_printed_of_a_gate_never_contradicts_it(gate):
    for away in (0.0, *(sign * 10.0**-digits for digits in range(1, 13) for sign in (1, -1))):
        value = gate.bound + away * max(1.0, gate.bound)
        printed, bound = float(gate.shown(value)), float(gate.shown_bound)
        assert gate.holds(value) == gate.holds(printed) == (
            printed >= round(bound, 9) if gate.comparison == ">=" else printed <= round(bound, 9)
        )  # fmt: skip


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.figure)
def test_what_cannot_be_computed_meets_no_gate_and_says_why(gate):
    reasons = unmet(run(**{gate.figure: Unavailable("nobody measured it")}))
    assert reasons == {gate.figure: "cannot be computed: nobody measured it"}


def test_the_reason_shows_the_value_apart_from_its_bound():
    assert unmet(run(aggregate_score=0.79999)) == {"aggregate_score": "0.79999 is below 0.8"}
    assert unmet(run(latency_e2e_p95_ms=10_000.4)) == {"latency_e2e_p95_ms": "10000.4 is above 10000"}


def test_a_run_without_the_figure_leaves_it_without_a_spread():
    runs = [run(), run(aggregate_score=Unavailable("no sample has a sample_score")), run()]
    assert over_runs(runs, "aggregate_score").reason == "run 2 of 3 has none: no sample has a sample_score"


def test_no_run_is_not_ready():
    assert not decide({}, None, strict=False).ready


def test_runs_of_different_sizes_and_samples_with_gaps_are_told():
    gaps = replace(run(), known={**dict.fromkeys(FIELDS, 100), "latency_e2e_ms": 97})
    warnings = " ".join(decide({"a": gaps, "b": run(n=60)}, None, strict=False).warnings)
    assert "a: of 100 samples only some have latency_e2e_ms 97" in warnings
    assert "runs differ in size (60, 100 samples)" in warnings


def test_the_decision_is_plain_json():
    runs = {"a": run(pass_rate=Unavailable("nothing decided"))}
    stated = json.loads(json.dumps(decide(runs, None, strict=False).to_json(), allow_nan=False))
    assert stated["release_ready"] is False
    assert stated["runs"][0]["aggregates"]["pass_rate"] is None
    assert stated["runs"][0]["aggregates"]["unavailable"] == {"pass_rate": "nothing decided"}
    assert stated["runs"][0]["gates"][1]["met"] is False
    assert stated["repeats"]["aggregate_score"]["sd"] is None


def test_the_seeds_four_gates_decide_by_themselves_and_ours_say_whether_to_rely_on_them():
    for figure in ("evaluator_error_rate", "incomplete_rate"):
        found = decide({"one": run(**{figure: 0.5})}, None, strict=False)
        assert (found.ready, found.reliable) == (True, False)
        assert (found.to_json()["release_ready"], found.to_json()["reliable"]) == (True, False)
    for figure in ("aggregate_score", "pass_rate"):
        found = decide({"one": run(**{figure: 0.5})}, None, strict=False)
        assert (found.ready, found.reliable) == (False, True)
    found = decide({"one": run()}, None, strict=False)
    assert (found.ready, found.reliable) == (True, True)
