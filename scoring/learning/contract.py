"""Contract: lines that good runs keep to. A line may fail a run if good runs that did not choose it confirm it.

The good runs of a group are divided into two parts. From the first part lines are proposed, cross-validated by fifths,
and put in an order. The second part confirms them: lines fail a run up to the last place in that order for which the
second part shows, with 95 %, that no more than the allowed share of good runs breaks any line so far. Taking lines in a
fixed order until one does not pass needs no correction for the number of lines (Angelopoulos et al. 2021, "Learn then
Test", doi:10.1214/24-AOAS1998). So the promise holds for the confirmed lines and no others.

Every other line is a sign: most good runs keep to it, and it fails none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import Final, TypeAlias

from sidejudge.scoring.statistics.interval import least_trials, most_hits
from sidejudge.scoring.trace.span import Json

from .lines import ENOUGH_RUNS, Line, propose
from .observed_run import ObservedRun, divide, task_of

FOLDS: Final = 5
"""Folds of the runs, each held out once; where there are few runs, each is held out by itself."""
MIN_RUNS: Final = 5
"""Fewest good runs to learn from; below ``lines.ENOUGH_RUNS`` only what all of them did is learned."""
_MARGIN: Final = 0.25
"""Share of ``most_false`` that held-out runs may break while lines are chosen: chosen lines stay well below the limit.
"""
_LISTED: Final = ("tools_should_include", "agents_should_include", "tools_should_exclude")
_GROUPED: Final = ("before", "after", "not_after", "not_both")
_OF_ARGUMENTS: Final = ("arguments_schema", "values_from")
_OF_AMOUNTS: Final = ("max_calls", "max_tokens")


@dataclass(frozen=True, slots=True)
class LearnedLine:
    """A line with its evidence.

    ``fails``: a run that breaks it fails; else it is a sign. ``broken`` counts the confirming good runs that break it,
    None for a sign. ``caught`` of ``bad`` bad runs break it.
    """

    line: Line
    fails: bool
    broken: int | None
    caught: int
    bad: int


@dataclass(frozen=True, slots=True)
class LearnedTask:
    """The lines of runs whose request holds ``asked`` and no word of earlier tasks; None: of all other runs."""

    asked: str | None
    lines: tuple[LearnedLine, ...]

    def scenario(self) -> dict[str, Json]:
        """The scenario as a configuration holds it: lines that fail a run, and below ``signs`` the signs."""
        found = _scenario(learned.line for learned in self.lines if learned.fails)
        signs = _scenario(learned.line for learned in self.lines if not learned.fails)
        return {**found, **({"signs": signs} if signs else {})}


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What was learned of one group.

    With 95 %, at most the share ``most_false`` of good runs, over all tasks, breaks a line that fails a run: ``judged``
    good runs had no part in choosing the lines, and ``broken`` of them break one. ``caught`` is the share of bad runs
    that fail, ``noticed`` of those that fail or show a sign; None without bad runs. ``more_runs`` is the number of
    further good runs with which every line could fail runs; None where no number would do, because more good runs than
    allowed break them.
    """

    group: str
    runs: int
    tasks: tuple[LearnedTask, ...]
    most_false: float
    judged: int
    broken: int
    caught: float | None
    noticed: float | None
    more_runs: int | None

    @cached_property
    def lines(self) -> tuple[LearnedLine, ...]:
        """The lines of all tasks."""
        return tuple(line for task in self.tasks for line in task.lines)

    def promise(self) -> str:
        """What may be expected of the lines that fail a run, in words."""
        failing = sum(line.fails for line in self.lines)
        if failing:
            return (
                f"{failing} lines fail a run; with 95 % at most {self.most_false:.3g} of good runs fail "
                f"({self.broken} of the {self.judged} that judged the lines)"
            )
        why = "are too few to judge by" if not self.judged else "show no line to be kept well enough"
        return f"every line is a sign and fails no run: {self.judged or self.runs} good runs {why}"

    def scenarios(self) -> dict[str, dict[str, Json]]:
        """The scenario of each task by its name: the group's name, followed by the task's word where there is one."""
        return dict(zip((name for name, _ in self.routes()), (task.scenario() for task in self.tasks), strict=True))

    def routes(self) -> list[tuple[str, dict[str, Json]]]:
        """The name of each task's scenario and the condition on the request, in matching order."""
        return [
            (self.group, {}) if task.asked is None else (f"{self.group}: {task.asked}", {"asked": task.asked})
            for task in self.tasks
        ]


