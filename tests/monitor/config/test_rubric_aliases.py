"""`call-qa` is read for `qa` wherever a rubric is named; verdicts and scores bear the rubric's own name."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from sidejudge.monitor.api.params import rubric_of
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.section import RUBRIC_ALIASES
from sidejudge.scoring.rubrics import RUBRICS

STATED = {
    "routes": [{"match": {"service": "calls"}, "rubrics": ["call-qa", "run_health"]}],
    "default_rubrics": ["call-qa"],
    "rubrics": {"call-qa": {"pass_mark": 0.9}},
}


def test_every_alias_stands_for_a_rubric_and_is_none():
    assert set(RUBRIC_ALIASES.values()) <= set(RUBRICS)
    assert not set(RUBRIC_ALIASES) & set(RUBRICS)


def test_in_the_configuration_an_alias_becomes_the_own_name():
    config = Config.model_validate(STATED)
    assert config.routes[0].rubrics == ("qa", "run_health")
    assert config.default_rubrics == ("qa",)
    assert config.rubrics["qa"].pass_mark == 0.9


def test_the_same_rubric_twice_is_refused_under_two_names_too():
    with pytest.raises(ValidationError, match="twice"):
        Config.model_validate({"routes": [{"rubrics": ["qa", "call-qa"]}]})


@pytest.mark.parametrize("keys", [("qa", "call-qa"), ("call-qa", "qa")])
@pytest.mark.parametrize("of", ["rubrics", "alerts"])
def test_two_keys_of_one_rubric_are_refused_not_one_of_them_taken(keys, of):
    by_rubric = {key: {"pass_mark": 0.5} if of == "rubrics" else {"warning": 0.9} for key in keys}
    with pytest.raises(ValidationError, match="by two keys"):
        Config.model_validate({"rubrics": by_rubric} if of == "rubrics" else {"alerts": {"rubrics": by_rubric}})


def test_the_api_reads_an_alias():
    assert rubric_of("call-qa", tuple(RUBRICS)) == "qa"


def test_a_declared_rubric_of_that_name_is_itself():
    context = {"rubrics": ("call-qa",)}
    config = Config.model_validate({"routes": [{"rubrics": ["call-qa"]}]}, context=context)
    assert config.routes[0].rubrics == ("call-qa",)
