"""Tool efficiency computed from expected tools and a call budget: every line of its table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.metrics.tool_efficiency import efficiency, states_budget
from sidejudge.scoring.scenario.reading import parse_scenario
from sidejudge.scoring.trace.span import ToolCall
from tests.linear_time import assert_linear


def scenario(include=("search",), budget=4, **more):
    return parse_scenario("s", {"tools_should_include": list(include), "max_calls": budget, **more})


def calls(*names):
    return [ToolCall(name=name) for name in names]


@pytest.mark.parametrize(
    ("made", "value"), [(1, 1.0), (4, 1.0), (5, 0.6), (6, 0.6), (7, 0.3), (8, 0.3), (9, 0.0), (40, 0.0)]
)
def test_calls_over_the_budget_cost_by_how_far_they_are_over(made, value):
    assert efficiency(scenario(budget=4), calls(*["search"] * made)).value == value


@pytest.mark.parametrize(("made", "value"), [(1, 1.0), (2, 0.6), (3, 0.3), (4, 0.0)])
def test_one_call_over_a_small_budget_is_some_redundancy(made, value):
    assert efficiency(scenario(budget=1), calls(*["search"] * made)).value == value


@pytest.mark.parametrize(
    ("made", "more", "value"),
    [
        (("search", "write"), {}, 1.0),
        (("search",), {}, 0.3),
        (("search", "write", "web"), {}, 0.3),
        (("search", "write", "web"), {"closed": False}, 1.0),
        (("search", "write", "web"), {"closed": False, "tools_should_exclude": ["web"]}, 0.3),
        (("web", "web", "search"), {}, 0.0),
        (("web",), {}, 0.0),
        ((), {}, 0.0),
    ],
)
def test_wrong_and_missing_tools_are_poor_and_nothing_right_has_failed(made, more, value):
    assert efficiency(scenario(("search", "write"), **more), calls(*made)).value == value


def test_every_budget_counts_on_its_own_and_the_worst_decides():
    reported = scenario(("search", "write"), {"search": 1, "write": 4, "*": 4})
    found = efficiency(reported, calls("search", "search", "search", "write", "write"))
    assert found.value == 0.3
    assert found.faults == ("search: 3 calls, at most 1", "all tools: 5 calls, at most 4")


def test_a_budget_of_nothing_forbids():
    reported = scenario(("search",), {"search": 2, "web": 0}, closed=False)
    found = efficiency(reported, calls("search", "web"))
    assert (found.value, found.faults) == (0.3, ("wrong: web",))


def test_an_equal_call_made_again_is_a_minor_inefficiency():
    again = [ToolCall(name="search", arguments={"q": 1}, result="x")] * 2
    found = efficiency(scenario(), again)
    assert (found.value, found.faults) == (0.8, ("search: called again with equal arguments",))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"arguments": {"q": 1}, "error": "down"}, {"arguments": {"q": 1}}),
        ({"arguments": {"q": 1}}, {"arguments": {"q": True}}),
        ({"arguments": {"q": 1}}, {"arguments": {"q": 2}}),
        ({}, {}),
    ],
)
def test_retries_polls_and_other_arguments_are_not_made_twice(first, second):
    made = [ToolCall(name="search", **first), ToolCall(name="search", **second)]
    assert efficiency(scenario(), made).value == 1.0


def test_the_search_for_equal_calls_is_linear():
    def work(length: int) -> None:
        many = [ToolCall(name="search", arguments={"n": n}) for n in range(length // 20)]
        assert efficiency(scenario(budget=length), many).value == 1.0

    assert_linear(work)


def test_the_worse_of_the_two_decides_and_both_are_told():
    found = efficiency(scenario(("search", "write"), 1), calls("search", "search"))
    assert (found.value, found.faults) == (0.3, ("not called: write", "all tools: 2 calls, at most 1"))


def test_a_budget_needs_expected_tools_and_limits():
    assert states_budget(scenario())
    assert not states_budget(parse_scenario("s", {"tools_should_include": ["search"]}))
    assert not states_budget(parse_scenario("s", {"max_calls": 1}))


@given(st.lists(st.sampled_from(["search", "write", "web"]), max_size=20), st.integers(1, 6))
def test_one_more_expected_call_beyond_the_budget_never_helps_and_every_value_is_a_level(made, budget):
    reported = scenario(("search",), budget)
    before = efficiency(reported, calls("search", *made)).value
    after = efficiency(reported, calls("search", *made, "web")).value
    assert {before, after} <= {1.0, 0.8, 0.6, 0.3, 0.0}
    assert after <= before
