"""Fit of run_health: simulated agents with known faults, and which weights and pass mark tell them apart best.

    python -m tests.simulation.run_health_fit            # writes docs/explanation/run-health.md

A program makes runs of six kinds of agents. Three of four go well, with what healthy agents show as well: a call that
fails and is tried again, polling, calls beside each other, a greeting that needs no tool, an assumption that is stated
and holds, a sub-agent that finds nothing twice. The others have one fault each at a known step, some of a kind that
leaves no sign. Weights are fitted to runs in two instrumentations; the page reports others, each in all three.
Nothing here is about other people's agents: the mixture of faults is made up.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sidejudge.integrations.dialects import normalise
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.trace import Trace
from tests.simulation.agent_runs import DIALECTS, FAILED, FINE, TOOLS, spans_of

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "run-health.md"
RUNS = 1_200
MOST_FLAGGED = 0.15
MOST_FAILED = 0.015
HIGH = (
    "crash", "no_answer", "error_as_answer", "cut_off", "loop", "turns", "most_calls_fail", "no_tool", "ignored_result",
    "assumes", "finds_nothing", "states_a_loop", "agent_again", "agent_refuses", "rounds_reached", "made_up_value",
    "opposite_of_result", "success_of_failure", "wrong_reasoning", "wrong_goal", "made_up_detail", "wrong_order",
    "half_done", "wrong_source",
)  # fmt: skip
"""Faults that spoil a run. The last six, a quarter, leave no sign."""
SILENT = HIGH[-6:]
LOW = ("unknown_tool", "bad_arguments", "same_error_again", "one_call_fails")
"""Faults that a run may survive."""
KINDS = {"lookup": (1, 4), "research": (4, 12), "coder": (3, 10), "solver": (2, 6), "team": (2, 5), "chat": (0, 1)}
"""Agents, and how many calls they make. A solver answers by a tool, a team has sub-agents."""
ASSUMES = (
    "I will assume that the price is the one of last year, and go on with it.",
    "The page is not there, so let's simulate the result of the search and continue.",
    "From my own memory, the bridge was opened in 1932 and is 503 metres long.",
    "My best guess is that the number in the second row of the table is the one.",
)
FINDS_NOTHING = (
    "I was not able to find the file in the folder, and I answer without it.",
    "The number of visitors is not provided in the search results that I have.",
)
LOOPS = (
    "We are stuck in a loop, because the same page is loaded again and again.",
    "There has been no progress in the last steps of the plan that we made.",
    '{"is_in_loop": {"reason": "dasselbe noch einmal", "answer": true}}',
    '{"is_in_loop": {"answer": false}, "is_progress_being_made": {"reason": "x", "answer": false}}',
)
THOUGHTS = (
    "", "", "I will look up the price in the list of this year.", "Next I read the second page of the report.",
    "The first result has what is asked, and I check it in the table.", "Ich sehe in der Tabelle nach, ob es stimmt.",
)  # fmt: skip
REFUSALS = ("I'm sorry, but I can't help with that request.", "Es tut mir leid, dabei kann ich nicht helfen.")
ROUNDS = ("Maximum number of rounds reached.", "Agent stopped due to iteration limit or time limit.")
NOTHING_THERE = "The register has no entry for that ship on the day that was asked for."
HEALTH = RUBRICS["run_health"]
SIGNS = ("no_stated_trouble", "not_stuck", "outputs_vary", "results_upheld")
"""Signs by words that have a weight."""
METRICS = tuple(criterion.metric.id for criterion in HEALTH.criteria if criterion.metric.id != "telemetry")


class Maker:
    """Makes one run: its steps, and where it goes wrong."""

    def __init__(self, dice: random.Random, number: int, kind: str, fault: str | None) -> None:
        self.dice, self.number, self.kind, self.fault = dice, number, kind, fault
        self.steps: list[tuple[str, dict, bool]] = []
        self.wrong: set[int] = set()
        self.order = f"ORD-{dice.randrange(10**4, 10**5)}"
        low, high = KINDS[kind]
        calls = 0 if fault == "no_tool" else max(dice.randint(low, high), 2 if fault else 0)
        asked = f"Please find out number {number} of the order {self.order}." if calls or fault else "Hello!"
        fact = ""
        for turn in range(calls):
            fact = self.turn(turn, noisy=0.25 if kind == "coder" else 0.08)
        self.claims = self.healthy_claim() if calls and dice.random() < 0.1 else ""
        self.faults()
        self.answer(asked, fact)

    def say(self, text, *, wrong=False):
        self.steps.append(("llm", {"text": text, "calls": [], "finish": "stop"}, False))
        if wrong:
            self.wrong.add(len(self.steps) - 1)

    def ask_agent(self, name, given, output, *, error=None, wrong=False):
        self.steps.append(("agent", {"name": name, "input": given, "output": output, "error": error}, False))
        if wrong:
            self.wrong.add(len(self.steps) - 1)

    def call(self, name, arguments, result, *, error=None, beside=False, wrong=False):
        if not beside:
            thought = self.dice.choice(THOUGHTS)
            self.steps.append(("llm", {"text": thought, "calls": [(name, arguments)], "finish": "tool_calls"}, False))
        step = {"name": name, "arguments": arguments, "result": result, "error": error, "beside": beside}
        self.steps.append(("tool", step, False))
        if wrong:
            self.wrong.add(len(self.steps) - 1)

    def healthy_claim(self) -> str:
        """A call with a yes or no, or one that fails and is made good, and what is rightly said of it."""
        if self.dice.random() < 0.5:
            offered = self.dice.random() < 0.5
            self.call("search", {"q": f"ticket {self.order}"}, json.dumps({"refundable": offered, "order": self.order}))
            return f"The order {self.order} is {'' if offered else 'not '}refundable. "
        self.call("book", {"q": f"seat {self.number}"}, self.dice.choice(FAILED))
        self.call("book", {"q": f"seat {self.number}"}, f"booked {self.number}")
        return f"I have booked the seat {self.number} for you. "

    def turn(self, turn: int, noisy: float) -> str:
        """A call that a healthy agent makes, now and then with what is no fault of it."""
        dice = self.dice
        name, arguments = dice.choice(TOOLS), {"q": f"{dice.choice(('price', 'name'))} {self.number} {turn}"}
        fact = f"{self.number}{turn}{dice.randrange(100)}"
        result = f"{dice.choice(FINE)} (row {fact})"
        if dice.random() < noisy:
            self.call(name, arguments, dice.choice(FAILED))  # and tried again
        elif dice.random() < 0.05:
            for _ in range(3):
                self.call("read_page", {"q": f"job {self.number} {turn}"}, "pending")
            self.call("read_page", {"q": f"job {self.number} {turn}"}, f"done {fact}")
        self.call(name, arguments, result)
        if dice.random() < 0.05:  # written in another way, or known by heart
            known = dice.choice((self.order, self.order.casefold(), self.order.replace("-", " ")))
            known = "RFC-2616" if dice.random() < 0.1 else known
            self.call("read_page", {"q": "status", "order_id": known}, f"status of {fact} is open")
        if dice.random() < 0.003:
            self.say(dice.choice((*ASSUMES[:1], *FINDS_NOTHING[:1])))  # and it holds, or is found elsewhere
        if self.kind == "team" and dice.random() < 0.7:
            nothing = dice.random() < 0.1
            self.ask_agent(
                "register", f"ship {turn}", NOTHING_THERE if nothing else f"The ship {fact} is in the harbour of Riga."
            )
        if dice.random() < 0.15:
            for page in range(3):
                self.call(name, {"q": f"{fact} {page}"}, f"page {page} of {fact}", beside=True)
        return fact

    def faults(self) -> None:  # noqa: C901, PLR0912  # one branch a fault
        dice, number = self.dice, self.number
        match self.fault:
            case "loop":
                for again in range(dice.randint(3, 25)):
                    self.call("search", {"q": "again"}, f"nothing new {number}", wrong=again > 0)
            case "turns":
                for again in range(dice.randint(4, 24)):
                    self.call(TOOLS[again % 2], {"q": "again"}, f"nothing new {again % 2}", wrong=again > 1)
            case "most_calls_fail":
                for again in range(len(self.steps) + 2):
                    self.call(dice.choice(TOOLS), {"q": f"other {again}"}, dice.choice(FAILED), wrong=True)
            case "unknown_tool":
                self.call("teleport", {"q": "x"}, "Unknown tool: teleport", wrong=True)
            case "bad_arguments":
                self.call("search", {"query": "x", "page": "one"}, f"ok {number}", wrong=True)
            case "same_error_again":
                for again in range(3):
                    self.call("book", {"q": f"seat {again}"}, f"Error: seat {again} is locked", wrong=True)
            case "one_call_fails":
                self.call("book", {"q": "seat"}, dice.choice(FAILED), wrong=True)
            case "ignored_result":
                self.call("search", {"q": "figure"}, f"revenue of Zyxal was {number}77 crowns", wrong=True)

            case "assumes":
                self.say(dice.choice(ASSUMES), wrong=True)
            case "finds_nothing":
                self.say(dice.choice(FINDS_NOTHING), wrong=True)
            case "states_a_loop":
                self.say(dice.choice(LOOPS), wrong=True)
            case "agent_again":
                for again in range(2):
                    said = f"The list has {number} ships, and the third of them sails at nine."
                    self.ask_agent("planner", "list the ships", said, wrong=again > 0)
            case "agent_refuses":
                self.ask_agent("writer", "write the letter", dice.choice(REFUSALS), wrong=True)
            case "rounds_reached":
                self.ask_agent("solver", "solve it", dice.choice(ROUNDS), wrong=True)
            case "made_up_value":
                made_up = f"ORD-{dice.randrange(10**5, 10**6)}"
                self.call("read_page", {"q": "status", "order_id": made_up}, "the order is open", wrong=True)
            case "opposite_of_result":
                self.call("search", {"q": f"ticket {self.order}"}, json.dumps({"refundable": False}))
                self.wrong.add(len(self.steps) - 1)
                self.claims = f"Good news: your ticket {self.order} is refundable. "
            case "success_of_failure":
                self.call("book", {"q": f"seat {self.number}"}, dice.choice(FAILED), wrong=True)
                self.claims = f"I have successfully booked the seat {self.number} for you. "

    def answer(self, asked: str, fact: str) -> None:
        text = f"{self.claims}The answer of {self.number} is {fact or self.dice.randrange(10**4)}."
        finish = "length" if self.fault == "cut_off" else "stop"
        error = "RuntimeError: boom" if self.fault == "crash" else None
        if self.fault in ("crash", "no_answer"):
            text = ""
        elif self.fault == "error_as_answer":
            text = self.dice.choice(["TimeoutError: 60 s", "Agent stopped due to max iterations.", "HTTP 500"])
        elif self.fault == "ignored_result":
            text = "I could not find anything about it."
        by_tool = self.kind == "solver" and text and finish == "stop"
        calls = [("final_answer", {"answer": text})] if by_tool else []
        self.steps.append(("llm", {"text": "" if by_tool else text, "calls": calls, "finish": finish}, False))
        if self.fault in ("cut_off", "no_tool", *SILENT):
            self.wrong.add(len(self.steps) - 1)
        if by_tool:
            step = {"name": "final_answer", "arguments": {"answer": text}, "result": text}
            self.steps.append(("tool", step, False))
        top = self.fault in ("crash", "no_answer", "error_as_answer")
        agent = ("agent", {"input": asked, "output": text, "error": error}, top)
        steps = [(kind, step, at in self.wrong) for at, (kind, step, _) in enumerate(self.steps)]
        self.steps = [agent, *steps]


@dataclass(frozen=True)
class Judged:
    """One run: its fault, the value and blockers of each metric, and which places are wrong and which are named."""

    fault: str | None
    values: np.ndarray
    blocked: bool
    wrong: frozenset[int]
    named: dict[str, frozenset[int]]
    places: int


def judged(number: int, dialect, seed: int) -> Judged:
    dice = random.Random(f"{seed} {number}")
    kind = dice.choice(list(KINDS))
    fault = None if number % 4 else dice.choice((*HIGH, *LOW) if dice.random() < 0.5 else HIGH)
    steps = Maker(dice, number, kind, fault).steps
    trace = Trace.of(f"{number + 1:032x}", [normalise(raw) for raw in spans_of(steps, dialect, number)], "batch")
    verdict = score(extract(trace), HEALTH, created_at="")
    results = {each.metric: each.result for each in verdict.scores}
    named: dict[str, set[int]] = {}
    for name in METRICS:
        held = results[name].details.get("signs", ()) if isinstance(results[name], Scored) else ()
        named[name] = {int(sign["span_id"], 16) - 1 for sign in held if sign["span_id"] is not None}
    return Judged(
        fault=fault,
        values=np.array([r.value if isinstance(r := results[name], Scored) else np.nan for name in METRICS]),
        blocked=bool(verdict.blockers),
        wrong=frozenset(at for at, (_, _, wrong) in enumerate(steps) if wrong),
        named={metric: frozenset(places) for metric, places in named.items()},
        places=len(steps),
    )


def places(runs: list[Judged], metrics: frozenset[str]) -> tuple[float, float]:
    """Of runs with a fault that spoils them, the share named at the place; of other places, the share named."""
    high = [run for run in runs if run.fault in HIGH]
    named = [frozenset().union(*(places for name, places in run.named.items() if name in metrics)) for run in runs]
    noticed = sum(bool(run.wrong & found) for run, found in zip(runs, named, strict=True) if run.fault in HIGH)
    flagged = sum(len(found - run.wrong) for run, found in zip(runs, named, strict=True))
    return noticed / len(high), flagged / sum(run.places - len(run.wrong) for run in runs)


def failing(runs: list[Judged], weights: np.ndarray, mark: float) -> tuple[float, float]:
    """The share that fails of runs that a fault spoils, and of runs without any fault."""
    failed = (_composite(runs, weights) < mark - 1e-9) | np.array([run.blocked for run in runs])
    high = np.array([run.fault in HIGH for run in runs])
    sound = np.array([run.fault is None for run in runs])
    return float(failed[high].mean()), float(failed[sound].mean())


def _composite(runs: list[Judged], weights: np.ndarray) -> np.ndarray:
    values = np.stack([run.values for run in runs])
    total = (~np.isnan(values) * weights).sum(axis=1)
    return np.where(total > 0, np.nansum(values * weights, axis=1) / np.maximum(total, 1e-9), 1.0)


def fitted(runs: list[Judged], seed: int) -> tuple[np.ndarray, float]:
    """Weights in steps of 0.025 and a pass mark, by random searches from those in force, equal and random ones.

    The most runs fail that a fault spoils, with at most ``MOST_FAILED`` of the sound ones. A metric that is the same
    for all runs gets no weight.
    """
    rng = np.random.default_rng(seed)
    held = np.stack([run.values for run in runs])
    varied = np.array([len(set(column[~np.isnan(column)])) > 1 for column in held.T])
    found = (in_force()[0] * varied, in_force()[1], -1.0)
    for start in (in_force()[0], np.full(len(METRICS), 0.1), rng.random(len(METRICS)) / 5):
        best, mark, goal = start * varied, in_force()[1], -1.0
        for _ in range(1_500):
            moved = rng.normal(0, 0.06, len(best)) * (rng.random(len(best)) < 0.4) * varied
            trial = np.round(np.maximum(0, best + moved) * 40) / 40
            at = float(np.clip(round((mark + rng.normal(0, 0.03)) * 100) / 100, 0.5, 0.98))
            if trial.sum() > 0:
                caught, wrong = failing(runs, trial, at)
                if wrong <= MOST_FAILED and caught - wrong > goal:
                    best, mark, goal = trial, at, caught - wrong
        if goal > found[2]:
            found = best, mark, goal
    return found[0] / found[0].sum(), found[1]


def in_force() -> tuple[np.ndarray, float]:
    weights = {criterion.metric.id: criterion.weight or 0.0 for criterion in HEALTH.criteria}
    return np.array([weights[name] for name in METRICS]), float(HEALTH.pass_mark)


def auc(runs: list[Judged], weights: np.ndarray) -> float:
    """The chance that a run that a fault spoils has a lower value than one without any; a blocker is below all."""
    values = _composite(runs, weights) - np.array([run.blocked for run in runs])
    high = values[np.array([run.fault in HIGH for run in runs])][:, None]
    sound = values[np.array([run.fault is None for run in runs])][None, :]
    return float((high < sound).mean() + (high == sound).mean() / 2)


def precision(runs: list[Judged], metric: str) -> tuple[float | None, float]:
    """Of the steps that a metric names, the share that goes wrong, None without any; of all steps, the share named."""
    found = sum(len(run.named[metric]) for run in runs)
    right = sum(len(run.named[metric] & run.wrong) for run in runs)
    return (right / found if found else None), found / sum(run.places for run in runs)


def page() -> str:
    half = [judged(n, DIALECTS[n % 2], seed=17) for n in range(RUNS)]
    rest = {dialect.__name__: [judged(n, dialect, seed=18) for n in range(RUNS)] for dialect in DIALECTS}
    last = rest[DIALECTS[2].__name__]
    weights, mark = in_force()
    other, other_mark = fitted(half, seed=19)
    weighed = frozenset(name for name, weight in zip(METRICS, weights, strict=True) if weight)
    shown = frozenset(METRICS) - {"results_used"}
    rows = []
    for name, own, fit in zip(METRICS, weights, other, strict=True):
        noticed = places(last, frozenset({name}))[0]
        right, flagged = zip(*(precision(runs, name) for runs in rest.values()), strict=True)
        figures = " / ".join("–" if share is None else f"{share:.0%}" for share in right)
        rows.append(
            f"| `{name}` | {own:.3g} | {fit:.3f} | {noticed:.1%} | {figures} | "
            f"{' / '.join(f'{share:.2%}' for share in flagged)} |"
        )
    kinds = Counter(run.fault for run in last if run.fault in HIGH)
    seen = Counter(run.fault for run in last if run.fault in HIGH and _named(run, shown))
    by_kind = ", ".join(f"{kind.replace('_', ' ')} {seen[kind]} of {kinds[kind]}" for kind in HIGH)
    each = []
    for what, runs in rest.items():
        (noticed, flagged), (caught, wrong) = places(runs, shown), failing(runs, weights, mark)
        each.append(
            f"| {what} | {noticed:.1%} | {flagged:.2%} | {auc(runs, weights):.3f} | {caught:.1%} | {wrong:.1%} |"
        )
    lines, held_out = [], {}
    without = weights * np.array([name not in SIGNS for name in METRICS])
    tried = {"in force": (weights, mark), "without signs": (without, mark), "fitted": (other, other_mark)}
    for what, (w, m) in tried.items():
        for whom, runs in (("fitted to", half), ("held out", last)):
            caught, wrong = held_out[what] = failing(runs, w, m)
            lines.append(f"| {what}, pass mark {m:.2f} | {whom} | {caught:.1%} | {wrong:.1%} | {auc(runs, w):.3f} |")
    sets = []
    for what, names in (("with a weight", weighed), ("all but `results_used`", shown), ("all", frozenset(METRICS))):
        noticed, flagged = places(last, names)
        sets.append(f"| {what} | {noticed:.1%} | {flagged:.2%} |")
    high = sum(kinds.values())
    chance = 2 * (held_out["in force"][0] * (1 - held_out["in force"][0]) / high) ** 0.5
    gain, wrong = held_out["fitted"][0] - held_out["in force"][0], held_out["fitted"][1]
    stays = KEPT if gain <= chance else UNSAFE if wrong > MOST_FAILED else WORSE
    most = f"{MOST_FAILED:.1%}"
    return TEXT.format(
        verdict=stays.format(gain=f"{gain:+.1%}", chance=f"{chance:.1%}", wrong=f"{wrong:.1%}", most=most),
        rows="\n".join(rows), lines="\n".join(lines), sets="\n".join(sets), by_kind=by_kind, each="\n".join(each),
        runs=RUNS, high=high, flagged=f"{MOST_FLAGGED:.0%}", failed=most, notes=NOTES,
    )  # fmt: skip


def _named(run: Judged, metrics: frozenset[str]) -> bool:
    return any(run.wrong & places for name, places in run.named.items() if name in metrics)


KEPT = """\
- The weights stay. On the held-out runs the fitted ones fail {gain} more of the spoilt runs, where chance alone
  makes {chance} (two standard errors)."""
UNSAFE = """\
- The weights stay. On the held-out runs the fitted ones fail {gain} more of the spoilt runs, and {wrong} of the sound
  ones, where at most {most} are allowed: what the fit found in one half does not hold in the other."""
WORSE = """\
- The fitted weights fail {gain} more of the spoilt held-out runs than those in force, more than chance makes
  ({chance}): they should be changed."""
NOTES = """\
- Signs by words lower the value of a run, so that worse runs stand below better ones, and fail none alone: how often
  they are right on other people's agents depends on how those write.
