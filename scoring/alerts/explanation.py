"""Explanation: how many cases fail now and failed before, where the excess failures are, what was new then.

The verdicts since a drop began are divided by several dimensions in turn (version, tenant, name). Failures beyond the
earlier ratio are the *excess*; the share of it that has a value is what that value explains::

    excess(value) = Σ w·failed − q · Σ w          q: the failing ratio before (0 where too little came before)

Failures also have causes, which passing verdicts lack: a tool that failed, and a group of similar failures. A cause's
share of the excess is counted the same way, over the failing verdicts alone.

A value is named where the upper bound of its pass ratio lies below the lower bound of all others. Bounds are Wilson's,
at effective sample sizes in which a cluster counts once. With m values compared each bound errs with the chance 0.05 /
2m, so that at most 5 % of the notices name a value that is like the others.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final, NamedTuple

from sidejudge.scoring.statistics.interval import Interval, wilson
from sidejudge.scoring.trace.time_units import MINUTE_NS

MOST_SLICES: Final = 3
"""Most values named, each from another dimension, and most causes."""
TOOL: Final = "tool"
GROUP: Final = "failure group"
_LEAST_SHARE: Final = 0.2
"""The least share of the excess that a value must explain to be named."""
_LEAST_BEFORE: Final = 20
_LEAST_FAILURES: Final = 3
_ERROR: Final = 0.05
_NEAR_NS: Final = 30 * MINUTE_NS
"""How far from the beginning of a drop a version's first sight may lie to count as a change at that time."""


class SlicedVerdict(NamedTuple):
    """A verdict with the value that it has in each dimension. ``cluster`` names the verdicts that count as one.

    ``versions`` are what may change with a release: the application's version, prompt, model, rubric.
    """

    at_ns: int
    passed: bool
    weight: float
    cluster: str | None
    slices: Mapping[str, str]
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FailureCount:
    """``failures`` of ``n`` verdicts; ``ratio`` in [0, 1] is the estimate for all traffic."""

    failures: int
    n: int
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstSlice:
    """The traffic with ``value`` in the dimension ``by``: its pass ratio, and the other traffic's.

    ``share`` in [0, 1] is its part in the excess failures. The value comes from traces: escape it.
    """

    by: str
    value: str
    pass_ratio: float
    n: int
    others: float
    others_n: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVersion:
    """A version, prompt, model or rubric (``by``) that was first seen at ``first_ns``, when the drop began."""

    by: str
    value: str
    first_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A ``tool`` or a ``failure group`` (``by``) with ``count`` failing verdicts since the drop began.

    ``share`` in [0, 1] is its part in the excess failures. ``value`` names the tool, which comes from traces, or the
    group, whose ``words`` hold no content; ``nameless`` are the words without the application's names.
    """

    by: str
    value: str
    count: int
    share: float
    words: str = ""
    nameless: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What an alert on a pass ratio is explained by; ``before`` is None where too little came before ``since_ns``."""

    since_ns: int
    now: FailureCount
    before: FailureCount | None
    slices: tuple[WorstSlice, ...] = ()
    new: tuple[NewVersion, ...] = ()
    causes: tuple[Cause, ...] = ()


def explain(verdicts: Iterable[SlicedVerdict], since_ns: int) -> Explanation | None:
    """Explain the failures since a time in ns since the epoch; None where there are fewer than three."""
    before, now = list[SlicedVerdict](), list[SlicedVerdict]()
    for verdict in verdicts:
        (now if verdict.at_ns >= since_ns else before).append(verdict)
    counted, usual = _count(now), _count(before) if len(before) >= _LEAST_BEFORE else None
    if counted is None or counted.failures < _LEAST_FAILURES:
        return None
    return Explanation(
        since_ns=since_ns, now=counted, before=usual, slices=_worst(now, usual.ratio if usual is not None else 0.0),
        new=_new(before, now, since_ns) if usual is not None else (),
    )  # fmt: skip


