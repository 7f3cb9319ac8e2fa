"""Tasks: runs of one group that are asked for the same, found by words of what they are asked.

A list of words, looked for in their order: the first that a request holds names its task. A configuration holds the
same list as routes. A word is chosen where the tools that are called depend on it by more than the Bayesian
information criterion asks for (Schwarz 1978, doi:10.1214/aos/1176344136): chance divides nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Final

from .observed_run import ObservedRun

MOST_TASKS: Final = 12
LEAST_RUNS: Final = 10
"""Runs that a task has at least, and that are left at least."""
_MOST_WORDS: Final = 500
"""Words that are tried at each step, the most frequent."""


def divide(runs: Sequence[ObservedRun]) -> tuple[str, ...]:
    """The words that name the tasks, in the order in which they are looked for; none where nothing speaks for any."""
    rest, words = list(runs), list[str]()
    while len(words) < MOST_TASKS and (word := _dividing(rest)) is not None:
        words.append(word)
        rest = [run for run in rest if word not in run.asked]
    return tuple(words)


def task_of(words: Sequence[str], run: ObservedRun) -> str | None:
    """The first of the words that the run is asked; None for none of them."""
    return next((word for word in words if word in run.asked), None)


def _dividing(runs: Sequence[ObservedRun]) -> str | None:
    count = len(runs)
    frequent = Counter(word for run in runs for word in run.asked)
    words = [word for word, n in sorted(frequent.items(), key=lambda each: (-each[1], each[0]))
             if LEAST_RUNS <= n <= count - LEAST_RUNS][:_MOST_WORDS]  # fmt: skip
    called = {tool: n for tool, n in Counter(tool for run in runs for tool in run.tools).items() if n < count}
    if not words or not called:
        return None
    tried = frozenset(words)
    together = Counter(pair for run in runs for pair in product(run.asked & tried, run.tools))
    before = sum(_disorder(n, count) for n in called.values())

    def gain(word: str) -> float:
        own = frequent[word]
        return before - sum(
            _disorder(together[word, tool], own) + _disorder(n - together[word, tool], count - own)
            for tool, n in called.items()
        )

    best = max(words, key=gain)
    price = len(called) * math.log(count) / 2 + math.log(len(words))
    return best if gain(best) > price else None


def _disorder(hits: int, of: int) -> float:
    """Bits, in natural units, that it takes to write down which of the runs called a tool."""
    return -math.fsum(n * math.log(n / of) for n in (hits, of - hits) if n)