def _scenario(lines: Iterable[Line]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for line in lines:
        _add(found, line)
    if "agents_should_include" in found or "tools_should_include" in found or "tools_may_include" in found:
        found["closed"] = {"tools": "tools_may_include" in found, "agents": False}
    return found


def _add(scenario: dict[str, Json], line: Line) -> None:
    if line.kind in _LISTED or line.kind in _GROUPED:
        held = scenario.setdefault(line.kind, [])
        if isinstance(held, list):
            held.append(line.value)
    elif line.kind in ("max_calls", "arguments_schema"):
        held = scenario.setdefault(line.kind, {})
        if isinstance(held, dict):
            held[line.about[0]] = line.value
    elif line.kind == "values_from":
        held = scenario.setdefault(line.kind, {})
        if isinstance(held, dict):
            tool = held.setdefault(line.about[0], {})
            if isinstance(tool, dict):
                tool[line.about[1]] = line.value
    else:
        scenario[line.kind] = line.value


def learn(
    group: str,
    runs: Sequence[ObservedRun],
    *,
    elsewhere: frozenset[str] = frozenset(),
    most_false: float = 0.01,
    by_request: bool = False,
) -> Contract | None:
    """The contract of a group's runs; None with fewer than ``MIN_RUNS`` good ones.

    Args:
        group: The name that the runs are learned under.
        runs: The runs of the group. Runs not known to be bad count as good. A run that was read twice counts once, also
            where its spans were gone for one of the readings.
        elsewhere: Tools that other groups call.
        most_false: The share of good runs that may fail, in [0, 1). With 0 no line fails a run.
        by_request: Whether runs with different requests are learned from separately.
    """
    known = _shuffled(runs)
    good, bad = [run for run in known if run.good is not False], [run for run in known if run.good is False]
    if len(good) < MIN_RUNS:
        return None
    foreign = elsewhere | frozenset(tool for run in bad for tool in run.tools)
    least = least_trials(most_false)
    size = 0 if least is None or len(good) < least + ENOUGH_RUNS else max(least, len(good) // 2)
    first, second = good[size:], good[:size]
    words = divide(first) if by_request else ()
    proposed = _cross_validated(_by_task(first, words), foreign, most_false * _MARGIN)
    confirming, bad_by_task = _by_task(second, words), _by_task(bad, words)
    order = _in_order(proposed, confirming, bad_by_task) if second else []
    # For each place in the order, the confirming runs that break any line up to it.
    broken = list(accumulate((each.breaking(confirming) for each in order), frozenset[int].union))
    most = most_hits(size, most_false)
    failing = order[: sum(most is not None and len(runs_so_far) <= most for runs_so_far in broken)]
    all_good = _by_task(good, words)
    signs = _beside(failing, _cross_validated(all_good, foreign, most_false * _MARGIN) if second else proposed)
    return Contract(
        group=group,
        runs=len(good),
        tasks=tuple(
            LearnedTask(
                asked=task,
                lines=tuple(
                    each.evidence(None if each in signs else confirming, bad_by_task)
                    for each in (*failing, *signs)
                    if each.task == task
                ),
            )
            for task in (*words, None)
        ),
        most_false=most_false,
        judged=size,
        broken=len(broken[len(failing) - 1]) if failing else 0,
        caught=len(_breaking(failing, bad_by_task)) / len(bad) if bad else None,
        noticed=len(_breaking((*failing, *signs), bad_by_task)) / len(bad) if bad else None,
        more_runs=_more_runs(len(good), least, size, most_false, len(broken[-1]) if order else 0) if signs else 0,
    )


_ByTask: TypeAlias = Mapping[str | None, Sequence[ObservedRun]]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A line of a task, with the number of held-out runs that break it."""

    task: str | None
    line: Line
    held_out: int

    def breaking(self, runs: _ByTask) -> frozenset[int]:
        """The runs of its task that break it, each by its identity."""
        return frozenset(id(run) for run in runs.get(self.task, ()) if not self.line.keeps(run))

    def evidence(self, confirming: _ByTask | None, bad: _ByTask) -> LearnedLine:
        """The line with its evidence; ``confirming`` are the runs of the second part, None for a sign."""
        return LearnedLine(
            line=self.line,
            fails=confirming is not None,
            broken=None if confirming is None else len(self.breaking(confirming)),
            caught=len(self.breaking(bad)),
            bad=len(bad.get(self.task, ())),
        )


def _breaking(lines: Iterable[_Placed], runs: _ByTask) -> frozenset[int]:
    return frozenset().union(*(each.breaking(runs) for each in lines))


def _shuffled(runs: Sequence[ObservedRun]) -> list[ObservedRun]:
    """The runs without repeats, in a random order that does not depend on how they are read."""

    def digest(run: ObservedRun) -> bytes:
        calls = [(call.tool, call.arguments, call.result) for call in run.calls]
        return hashlib.sha256(repr((run.case_id, calls, run.agents, run.requested)).encode()).digest()

    whole = {run.case_id for run in runs if not run.names_only}
    once = {digest(run): run for run in runs if not (run.names_only and run.case_id in whole)}
    return [run for _, run in sorted(once.items(), key=itemgetter(0))]


def _by_task(runs: Iterable[ObservedRun], words: Sequence[str]) -> _ByTask:
    found: dict[str | None, list[ObservedRun]] = {}
    for run in runs:
        found.setdefault(task_of(words, run), []).append(run)
    return found


def _in_order(lines: Iterable[_Placed], confirming: _ByTask, bad: _ByTask) -> list[_Placed]:
    """The lines, the most trusted first; among equals, those that notice more bad runs first.

    Limits of amounts come last: one outlier among good runs breaks them, and no line after the first that does not pass
    can fail runs. Runs that show names of calls without arguments confirm no line about arguments.
    """
    named = any(run.names_only for own in confirming.values() for run in own)
    return sorted(
        (each for each in lines if not (named and each.line.kind in _OF_ARGUMENTS)),
        key=lambda each: (
            each.held_out, -len(each.breaking(bad)), each.line.kind in _OF_AMOUNTS, -each.line.support, str(each.task),
            _name(each.line),
        ),
    )  # fmt: skip


def _more_runs(runs: int, least: int | None, confirming: int, most_false: float, broken: int) -> int | None:
    """The number of further good runs that could confirm all lines."""
    if least is None:
        return None
    if not confirming:
        return least + ENOUGH_RUNS - runs
    needed = least_trials(most_false, broken / confirming)
    return None if needed is None else max(1, 2 * needed - runs)


def _cross_validated(runs: _ByTask, foreign: frozenset[str], allowed: float) -> list[_Placed]:
    """The lines of each task with enough runs that pass the cross-validation."""
    return [
        _Placed(task, line, held_out)
        for task, own in runs.items()
        if len(own) >= MIN_RUNS
        for line, held_out in _chosen(own, foreign, allowed)
    ]


def _chosen(runs: Sequence[ObservedRun], foreign: frozenset[str], allowed: float) -> Iterator[tuple[Line, int]]:
    """Lines that together are broken by at most ``allowed`` of the runs, also if learned from four fifths of them.

    Each line has the number of held-out runs that break it. A line that cannot be learned from every four fifths of
    the runs is left out, for lack of evidence.
    """
    folds: list[dict[tuple[str, ...], frozenset[int]]] = []
    parts = FOLDS if len(runs) >= 2 * ENOUGH_RUNS else len(runs)
    for fold in range(parts):
        others = [run for n, run in enumerate(runs) if n % parts != fold]
        held = range(fold, len(runs), parts)
        folds.append(
            {_name(line): frozenset(n for n in held if not line.keeps(runs[n])) for line in propose(others, foreign)}
        )
    broken = {
        name: frozenset().union(*(fold[name] for fold in folds))
        for name in folds[0]
        if all(name in fold for fold in folds)
    }
    kept = [line for line in propose(runs, foreign) if len(broken.get(_name(line), runs)) <= allowed * len(runs)]
    kept = _without_redundant(kept)
    while kept and len(violated := frozenset().union(*(broken[_name(line)] for line in kept))) > allowed * len(runs):
        worst = max(kept, key=lambda line: len(broken[_name(line)] & violated))
        kept.remove(worst)
    return ((line, len(broken[_name(line)])) for line in kept)


def _beside(sure: Sequence[_Placed], signs: Iterable[_Placed]) -> list[_Placed]:
    """The signs that are not lines of the contract and do not follow from them."""
    found: list[_Placed] = []
    for task, own in _grouped(signs).items():
        held = [each.line for each in sure if each.task == task]
        named = {_name(line) for line in held}
        new = [each for each in own if _name(each.line) not in named]
        left = _without_redundant([*held, *(each.line for each in new)])
        found += [each for each in new if each.line in left]
    return found


def _grouped(lines: Iterable[_Placed]) -> dict[str | None, list[_Placed]]:
    found: dict[str | None, list[_Placed]] = {}
    for each in lines:
        found.setdefault(each.task, []).append(each)
    return found


def _name(line: Line) -> tuple[str, ...]:
    return (line.kind, *line.about)


def _without_redundant(lines: Sequence[Line]) -> list[Line]:
    """The lines that do not follow from others: so the scenario is as short as one that a person writes.

    From "a before b" and "b before c" follows "a before c". From "b before a" and "b once" follows "b not after a".
    From "a before b", "a once" and "b always" follows "b after a".
    """
    names = {_name(line) for line in lines}
    once = {line.about[0] for line in lines if line.kind == "max_calls" and line.value == 1}
    always = {line.about[0] for line in lines if line.kind == "tools_should_include"}
    tools = {tool for name in names if name[0] == "before" for tool in name[1:]}

    def follows(line: Line) -> bool:
        if line.kind not in _GROUPED:
            return False
        a, b = line.about
        if line.kind == "not_after" and ("before", b, a) in names and b in once:
            return True
        if line.kind == "after" and ("before", a, b) in names and a in once and b in always:
            return True
        return line.kind == "before" and any(
            ("before", a, other) in names and ("before", other, b) in names for other in tools - {a, b}
        )

    return [line for line in lines if not follows(line)]
