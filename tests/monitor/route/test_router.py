from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.config.model import RouteSection
from sidejudge.monitor.route.router import Excluded, NotARun, Route, Router
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.scenario.reading import parse_scenario

CASE = Case(
    case_id="c",
    model_output=None,
    name="qa-refunds",
    tags=("qa", "gold-42"),
    metadata={"task": "qa", "customer": {"tier": 1, "vip": True}, "a.b": "literal"},
    service="calls",
    environment="production",
    latency_e2e_ms=2500.0,
)


def match(**stated: object) -> MatchSection:
    return MatchSection.model_validate({key.replace("__", "."): value for key, value in stated.items()})


def router(*routes: dict[str, Any], **scenarios: dict[str, Any]) -> Router:
    return Router([RouteSection.model_validate(route) for route in routes], scenarios)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({}, True),
        ({"name": "qa-*"}, True),
        ({"name": "QA-*"}, False),
        ({"name": ["x", "qa-refund?"]}, True),
        ({"tags": "qa"}, True),
        ({"tags": ["qa", "gold-*"]}, True),
        ({"tags": ["qa", "absent"]}, False),
        ({"service": "calls", "environment": "prod*"}, True),
        ({"service": "calls", "environment": "staging"}, False),
        ({"task": "qa"}, True),
        ({"metadata.task": "qa"}, True),
        ({"metadata.customer.tier": 1}, True),
        ({"metadata.customer.vip": True}, True),
        ({"metadata": {"customer.tier": "[12]"}}, True),
        ({"metadata.a.b": "literal"}, True),
        ({"metadata.customer": "*"}, False),
        ({"metadata.absent": "*"}, False),
        ({"latency_ms": ">2000"}, True),
        ({"latency_ms": "<= 2500"}, True),
        ({"latency_ms": ">2500"}, False),
        ({"level": "error"}, False),
    ],
)
def test_all_that_a_match_says_must_hold(stated, expected) -> None:
    assert MatchSection.model_validate(stated).matches(CASE) is expected


def test_what_a_trace_does_not_carry_matches_no_glob() -> None:
    bare = Case(case_id="c", model_output=None)
    for stated in ({"name": "*"}, {"service": "*"}, {"environment": "*"}, {"task": "*"}, {"latency_ms": ">0"}):
        assert not MatchSection.model_validate(stated).matches(bare)


def test_an_error_of_any_step_is_the_level_of_the_trace() -> None:
    assert match(level="error").matches(replace(CASE, error="tool timed out"))


def test_only_service_and_environment_can_be_told_without_the_contents() -> None:
    assert not match().needs_content
    assert not match(service="a", environment=["b", "c"]).needs_content
    for stated in ({"name": "a"}, {"tags": "a"}, {"task": "a"}, {"metadata.k": "a"}, {"level": "error"}):
        assert MatchSection.model_validate(stated).needs_content
    assert match(latency_ms=">1").needs_content


def test_the_first_route_that_matches_wins() -> None:
    found = router({"match": {"name": "x"}, "rubrics": ["entity"]}, {"rubrics": ["qa"]}, {"rubrics": ["answer"]})
    assert found.route(CASE) == Route(rubrics=("qa",), scenario=None, name="routes[1]")


def test_nothing_that_matches_is_no_route() -> None:
    assert router({"match": {"name": "x"}, "rubrics": ["qa"]}).route(CASE) is None


def test_a_route_without_rubrics_excludes() -> None:
    assert router({"name": "noise", "rubrics": []}).route(CASE) == Excluded("noise excludes it")


def test_the_scenario_of_a_route_is_handed_over_whole() -> None:
    routes = router({"rubrics": ["workflow"], "scenario": "call"}, call={"tools_should_include": ["a"]})
    found = routes.route(CASE)
    assert isinstance(found, Route)
    assert found.scenario == parse_scenario("call", {"tools_should_include": ["a"]})


def test_a_scenario_that_the_case_brings_goes_before_the_routes() -> None:
    routes = router(
        {"rubrics": ["workflow"], "scenario": "call"}, call={"tools_should_include": ["a"]}, other={"closed": True}
    )
    inline = routes.route(replace(CASE, scenario={"tools_should_include": ["b"]}))
    named = routes.route(replace(CASE, scenario="other"))
    unknown = routes.route(replace(CASE, scenario="nobody knows"))
    assert [found.scenario for found in (inline, named, unknown) if isinstance(found, Route)] == [
        {"tools_should_include": ["b"]}, parse_scenario("other", {"closed": True}), None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "rubrics"),
    [("qa", ("qa",)), ("entity", ("entity",)), ("text", ("text",)), ("answer", ("answer",)), ("poetry", None)],
)
def test_without_routes_the_task_names_the_rubric(task: str, rubrics: tuple[str, ...] | None) -> None:
    found = Router([], {}).route(Case(case_id="c", model_output=None, task=task))
    assert (found.rubrics if isinstance(found, Route) else found) == rubrics
    found = Router([], {}).route(Case(case_id="c", model_output=None, metadata={"task": task}))
    assert (found.rubrics if isinstance(found, Route) else found) == rubrics


def test_without_routes_a_case_with_a_scenario_is_checked_against_it() -> None:
    found = Router([], {}).route(Case(case_id="c", model_output=None, task="qa", scenario={"closed": True}))
    assert isinstance(found, Route)
    assert found.rubrics == ("qa", "workflow")


def test_a_scenario_that_is_named_but_not_known_is_checked_too_so_that_the_verdict_can_say_so() -> None:
    found = Router([], {}).route(Case(case_id="c", model_output=None, task="chat", scenario="typo"))
    assert isinstance(found, Route)
    assert (found.rubrics, found.scenario, found.scenario_name) == (("workflow",), None, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"environment": "langfuse-llm-as-a-judge"},
        {"environment": "langfuse"},
        {"service": "sidejudge"},
        {"tags": ("sidejudge",)},
    ],
)
def test_what_evaluators_emit_is_never_judged(changes: dict[str, Any]) -> None:
    for routes in (router({"rubrics": ["qa"]}), Router([], {})):
        assert isinstance(routes.route(replace(CASE, **changes)), Excluded)


def test_a_run_that_no_route_matches_goes_to_the_default_rubrics():
    run = replace(CASE, metadata={}, agents_called=("desk",), tools_used=())
    default = Router(
        [RouteSection.model_validate({"match": {"name": "x"}, "rubrics": ["qa"]})], {}, default=("run_health",)
    )
    assert default.route(run) == Route(rubrics=("run_health",), scenario=None, name="default")
    assert Router([], {}, default=("run_health",)).route(run) == default.route(run)
    assert Router([], {}, default=()).route(run) is None


def test_what_no_model_agent_or_tool_took_part_in_is_no_run():
    default = Router([], {}, default=("run_health",))
    assert default.route(replace(CASE, metadata={})) == NotARun()
    assert isinstance(default.route(replace(CASE, metadata={"task": "qa"})), Route), "a task that is named goes first"


def test_a_route_that_excludes_is_no_reason_for_the_default():
    excluding = Router([RouteSection.model_validate({"rubrics": []})], {}, default=("run_health",))
    assert isinstance(excluding.route(replace(CASE, agents_called=("desk",))), Excluded)
