"""Contract: the lines that good runs keep to, chosen by runs that they were not proposed from, as one scenario.

Five times a fifth of the good runs is held out. A line stays if, proposed from the others, it is broken by no larger
a share of what was held out than the false violations that are allowed. Then lines go, the least reliable first,
until the whole scenario is broken by no larger a share either. That share is what is expected, with its upper bound.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scoring.statistics.interval import Z_95_TWO_SIDED, wilson
from scoring.trace.span import Json

from .lines import Line, propose
from .observed_run import ObservedRun

FOLDS: Final = 5
MIN_RUNS: Final = 5
"""Good runs below which nothing is learned; below ``lines.ENOUGH_RUNS`` only what all of them did is."""
_LISTED: Final = ("tools_should_include", "agents_should_include", "tools_should_exclude")
_GROUPED: Final = ("before", "after", "not_after", "not_both")


@dataclass(frozen=True, slots=True)
class LearnedLine:
    """A line with its evidence: the runs that it applies to, and the least share of them that keeps to it.

    ``lower`` is the lower Wilson bound at 95 % of the share of held-out good runs that keep to it. ``caught`` counts
    the bad runs that break it, of ``bad``.
    """

    line: Line
    lower: float
    caught: int
    bad: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What was learned of one group. ``false_violations`` is the share of held-out good runs that break the scenario.

    ``upper`` is its upper bound at 95 %; ``caught`` the share of bad runs that break it, None without any.
    ``left_out`` counts lines that were not confirmed, and ``more_runs`` how many good runs more would settle them.
    """

    group: str
    runs: int
    lines: tuple[LearnedLine, ...]
    false_violations: float
    upper: float
    caught: float | None
    left_out: int
    more_runs: int

    def scenario(self) -> dict[str, Json]:
        """The scenario as a configuration holds it."""
        found: dict[str, Json] = {}
        for learned in self.lines:
            _add(found, learned.line)
        if "tools_may_include" not in found and "tools_should_include" in found:
            found["closed"] = {"tools": False, "agents": False}
        elif "agents_should_include" in found:
            found["closed"] = {"agents": False}
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
    group: str, runs: Sequence[ObservedRun], *, elsewhere: frozenset[str] = frozenset(), allowed: float = 0.01
) -> Contract | None:
    """The contract of a group's runs; None with fewer than ``MIN_RUNS`` good ones.

    Args:
        group: The name that the runs are learned under.
        runs: The runs of the group. Those that are not known to be bad count as good.
        elsewhere: Tools that other groups call.
        allowed: The share of good runs that may break the scenario, in [0, 1).
    """
    good = [run for run in runs if run.good is not False]
    bad = [run for run in runs if run.good is False]
    if len(good) < MIN_RUNS:
        return None
    foreign = elsewhere | frozenset(tool for run in bad for tool in run.tools)
    proposed = list(propose(good, foreign))
    broken = _held_out(good, foreign)
    kept = [line for line in proposed if len(broken.get(_name(line), ())) <= allowed * len(good)]
    kept = _without_redundant(kept)
    while kept and len(violated := _violated(kept, broken)) > allowed * len(good):
        worst = Counter(name for line in kept if (name := _name(line)) in broken for _ in broken[name] & violated)
        name, _ = worst.most_common(1)[0]
        kept = [line for line in kept if _name(line) != name]
    violated = _violated(kept, broken)
    bounds = wilson(len(violated), len(good), Z_95_TWO_SIDED)
    caught = [run for run in bad if not all(line.keeps(run) for line in kept)]
    return Contract(
        group=group,
        runs=len(good),
        lines=tuple(_learned(line, broken, good, bad) for line in kept),
        false_violations=len(violated) / len(good),
        upper=1.0 if bounds is None else bounds.upper,
        caught=len(caught) / len(bad) if bad else None,
        left_out=len(proposed) - len(kept),
        more_runs=max(0, math.ceil(Z_95_TWO_SIDED**2 * (1 - allowed) / max(allowed, 1e-6)) - len(good)),
    )


def _name(line: Line) -> tuple[str, ...]:
    return (line.kind, *line.about)


def _held_out(good: Sequence[ObservedRun], elsewhere: frozenset[str]) -> dict[tuple[str, ...], frozenset[str]]:
    """By line: the held-out runs that break it as it is proposed from the other folds."""
    folds = [_fold(run) for run in good]
    broken: dict[tuple[str, ...], set[str]] = {}
    names = {_name(line) for line in propose(good, elsewhere)}
    for fold in range(FOLDS):
        held = [run for run, own in zip(good, folds, strict=True) if own == fold]
        others = [run for run, own in zip(good, folds, strict=True) if own != fold]
        lines = {_name(line): line for line in propose(others, elsewhere)}
        for name, line in lines.items():
            broken.setdefault(name, set()).update(run.case_id for run in held if not line.keeps(run))
        for name in names - lines.keys():
            broken.setdefault(name, set())  # too rare to be proposed from four fifths: nothing speaks against it
    return {name: frozenset(ids) for name, ids in broken.items()}


def _fold(run: ObservedRun) -> int:
    """The same for a run in every order and every sample."""
    return hashlib.sha256(run.case_id.encode()).digest()[0] % FOLDS


def _violated(lines: Sequence[Line], broken: Mapping[tuple[str, ...], frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*(broken.get(_name(line), frozenset()) for line in lines))


def _without_redundant(lines: Sequence[Line]) -> list[Line]:
    """Without what follows from other lines, so that the scenario is as short as one that a person writes.

    Of a before b and b before c, a before c. Where b comes before a and only once, it does not come after a. Where b
    always comes, after a that comes once, it follows a.
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


def _learned(
    line: Line,
    broken: Mapping[tuple[str, ...], frozenset[str]],
    good: Sequence[ObservedRun],
    bad: Sequence[ObservedRun],
) -> LearnedLine:
    support = max(line.support, 1)
    kept = support * (1 - len(broken.get(_name(line), ())) / len(good))
    bounds = wilson(kept, support, Z_95_TWO_SIDED)
    return LearnedLine(
        line=line,
        lower=0.0 if bounds is None else bounds.lower,
        caught=sum(not line.keeps(run) for run in bad),
        bad=len(bad),
    )