- `sub_agents_answered` and `not_exhausted` have no weight, because `step_success`, `completed` and `answer_intact`
  weigh the same failures: one failure counts once. `values_founded` has none, because some values are known by heart.
- `results_used` has no weight, and its signs stand with it alone: with it more faults would be named, but more steps
  of other runs than are allowed.
- A run that answers without any of its tools is named and passes: choose `tools_tried` with more weight by a rubric of
  your own where an answer without a tool is always wrong."""
TEXT = """\
<!-- Generated by `python -m tests.simulation.run_health_fit`; changes here are lost. -->
# Where the weights of run_health come from

`run_health` names the spans at which a run shows trouble, and fails a run by a weighted mean of its metrics or by a
blocker. Its weights and pass mark are held against {runs} simulated runs that they were fitted to, reported by two
instrumentations, and {runs} others, each reported by all three. A program knows what each run does wrong, and where.
Three of four runs go well and still show what healthy agents show: calls that fail and are tried again, polling, calls
beside each other, answers that need no tool, assumptions that hold. A quarter of the kinds of fault that spoil a run
leaves no sign at all.

## In each instrumentation

The same held-out runs, as three instrumentations report them: faults that spoil a run and are noticed at their step,
other steps that are named too, the chance that a spoilt run has a lower value than a sound one (AUC), spoilt runs and
sound runs that fail.

| instrumentation | noticed | flagged | AUC | spoilt runs that fail | sound runs that fail |
|---|---|---|---|---|---|
{each}

## Places

Of the {high} held-out runs that a fault spoils, the share in which the step that goes wrong is named; of all other
steps, the share that is named too (at most {flagged} is allowed):

| metrics | noticed | flagged |
|---|---|---|
{sets}

By kind of fault: {by_kind}.

## Runs

Of the runs that a fault spoils, the share that fails; of the runs without a fault, the share that fails too. The
fit looks for the most of the former with at most {failed} of the latter:

| weights | runs | spoilt runs that fail | sound runs that fail | AUC |
|---|---|---|---|---|
{lines}

## Metrics

Each alone, on the held-out runs: faults that spoil a run and are noticed at their step, and, in each of the three
instrumentations, the share of the named steps that go wrong (precision) and the share of all steps that are named.

| metric | weight in force | fitted | noticed | precision | flagged |
|---|---|---|---|---|---|
{rows}

## What follows

{verdict}
{notes}

The mixture of faults is the program's, and so are all shares that depend on how frequent a fault is, precision first.
These figures say what the rules can do and that they do the same in each instrumentation; how often agents of other
people show which fault is not known here. Faults of reasoning need a judge.
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
