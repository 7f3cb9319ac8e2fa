"""Agents with known faults, as three instrumentations report them: which are noticed, and what else is flagged.

A program makes the runs and knows at which step each goes wrong. Signs of run_health with a weight are held against
it, span by span. On 2026-11-22 all 120 faults were noticed by each of the three, with 19 of 2,076 other steps flagged.
The faults are the program's, so these numbers say what the rules can do, not how often other people's agents show it.
"""

from __future__ import annotations

import random

import pytest

from sidejudge.integrations.dialects import normalise
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.trace import Trace
from tests.simulation.agent_runs import DIALECTS, FAILED, FINE, TOOLS, spans_of

FAULTS = ("tool_error", "loop", "cut_off", "unknown_tool", "bad_arguments", "no_tool", "error_as_answer", "no_answer")
LEAST = 0.9
"""Of the runs with a fault, the share in which the step that goes wrong is named."""
MOST = 0.02
"""Of all other steps, the share that is named as well."""


def run(dice, number, fault):  # noqa: C901  # one branch a fault
    """Steps of one run, (kind, step, whether it goes wrong); the agent stands first."""
    steps = []
    at_fault = set()

    def call(name, arguments, result):
        steps.append(("llm", {"text": "", "calls": [(name, arguments)], "finish": "tool_calls"}))
        steps.append(("tool", {"name": name, "arguments": arguments, "result": result}))

    count = 0 if fault == "no_tool" else dice.randrange(2, 6)
    for turn in range(count):
        result = f"{dice.choice(FINE)} (row {number}-{turn}, {dice.randrange(10**4)})"
        call(dice.choice(TOOLS), {"q": f"{dice.choice(('price', 'name', 'date'))} {number} {turn}"}, result)
        if fault == "tool_error" and turn == 1:
            steps[-1][1]["result"] = dice.choice(FAILED)
            at_fault.add(len(steps) - 1)
    if fault == "loop":
        name, arguments, result = dice.choice(TOOLS), {"q": "again"}, f"nothing new {number}"
        for again in range(5):
            call(name, arguments, result)
            if again:
                at_fault.add(len(steps) - 1)
    if fault == "unknown_tool":
        call("teleport", {"q": "x"}, "Unknown tool: teleport")
        at_fault.add(len(steps) - 1)
    if fault == "bad_arguments":
        call("search", {"query": "x", "page": "one"}, f"ok {number}")
        at_fault.add(len(steps) - 1)
    answer = f"The answer of {number} is {dice.randrange(10**4)}."
    if fault == "error_as_answer":
        answer = dice.choice(["TimeoutError: 60 s", "Agent stopped due to max iterations.", "Internal Server Error"])
    if fault == "no_answer":
        answer = ""
    steps.append(("llm", {"text": answer, "calls": [], "finish": "length" if fault == "cut_off" else "stop"}))
    last = len(steps) - 1
    if fault in ("cut_off", "no_tool"):
        at_fault.add(last)
    agent = ("agent", {"input": f"Please find out number {number}.", "output": answer})
    wrong_top = fault in ("error_as_answer", "no_answer")
    return [(*agent, wrong_top)] + [(kind, step, at in at_fault) for at, (kind, step) in enumerate(steps)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_faults_are_noticed_where_they_are_and_little_else_is_flagged(dialect, record_property):
    dice = random.Random(17)
    health = RUBRICS["run_health"]
    weighed = {criterion.metric.id for criterion in health.criteria if criterion.weight}
    noticed, missed, flagged, others, failed_clean = 0, [], [], 0, 0
    for number in range(240):
        fault = FAULTS[number % len(FAULTS)] if number % 2 else None
        steps = run(dice, number, fault)
        trace = Trace.of(f"{number + 1:032x}", [normalise(raw) for raw in spans_of(steps, dialect, number)], "batch")
        verdict = score(extract(trace), health, created_at="")
        named = {sign["span_id"]: sign for sign in verdict.to_json().get("signs", ()) if sign["metric"] in weighed}
        wrong = {f"{at + 1:016x}" for at, (_, _, is_wrong) in enumerate(steps) if is_wrong}
        if wrong:
            noticed += bool(wrong & named.keys())
            missed += [] if wrong & named.keys() else [fault]
        failed_clean += fault is None and verdict.passed is False
        others += len(steps) - len(wrong)
        # Where a run has no answer its last model call has none either, and a tool's error is named once.
        flagged += [(fault, named[span_id]) for span_id in named.keys() - wrong]
    record_property("noticed", noticed)
    total = noticed + len(missed)
    assert noticed >= LEAST * total, missed
    assert len(flagged) <= MOST * others, flagged[:10]
    assert failed_clean == 0
