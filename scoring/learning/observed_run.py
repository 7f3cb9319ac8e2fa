"""Observed run: the parts of one run that learning reads, and the task that it was given.

A task is the runs of one group with the same kind of request, found by words. There is an ordered list of words: the
first one in a request names its task. A configuration holds the same list as routes. A word is chosen where the called
tools depend on it by more than the Bayesian information criterion requires (Schwarz 1978, doi:10.1214/aos/1176344136),
so that chance divides nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

from sidejudge.scoring.case.case import Case, asked_words
from sidejudge.scoring.case.run_figures import duration_s
from sidejudge.scoring.metrics.result_use import searchable
from sidejudge.scoring.trace.jsontext import decoded, mapping
from sidejudge.scoring.trace.span import Json


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One call: the tool, its arguments by name, and its result as text."""

    tool: str
    arguments: Mapping[str, Json]
    result: str


@dataclass(frozen=True, kw_only=True)
class ObservedRun:
    """One run. ``good`` is None where that is unknown; ``group`` is the run's task or its name.

    ``names_only``: arguments and results of its calls are unknown. ``requested`` is its input as text, ``asked`` the
    words of it; ``tokens`` and ``seconds`` are None where unknown.
    """

    case_id: str
    group: str
    calls: tuple[ObservedCall, ...]
    agents: tuple[str, ...] | None
    requested: str
    asked: frozenset[str] = frozenset()
    good: bool | None = None
    tokens: int | None = None
    seconds: float | None = None
    names_only: bool = False

    @cached_property
    def called(self) -> tuple[str, ...]:
        """The tools in order of their calls."""
        return tuple(call.tool for call in self.calls)

    @cached_property
    def tools(self) -> frozenset[str]:
        """The tools that were called."""
        return frozenset(self.called)


def observe_run(case: Case, *, group: str, good: bool | None, names_only: bool = False) -> ObservedRun | None:
    """A case as an observed run; None where the called tools are unknown, or the trace was cut short."""
    if case.tools_used is None or not case.complete:
        return None
    calls = tuple(
        ObservedCall(call.name, mapping(decoded(call.arguments)), searchable(call.result))
        for call in case.tools_used if not call.handoff
    )  # fmt: skip
    known = case.input_tokens is not None and case.output_tokens is not None
    return ObservedRun(
        case_id=case.case_id,
        group=group,
        calls=calls,
        agents=case.agents_called,
        requested=searchable(case.input) + searchable(case.transcript_text),
        asked=asked_words(case),
        good=good,
        tokens=(case.input_tokens or 0) + (case.output_tokens or 0) if known else None,
        seconds=duration_s(case),
        names_only=names_only,
    )


MOST_TASKS: Final = 12
LEAST_RUNS: Final = 10
"""Fewest runs of a task, and fewest remaining runs."""
_MOST_WORDS: Final = 500
"""Most words tried at each step; the most frequent ones are."""


def divide(runs: Sequence[ObservedRun]) -> tuple[str, ...]:
    """The words that name the tasks, in the order of the search; none without evidence for any."""
    rest, words = list(runs), list[str]()
    while len(words) < MOST_TASKS and (word := _dividing(rest)) is not None:
        words.append(word)
        rest = [run for run in rest if word not in run.asked]
    return tuple(words)


def task_of(words: Sequence[str], run: ObservedRun) -> str | None:
    """The first of the words in the run's request; None for none of them."""
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
    """The information, in nats, of which of the runs called a tool."""
    return -math.fsum(n * math.log(n / of) for n in (hits, of - hits) if n)