def with_causes(
    known: Explanation, causes: Iterable[tuple[Cause, int]], failed: int, failed_before: int
) -> Explanation:
    """The explanation with the causes that have a large part in the excess, the largest of each kind first.

    Args:
        known: the explanation without causes.
        causes: each, its share not known yet, with its failing verdicts before the drop.
        failed: the failing verdicts since the drop whose causes are known.
        failed_before: the failing verdicts before the drop.
    """
    per = known.now.n / known.before.n if known.before is not None else 0.0
    whole = failed - per * failed_before
    if whole <= 0:
        return known
    found = [replace(each, share=min(1.0, (each.count - per * before) / whole)) for each, before in causes]
    named = [each for each in found if each.share >= _LEAST_SHARE and each.count >= _LEAST_FAILURES]
    named.sort(key=lambda each: (-each.share, each.by, each.value))
    tools, groups = ([each for each in named if each.by == by][:MOST_SLICES] for by in (TOOL, GROUP))
    return replace(known, causes=(*tools, *groups))


def _count(verdicts: Sequence[SlicedVerdict]) -> FailureCount | None:
    weight = math.fsum(each.weight for each in verdicts)
    if not weight:
        return None
    failed = [each for each in verdicts if not each.passed]
    return FailureCount(len(failed), len(verdicts), math.fsum(each.weight for each in failed) / weight)


def _worst(now: Sequence[SlicedVerdict], usual: float) -> tuple[WorstSlice, ...]:
    excess: dict[tuple[str, str], float] = defaultdict(float)
    whole = 0.0
    for each in now:
        more = each.weight * ((not each.passed) - usual)
        whole += more
        for item in each.slices.items():
            excess[item] += more
    if whole <= 0:
        return ()
    shares = {item: min(1.0, more / whole) for item, more in excess.items() if more >= _LEAST_SHARE * whole}
    found: list[WorstSlice] = []
    for (by, value), share in sorted(shares.items(), key=lambda each: (-each[1], each[0])):
        here = [each for each in now if each.slices.get(by) == value]
        others = [each for each in now if each.slices.get(by) != value]
        mine, rest = _count(here), _count(others)
        if mine is None or rest is None or not _is_worse(here, others, len(excess)):
            continue
        if by not in {each.by for each in found}:
            found.append(
                WorstSlice(
                    by=by, value=value, pass_ratio=1 - mine.ratio, n=mine.n, others=1 - rest.ratio, others_n=rest.n,
                    share=share,
                )
            )  # fmt: skip
    return tuple(found[:MOST_SLICES])


def _is_worse(here: Sequence[SlicedVerdict], others: Sequence[SlicedVerdict], compared: int) -> bool:
    z = NormalDist().inv_cdf(1 - _ERROR / (2 * max(1, compared)))
    return _bounds(here, z).upper < _bounds(others, z).lower


def _bounds(verdicts: Sequence[SlicedVerdict], z: float) -> Interval:
    weights: dict[object, float] = defaultdict(float)
    for place, each in enumerate(verdicts):
        weights[each.cluster or place] += each.weight
    total = math.fsum(weights.values())
    size = total / math.fsum(each * each for each in weights.values()) * total
    passed = math.fsum(each.weight for each in verdicts if each.passed) / total
    return wilson(min(size, size * passed), size, z) or Interval(0.0, 1.0)


def _new(before: Sequence[SlicedVerdict], now: Sequence[SlicedVerdict], since_ns: int) -> tuple[NewVersion, ...]:
    """Versions first seen at that time, after enough verdicts of another; stating the first one is no change."""
    first: dict[tuple[str, str], int] = {}
    stated: Counter[str] = Counter()
    found = []
    for each in sorted((*before, *now), key=lambda each: each.at_ns):
        for by, value in each.versions.items():
            if (by, value) not in first:
                first[by, value] = each.at_ns
                if stated[by] >= _LEAST_BEFORE and abs(each.at_ns - since_ns) <= _NEAR_NS:
                    found.append(NewVersion(by=by, value=value, first_ns=each.at_ns))
            stated[by] += 1
    return tuple(sorted(found, key=lambda each: (abs(each.first_ns - since_ns), each.by, each.value))[:MOST_SLICES])
