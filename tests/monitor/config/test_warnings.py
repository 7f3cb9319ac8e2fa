"""Warnings about what a valid configuration asks for, unseen."""

from __future__ import annotations

import pytest

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.warnings import cautions


def causes(scenario):
    config = Config.model_validate({"scenarios": {"shop": scenario}})
    return [cause for cause, _ in cautions(config) if cause.startswith("scenarios.")]


@pytest.mark.parametrize("side", ["tools", "agents"])
def test_a_list_that_closes_though_its_name_does_not_say_so_is_pointed_out(side):
    (cause,) = causes({f"{side}_should_include": ["a"]})
    assert f"shop.{side}_should_include closes the list" in cause


@pytest.mark.parametrize("more", [{"closed": False}, {"closed": {"tools": True}}, {"tools_may_include": ["b"]}])
def test_who_says_whether_it_closes_is_told_nothing(more):
    assert causes({"tools_should_include": ["a"], **more}) == []


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ({"metric": "score_gap_accuracy_mean", "warning_below": 0.7}, "no rubric with a route has it"),
        ({"metric": "score_gap_accuracy_mean", "rubric": "qa", "warning_below": 0.7}, "qa has no route"),
        ({"metric": "keyword_f1_mean", "warning_below": 0.7}, None),
        ({"metric": "latency_p95", "warning": "5s"}, None),
    ],
)
def test_a_limit_on_what_no_route_measures_is_pointed_out(limit, said):
    routes = {"routes": [{"rubrics": ["entity"]}], "default_rubrics": []}
    config = Config.model_validate({**routes, "alerts": {"metrics": [limit]}})
    found = [cause for cause, _ in cautions(config) if cause.startswith("alerts.metrics")]
    assert [said in cause for cause in found] == ([True] if said else [])


@pytest.mark.parametrize(
    ("routes", "said"),
    [
        ([{"rubrics": ["qa"]}, {"match": {"service": "a"}, "rubrics": ["text"]}], [1]),
        ([{"match": {"tags": ["x"]}, "rubrics": []}, {"match": {"tags": "x"}, "rubrics": ["qa"]}], [1]),
        ([{"match": {"service": "a"}, "rubrics": ["qa"]}, {"rubrics": ["text"]}], []),
        ([{"rubrics": ["qa"]}], []),
    ],
)
def test_a_route_behind_one_that_takes_everything_is_pointed_out(routes, said):
    for at, config in (("routes", {"routes": routes}), ("sessions.routes", {"sessions": {"routes": routes}})):
        found = [cause for cause, _ in cautions(Config.model_validate(config)) if "no trace reaches it" in cause]
        assert [cause.partition(":")[0] for cause in found] == [f"{at}[{index}]" for index in said]
