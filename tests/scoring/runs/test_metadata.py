"""Run metadata: what is missing, what floats, what was overridden."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.runs.metadata import DEFAULTS, REQUIRED, check_metadata, template

GOOD = {
    "run_id": "run-17",
    "timestamp_utc": "2026-11-21T00:00:00Z",
    "dataset_id": "support-qa",
    "dataset_version_or_hash": "v3",
    "model_id": "openai/gpt-x@2026-08-06",
    "model_version": "2026-08-06",
    "evaluator_model_id": "anthropic/judge@20260101",
    "evaluator_model_version": "20260101",
    "prompt_template_id": "support",
    "prompt_template_version_or_hash": "v12",
    "evaluator_prompt_template_version_or_hash": "9f2c",
    "generation_params": dict(DEFAULTS),
    "code_version": "0a1b2c3d4e5f",
    "environment": "eu-central-1/python3.11",
}


def test_fourteen_fields_are_required():
    assert len(REQUIRED) == 14
    assert set(REQUIRED) == set(GOOD)


@pytest.mark.parametrize("field", REQUIRED)
@pytest.mark.parametrize("gone", ["absent", None])
def test_each_missing_field_is_named_with_its_remedy(field, gone):
    stated = {name: value for name, value in GOOD.items() if name != field} | ({} if gone else {field: None})
    (problem,) = check_metadata(stated).problems
    assert problem.startswith(f"{field} is missing")
    assert "; give " in problem


def test_all_missing_fields_are_told_at_once():
    problems = check_metadata({}).problems
    assert [problem.split()[0] for problem in problems] == list(REQUIRED)


def test_a_misspelt_field_is_pointed_at():
    stated = {("modelid" if name == "model_id" else name): value for name, value in GOOD.items()}
    assert "model_id is missing ('modelid' is no field)" in check_metadata(stated).problems[0]


@pytest.mark.parametrize(
    ("field", "value", "stated"),
    [
        ("run_id", "  ", "run_id is empty"),
        ("model_version", 1.1, "is a number, not text: put it in quotation marks"),
        ("code_version", True, "is not text"),
        ("dataset_id", ["a"], "is not text"),
        ("timestamp_utc", "yesterday", "is not an ISO 8601 time"),
        ("timestamp_utc", "2026-11-21T00:00:00", "is not in UTC"),
        ("timestamp_utc", "2026-11-21T00:00:00+02:00", "is not in UTC"),
        ("timestamp_utc", 20261121, "is a number"),
        ("generation_params", "temperature=0", "is not an object"),
        ("generation_params", [], "is not an object"),
        ("environment", {}, "is empty"),
    ],
)
def test_a_value_that_says_nothing_is_a_problem(field, value, stated):
    (problem,) = check_metadata({**GOOD, field: value}).problems
    assert problem.startswith(field)
    assert stated in problem


def test_the_environment_may_be_an_object():
    assert check_metadata({**GOOD, "environment": {"region": "eu", "runtime": "py"}}).problems == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "0"), ("temperature", -1), ("temperature", float("nan")), ("temperature", True),
        ("top_p", 0), ("top_p", 1.5), ("top_p", None), ("max_tokens", 0), ("max_tokens", 10.5), ("seed", "x"),
        ("seed", 1.5),
        ("top_p", 10**400), ("seed", 10**400),
    ],
)  # fmt: skip
def test_a_generation_parameter_that_cannot_be_is_a_problem(name, value):
    (problem,) = check_metadata({**GOOD, "generation_params": {**DEFAULTS, name: value}}).problems
    assert problem.startswith(f"generation_params.{name} ")


@pytest.mark.parametrize(("name", "value"), [("temperature", 0.7), ("top_p", 0.9), ("max_tokens", 50), ("seed", 1)])
def test_an_overridden_default_is_a_note_and_no_problem(name, value):
    report = check_metadata({**GOOD, "generation_params": {**DEFAULTS, name: value}})
    assert report.problems == ()
    assert report.notes == (f"generation_params.{name} is {value}; the default is {DEFAULTS[name]:g}",)


def test_a_provider_without_seeded_sampling_has_a_null_seed():
    report = check_metadata({**GOOD, "generation_params": {**DEFAULTS, "seed": None}})
    assert report.problems == ()
    assert report.notes == ("generation_params.seed is null; the default is 42",)


@pytest.mark.parametrize("field", ["model_id", "evaluator_model_id"])
@pytest.mark.parametrize(
    "name", ["openai/gpt-x-latest", "latest", "o/g:latest", "o/g@latest", "o/g@LATEST ", "mistral/large_latest"]
)
def test_an_id_that_ends_in_latest_floats_whatever_version_is_given(field, name):
    (stated,) = check_metadata({**GOOD, field: name}).unpinned
    assert stated.startswith(f"{field} ")
    assert "floating alias" in stated


def test_a_version_that_is_latest_pins_nothing():
    assert "model_version 'latest'" in check_metadata({**GOOD, "model_version": "latest"}).unpinned[0]


@pytest.mark.parametrize("name", ["openai/gpt-x", "openai/gpt-x@", "openai/gpt-x@ "])
def test_an_id_without_a_version_is_pinned_by_the_version_field_alone(name):
    assert check_metadata({**GOOD, "model_id": name}).unpinned == ()
    without = {key: value for key, value in GOOD.items() if key != "model_version"} | {"model_id": name}
    assert "has no version" in check_metadata(without).unpinned[0]


@pytest.mark.parametrize("name", ["o/greatest@1", "o/model@2026-latest-3", "o/thelatest@2"])
def test_a_name_that_merely_resembles_it_does_not_float(name):
    assert check_metadata({**GOOD, "model_id": name}).unpinned == ()


def test_a_code_version_that_is_no_sha_is_noted():
    assert "git SHA" in check_metadata({**GOOD, "code_version": "v1.2"}).notes[0]


JUNK = st.sampled_from([None, True, 0, 10**400, float("nan"), "", "x", [[]], {}, {"temperature": "x"}, dict(DEFAULTS)])


@given(st.dictionaries(st.sampled_from([*REQUIRED, "x", 1]), JUNK))
def test_whatever_is_stated_gets_a_report(stated):
    report = check_metadata(stated)
    for field in REQUIRED:
        assert any(problem.startswith(field) for problem in report.problems) or stated.get(field) is not None


def test_the_template_names_every_field_and_is_not_complete_until_it_is_filled_in():
    stated = yaml.safe_load(template({"evaluator_model_id": 'judge"\n: x'}))
    assert list(stated) == list(REQUIRED)
    assert stated["evaluator_model_id"] == 'judge"\n: x'
    assert set(stated["generation_params"]) == set(DEFAULTS)
    reported = " ".join(check_metadata(stated).problems)
    assert all(field in reported for field in REQUIRED if field not in ("evaluator_model_id", "generation_params"))
