"""Applications made by chance, whose good runs depart from what most of them do as rarely or as often as chance has it.

``python -m tests.scoring.learning.simulated_worlds`` prints how often a promise of ``learn`` is broken by fresh runs.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence

from sidejudge.scoring.learning.contract import Contract, learn
from sidejudge.scoring.learning.observed_run import ObservedCall, ObservedRun, task_of
from sidejudge.scoring.statistics.interval import least_trials

FRESH = 2000
"""Runs by which the true share of false violations is found."""


def world(seed: int) -> Callable[[random.Random, bool], ObservedRun]:
    """A maker of runs. Each world has tasks, with tools, values and lengths of their own, all with long tails."""
    dice = random.Random(f"world {seed}")
    tail = dice.choice((1.0, 1.5, 2.5))
    tasks = [_task(dice, number, tail) for number in range(dice.randrange(1, 5))]
    wrong = dice.choice(("skips", "invents", "repeats"))

    def run(chance: random.Random, good: bool) -> ObservedRun:  # noqa: FBT001  # as the worlds' callers read
        name, usual, rare = chance.choice(tasks)
        order = f"#W{chance.randrange(10**7):07d}"
        calls = [tool for tool, share in usual if chance.random() < share]
        calls += [tool for tool, share in rare if chance.random() < share]
        if chance.random() < 0.02:
            chance.shuffle(calls)
        calls += [calls[-1]] * min(20, int(chance.paretovariate(tail)) - 1) if calls else []
        if not good and wrong == "skips":
            calls = calls[1:]
        if not good and wrong == "repeats":
            calls += calls[-1:] * 30
        named = f"#X{chance.randrange(10**7):07d}" if not good and wrong == "invents" else order
        reason = f"reason {min(30, int(chance.paretovariate(tail)))}"
        given = {"order": named, "reason": reason, **({"note": "x"} if chance.random() < 0.01 else {})}
        return ObservedRun(
            case_id=str(chance.random()), group="world",
            calls=tuple(ObservedCall(tool, given, "done") for tool in calls),
            agents=("desk", *(("auditor",) if chance.random() < 0.01 else ())),
            requested=f"{name} {order}", asked=frozenset({name, "please"}), good=good,
            tokens=int(1000 * chance.paretovariate(tail + 1)),
        )  # fmt: skip

    return run


def _task(dice: random.Random, number: int, tail: float):
    tools = [f"tool_{dice.randrange(12)}" for _ in range(dice.randrange(2, 6))]
    usual = [(tool, dice.choice((1.0, 1.0, 0.999, 0.98, 0.7))) for tool in dict.fromkeys(tools)]
    rare = [(f"rare_{n}", 0.2 / (n + 1) ** (tail + 0.5)) for n in range(dice.randrange(0, 12))]
    return ("refund", "cancel", "track", "exchange")[number], usual, rare


def fails(contract: Contract, run: ObservedRun, *, signs: bool = False) -> bool:
    """Whether a run fails by the lines of its task; with ``signs`` also where it departs from what most do."""
    words = [task.asked for task in contract.tasks if task.asked is not None]
    task = next(task for task in contract.tasks if task.asked == task_of(words, run))
    return not all(line.line.keeps(run) for line in task.lines if line.fails or signs)


def draw(seed: int, runs: int, most_false: float, *, bad: float, by_request: bool, fresh: int = FRESH):
    """The contract of one draw of one world, and the shares of fresh good and bad runs that it fails."""
    make, chance = world(seed), random.Random(f"draw {seed} {runs}")
    seen = [make(chance, True) for _ in range(runs)] + [make(chance, False) for _ in range(int(runs * bad))]
    contract = learn("world", seen, most_false=most_false, by_request=by_request)
    good = sum(fails(contract, make(chance, True)) for _ in range(fresh)) / fresh
    caught = sum(fails(contract, make(chance, False)) for _ in range(fresh // 4)) / (fresh // 4)
    return contract, good, caught


def table(draws: int, sizes: Sequence[tuple[int, float]]) -> Iterator[str]:
    """A line a size: how many draws break the promise, and what the contracts are worth."""
    yield "good runs  most false  by request  draws  broken promise  any line fails  false (mean)  caught (mean)"
    for runs, most_false in sizes:
        for by_request in (False, True):
            done = [draw(seed, runs, most_false, bad=0.3, by_request=by_request) for seed in range(draws)]
            broken = sum(good > most_false for _, good, _ in done)
            failing = sum(any(line.fails for line in contract.lines) for contract, _, _ in done)
            yield (
                f"{runs:9}  {most_false:10}  {'yes' if by_request else 'no':>10}  {draws:5}  {broken / draws:14.1%}  "
                f"{failing / draws:14.0%}  {sum(good for _, good, _ in done) / draws:12.2%}  "
                f"{sum(caught for _, _, caught in done) / draws:13.0%}"
            )


if __name__ == "__main__":
    few = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for line in table(few, [(n, share) for share in (0.01, 0.05, 0.1) for n in (least_trials(share) + 30, 1000)]):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
