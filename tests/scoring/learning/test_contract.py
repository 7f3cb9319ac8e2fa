"""Contracts learned from good runs tell good from bad among runs that they never saw."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from scoring.case.case import Case
from scoring.evaluators.score import score
from scoring.learning.contract import MIN_RUNS, learn
from scoring.learning.observed_run import observe_run
from scoring.rubrics import RUBRICS
from scoring.scenario.scenario import parse_scenario
from scoring.trace.span import ToolCall
from tests.scoring.learning.simulated_shop import FAULTS, run, runs


def learned(seed, count, *, bad=0.0, labelled=True, allowed=0.01):
    seen = [
        observe_run(case, group="shop", good=good if labelled else None) for case, good in runs(seed, count, bad=bad)
    ]
    return learn("shop", [run for run in seen if run is not None], allowed=allowed)


def passes(case, scenario):
    return score(replace(case, scenario=scenario), RUBRICS["workflow"], created_at="2026-01-01T00:00:00Z").passed


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_contract_of_good_runs_passes_unseen_good_ones_and_fails_bad_ones(seed):
    scenario = parse_scenario("shop", learned(seed, 150, bad=0.3).scenario())
    judged = [(passes(case, scenario), good) for case, good in runs(100 + seed, 300, bad=0.4)]
    false = sum(not passed for passed, good in judged if good) / sum(good for _, good in judged)
    caught = sum(not passed for passed, good in judged if not good) / sum(not good for _, good in judged)
    assert false <= 0.05
    assert caught >= 0.9


def test_each_kind_of_fault_is_caught():
    scenario = parse_scenario("shop", learned(7, 200, bad=0.2).scenario())

    for fault in FAULTS:
        cases = [run(random.Random(number), number, fault)[0] for number in range(20)]
        assert sum(not passes(case, scenario) for case in cases) >= 18, fault


def test_the_scenario_is_of_the_kind_that_people_write():
    found = learned(1, 150, bad=0.3).scenario()
    assert found["tools_should_include"] == ["find_user", "get_order"]
    assert ["find_user", "get_order"] in found["before"]
    assert ["get_order", "refund"] in found["before"]
    assert ["refund", "notify"] in found["after"]
    assert found["values_from"]["refund"] == {"order_id": ["input", "results"]}
    assert found["arguments_schema"]["refund"]["properties"]["reason"]["enum"] == ["damaged", "late", "unwanted"]
    assert found["max_calls"]["refund"] == 1


def test_what_is_expected_of_false_violations_is_what_happens():
    contract = learned(5, 200)
    scenario = parse_scenario("shop", contract.scenario())
    fresh = [passes(case, scenario) for case, _ in runs(500, 400, bad=0.0)]
    assert contract.false_violations <= 0.01
    assert 1 - sum(fresh) / len(fresh) <= contract.upper


READS = ("get_user", "get_order", "list_products", "calculate")
WRITES = {"cancel": ("order_id", "reason"), "modify": ("order_id", "item_ids"), "refund": ("order_id", "amount")}


def value(dice, name):
    return {
        "order_id": f"#W{dice.randrange(10**7):07}", "reason": dice.choice(("late", "unwanted")),
        "item_ids": [dice.randrange(10**6) for _ in range(2)], "amount": dice.randrange(10, 500),
    }[name]  # fmt: skip


def attempt(dice, number, actions, *, good):
    """One attempt at a task: it reads what it likes, and then acts; a bad one leaves out or gets wrong an action."""
    actions = [(tool, dict(arguments)) for tool, arguments in actions]
    if not good and dice.random() < 0.5:
        actions.pop(dice.randrange(len(actions)))
    elif not good:
        _, arguments = actions[-1]
        arguments["order_id"] = value(dice, "order_id")
    calls = [
        ToolCall(name=dice.choice(READS), arguments={"id": dice.randrange(99)}) for _ in range(dice.randrange(1, 5))
    ]
    calls += [ToolCall(name=tool, arguments=arguments, result="done") for tool, arguments in actions]
    case = Case(case_id=f"{number}", model_output="Done.", tools_used=tuple(calls), agents_called=("desk",))
    return observe_run(case, group="task", good=good), good


@pytest.mark.parametrize(("good_runs", "least"), [(6, 0.85), (20, 0.93)])
def test_of_one_task_a_few_good_attempts_are_enough_to_tell_good_from_bad(good_runs, least):
    right = total = false = 0
    for task in range(12):
        dice = random.Random(f"task {task}")
        actions = [(tool, {n: value(dice, n) for n in WRITES[tool]}) for tool in dice.sample(sorted(WRITES), 2)]
        seen = [attempt(dice, number, actions, good=number < good_runs)[0] for number in range(2 * good_runs)]
        contract = learn("task", seen)
        for number in range(100, 130):
            found, good = attempt(dice, number, actions, good=number % 2 == 0)
            kept = all(learned.line.keeps(found) for learned in contract.lines)
            right, total, false = right + (kept is good), total + 1, false + (good and not kept)
    assert right / total >= least
    assert false / total <= 0.08


def test_with_few_runs_nothing_is_learned_and_more_are_asked_for():
    assert learned(1, MIN_RUNS - 1) is None
    few = learned(1, 30)
    assert few.more_runs > 300
    assert all(line.lower < 1.0 for line in few.lines)


def test_without_labels_rare_faults_do_not_become_rules():
    scenario = parse_scenario("shop", learned(9, 200, bad=0.02, labelled=False, allowed=0.05).scenario())
    judged = [passes(case, scenario) for case, good in runs(900, 200, bad=0.0) if good]
    assert sum(judged) / len(judged) >= 0.95
