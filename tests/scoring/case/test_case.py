"""A case that is drawn is the case with another probability and scenario, and nothing that it found out before."""

from __future__ import annotations

from dataclasses import fields, replace

from sidejudge.scoring.case.case import Case

CASE = Case(
    case_id="c", model_output='{"a": 1}', expected_outcome="prose", transcript="hello", metadata={"k": "v"},
    tags=("t",), scenario="named", sampling_probability=0.5,
)  # fmt: skip


def scenario_of(case):
    return case.scenario


def test_a_drawn_case_has_another_probability_and_scenario_and_is_otherwise_the_same():
    drawn = CASE.drawn(0.25, {"closed": True})
    assert drawn == replace(CASE, sampling_probability=0.25, scenario={"closed": True})
    assert type(drawn) is Case
    assert (CASE.sampling_probability, CASE.scenario) == (0.5, "named")


def test_what_was_found_out_of_a_case_is_found_out_anew_of_the_drawn_one():
    seen = replace(CASE)
    found = (
        seen.output,
        seen.expected,
        seen.transcript_text,
        seen.spoken_text,
        seen.transcript_index,
        seen.reference_index,
    )
    assert None not in found
    assert seen.once(scenario_of) == "named"
    drawn = seen.drawn(1.0, "other")
    assert vars(drawn).keys() == {field.name for field in fields(Case)}
    assert drawn.once(scenario_of) == "other"
    assert seen.once(scenario_of) == "named"
