"""Contracts learned from good runs tell good from bad among runs that they never saw, and promise what they keep."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.learning.contract import MIN_RUNS, _shuffled, learn
from sidejudge.scoring.learning.lines import propose
from sidejudge.scoring.learning.observed_run import ObservedCall, ObservedRun, divide, observe_run
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.scenario.reading import parse_scenario
from sidejudge.scoring.trace.span import ToolCall
from tests.linear_time import steps
from tests.scoring.learning.simulated_shop import FAULTS, run, runs
from tests.scoring.learning.simulated_worlds import draw


def learned(seed, count, *, bad=0.0, labelled=True, most_false=0.01):
    seen = [
        observe_run(case, group="shop", good=good if labelled else None) for case, good in runs(seed, count, bad=bad)
    ]
    return learn("shop", [run for run in seen if run is not None], most_false=most_false)


def passes(case, scenario):
    return score(replace(case, scenario=scenario), RUBRICS["workflow"], created_at="2026-01-01T00:00:00Z").passed


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_contract_of_good_runs_passes_unseen_good_ones_and_fails_bad_ones(seed):
    scenario = parse_scenario("shop", learned(seed, 300, bad=0.3, most_false=0.05).scenarios()["shop"])
    judged = [(passes(case, scenario), good) for case, good in runs(100 + seed, 300, bad=0.4)]
    false = sum(not passed for passed, good in judged if good) / sum(good for _, good in judged)
    caught = sum(not passed for passed, good in judged if not good) / sum(not good for _, good in judged)
    assert false <= 0.05
    assert caught >= 0.9


def test_each_kind_of_fault_is_caught():
    scenario = parse_scenario("shop", learned(7, 250, bad=0.2, most_false=0.05).scenarios()["shop"])
    for fault in FAULTS:
        cases = [run(random.Random(number), number, fault)[0] for number in range(20)]
        assert sum(not passes(case, scenario) for case in cases) >= 18, fault


def test_the_scenario_is_of_the_kind_that_people_write():
    found = learned(1, 300, bad=0.3, most_false=0.05).scenarios()["shop"]
    assert found["tools_should_include"] == ["find_user", "get_order"]
    assert ["find_user", "get_order"] in found["before"]
    assert ["get_order", "refund"] in found["before"]
    assert ["refund", "notify"] in found["after"]
    assert found["values_from"]["refund"] == {"order_id": ["input", "results"]}
    assert found["arguments_schema"]["refund"]["properties"]["reason"]["enum"] == ["damaged", "late", "unwanted"]
    assert found["max_calls"]["refund"] == 1


@pytest.mark.parametrize("by_request", [False, True])
def test_what_is_promised_of_good_runs_holds_on_fresh_ones(by_request):
    """Of 20 draws from worlds of chance at most 4 break a promise that holds with 95 %: by chance one time in 300."""
    done = [draw(seed, 70, 0.1, bad=0.2, by_request=by_request, fresh=400) for seed in range(20)]
    assert sum(share > 0.1 for _, share, _ in done) <= 4
    assert sum(any(line.fails for line in contract.lines) for contract, _, _ in done) >= 8, "something is promised"


def test_a_run_that_judges_has_no_part_in_choosing_the_lines():
    """Judges took more tokens than the others: the limit is that of the others, and judges are held against it."""
    seen = [observe_run(case, group="shop", good=True) for case, _ in runs(3, 120, bad=0.0)]
    judged = learn("shop", seen, most_false=0.1).judged
    judges = {run.case_id for run in _shuffled(seen)[:judged]}

    def limit_and_broken(tokens):
        taken = [replace(run, tokens=tokens if run.case_id in judges else 1000) for run in seen]
        contract = learn("shop", taken, most_false=0.1)
        (limit,) = [line for line in contract.lines if line.line.kind == "max_tokens"]
        return limit.line.value, limit.fails, limit.broken

    assert limit_and_broken(1400) == (1500, True, 0)
    assert limit_and_broken(1600) == (2400, False, None), "all judges break it, so it is a sign, of all runs"


def test_one_good_run_far_out_costs_the_limit_that_it_breaks_and_no_other_line():
    seen = [observe_run(case, group="shop", good=True) for case, _ in runs(3, 120, bad=0.0)]
    judged = _shuffled(seen)[0]
    contract = learn("shop", [replace(run, tokens=10**6) if run is judged else run for run in seen], most_false=0.05)
    failing = {line.line.kind for line in contract.lines if line.fails}
    assert {"tools_should_include", "arguments_schema", "before"} <= failing
    assert "max_tokens" not in failing


def test_what_learning_calls_kept_is_what_the_rubric_passes():
    """A promise holds for lines as learning checks them, so the rubric must check them in the same way."""
    contract = learned(5, 200, most_false=0.05)
    scenario = parse_scenario("shop", contract.scenarios()["shop"])
    lines = [line.line for line in contract.lines if line.fails]
    assert len(lines) > 10
    for case, good in runs(500, 300, bad=0.6):
        kept = all(line.keeps(observe_run(case, group="shop", good=good)) for line in lines)
        assert passes(case, scenario) is kept, case


@pytest.mark.parametrize("values", [(1, True), (True, 1), (2, 2.0), (0, False)])
def test_an_argument_that_is_written_in_two_types_has_both_in_its_schema(values):
    """Python takes 1, 1.0 and true for equal; a schema does not."""
    seen = []
    for number, (case, _) in enumerate(runs(1, 60, bad=0.0)):
        observed = observe_run(case, group="shop", good=True)
        calls = tuple(replace(call, arguments={"n": values[number % 2]}) for call in observed.calls)
        seen.append(replace(observed, calls=calls))
    found = learn("shop", seen, most_false=0.1).scenarios()["shop"]
    schema = (found.get("arguments_schema") or found["signs"]["arguments_schema"])["get_order"]
    assert len(schema["properties"]["n"]["type"]) == 2


def test_an_agent_that_no_line_names_fails_no_run():
    contract = learned(5, 200, most_false=0.05)
    scenario = parse_scenario("shop", contract.scenarios()["shop"])
    assert any(line.line.kind == "agents_should_include" and line.fails for line in contract.lines)
    assert any(line.line.kind == "tools_may_include" and line.fails for line in contract.lines)
    case, _ = run(random.Random(0), 0, None)
    assert passes(case, scenario)
    assert passes(replace(case, agents_called=("desk", "auditor")), scenario)


def test_with_fewer_runs_than_it_takes_every_line_is_a_sign_and_the_number_is_reported():
    contract = learned(5, 308)
    assert contract.judged == 0
    assert contract.more_runs == 1
    assert contract.lines
    assert not any(line.fails for line in contract.lines)
    assert list(contract.scenarios()["shop"]) == ["signs"]
    enough = learned(5, 309)
    assert enough.judged == 299
    assert learned(5, 100, most_false=0.0).more_runs is None


def test_a_run_that_is_read_twice_counts_once():
    seen = [observe_run(case, group="shop", good=True) for case, _ in runs(1, 40, bad=0.0)]
    assert learn("shop", seen * 10).runs == 40
    once = learn("shop", seen, most_false=0.1).scenarios()
    assert learn("shop", [*reversed(seen), *seen], most_false=0.1).scenarios() == once


def test_a_bad_run_and_one_that_a_history_names_too_count_once():
    seen = [observe_run(case, group="shop", good=good) for case, good in runs(1, 60, bad=0.3)]
    bad = sum(run.good is False for run in seen)
    named = [replace(run, names_only=True, requested="", calls=tuple(replace(c, arguments={}) for c in run.calls))
             for run in seen]  # fmt: skip
    found = learn("shop", [*seen, *named, *seen])
    assert (found.runs, {line.bad for line in found.lines}) == (60 - bad, {bad})


def test_runs_of_which_names_alone_are_known_confirm_nothing_of_arguments():
    seen = [observe_run(case, group="shop", good=True) for case, _ in runs(1, 200, bad=0.0)]
    whole = learn("shop", seen, most_false=0.05)
    assert "values_from" in whole.scenarios()["shop"]
    named = [replace(run, names_only=n % 2 == 0) for n, run in enumerate(seen)]
    found = learn("shop", named, most_false=0.05).scenarios()["shop"]
    assert "tools_should_include" in found
    assert not {"values_from", "arguments_schema"} & found.keys()


def test_runs_that_are_asked_for_different_things_are_learned_from_apart():
    def asked(word, tools, number):
        calls = tuple(ToolCall(name=tool, arguments={}) for tool in tools)
        case = Case(
            case_id=f"{word}{number}", model_output="ok", input=f"Please {word} order {number}", tools_used=calls
        )
        return observe_run(case, group="desk", good=True)

    seen = [asked("cancel", ("find", "cancel_order"), n) for n in range(60)]
    seen += [asked("track", ("find", "ship_status"), n) for n in range(60)]
    seen += [asked(f"greet {n}", (), n) for n in range(40)]
    whole = learn("desk", seen, most_false=0.1).scenarios()["desk"]
    assert "tools_should_include" not in whole
    contract = learn("desk", seen, most_false=0.1, by_request=True)
    scenarios = contract.scenarios()
    assert len(scenarios) == 3
    assert sorted(found.get("tools_should_include", []) for found in scenarios.values()) == [
        [], ["cancel_order", "find"], ["find", "ship_status"],
    ]  # fmt: skip
    assert [condition for _, condition in contract.routes()][-1] == {}


def test_words_that_say_nothing_of_what_is_called_divide_nothing():
    chance = random.Random(4)
    cases = [case for case, _ in runs(3, 150, bad=0.0)]
    words = ("please", "now", "kindly", "again", "today")
    seen = [
        observe_run(replace(case, input=f"{' '.join(chance.sample(words, 2))} {case.input}"), group="shop", good=True)
        for case in cases
    ]
    assert divide(seen) == ()


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
    assert learned(1, 30).more_runs == 279


def test_without_labels_rare_faults_do_not_become_rules():
    scenario = parse_scenario("shop", learned(9, 200, bad=0.02, labelled=False, most_false=0.05).scenarios()["shop"])
    judged = [passes(case, scenario) for case, good in runs(900, 200, bad=0.0) if good]
    assert sum(judged) / len(judged) >= 0.95


@pytest.mark.parametrize("of_its_own", ["tools", "arguments"])
def test_the_work_of_learning_grows_with_the_runs_where_each_names_tools_or_arguments_of_its_own(of_its_own):
    def made(count):
        return [
            ObservedRun(
                case_id=f"{n}", group="g", agents=None, requested="order 4711",
                calls=tuple(
                    ObservedCall(
                        f"tool {n} {k}" if of_its_own == "tools" else "tool",
                        {f"{n} {k} {each}" if of_its_own == "arguments" else f"{each}": "4711" for each in range(3)},
                        "done",
                    )
                    for k in range(4)
                ),
            )
            for n in range(count)
        ]  # fmt: skip

    few, many = made(40), made(160)
    assert steps(lambda: list(propose(many))) <= 6 * steps(lambda: list(propose(few)))
