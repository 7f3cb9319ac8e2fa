"""Comparisons of verdicts before and after a moment, or of two versions, by service, environment and rubric."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from sidejudge.integrations.store.bounded_read import ComparedFilter, ComparedVerdict, read_compared
from sidejudge.scoring.lexical.shown_text import is_named
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.comparison import LEAST, Compared, Difference, difference
from sidejudge.scoring.statistics.design_effect import LARGEST
from sidejudge.scoring.statistics.quantile import quantile_difference

from .observation import Key

log = logging.getLogger("sidejudge.parquet")

By: TypeAlias = Literal["time", "release", "prompt", "model", "rubric_version"]
"""What distinguishes the sides: a moment, or a version: the application's, its prompt's, its model's, the rubric's."""
Cluster: TypeAlias = Literal["session", "user", "none"]
"""The cluster of a verdict."""
Within: TypeAlias = Literal["name", "none"]
"""The stratum within which verdicts are compared: the trace's name (a route, a kind of request)."""
BY: tuple[By, ...] = get_args(By)
_OFTEN = 20
"""Fewest verdicts on one side for a stratum of its own; rarer names share one stratum."""
UNANSWERED: Final = "a judge or embeddings were out of reach, or the budget was spent"
MOST = 200
"""Most comparisons at a time; with more of them each bound is wider."""
_KEPT_S: Final = 600.0
"""How long a reading stays valid, as for a trend. Only one is kept: it may hold 100,000 verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonQuery:
    """What is compared. ``a`` and ``b`` are versions; without them the two that began last.

    ``split_ns`` is the moment that ``by="time"`` needs, ns since the epoch. ``error`` is the chance that any interval
    is ever wrong, and is split evenly. ``metric``: its mean instead of the pass rate, or its ``quantile``.
    """

    by: By = "time"
    split_ns: int = 0
    a: str | None = None
    b: str | None = None
    metric: str | None = None
    cluster: Cluster = "session"
    within: Within = "name"
    error: float = 0.05
    quantile: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceComparison:
    """One comparison: ``before`` and ``after`` name the sides; ``found`` is the difference or why there is none.

    ``unanswered`` traces of each side got no answer: nobody could be asked.
    """

    key: Key
    before: str
    after: str
    found: Difference | Unavailable
    unanswered: tuple[int, int] = (0, 0)


def compare(verdicts: Iterable[ComparedVerdict], query: ComparisonQuery) -> list[PlaceComparison]:
    """One comparison for each service, environment and rubric, in alphabetical order, ``MOST`` at most."""
    by_key: dict[Key, list[ComparedVerdict]] = {}
    for verdict in verdicts:
        if verdict.unanswered or verdict.passed is not None or _value(verdict, query) is not None:
            by_key.setdefault(Key(verdict.service, verdict.environment, verdict.rubric), []).append(verdict)
    valued = {key for key, of in by_key.items() if any(_value(each, query) is not None for each in of)}
    missed = by_key.keys() - valued if query.metric is None else ()
    keys = sorted([*sorted(valued), *sorted(missed)][:MOST])
    error = query.error / max(1, len(valued.intersection(keys)))  # of what has no value nothing can be wrong
    return [_compared(key, by_key[key], query, error) for key in keys]


def difference_of(
    used: Sequence[tuple[ComparedVerdict, bool]], value: Callable[[ComparedVerdict], float | None],
    query: ComparisonQuery, *, error: float, pass_rates: bool = True,
) -> Difference | Unavailable:  # fmt: skip
    """The difference of a value between verdicts, each marked as before or after; those without the value are left out.

    A cluster counts as one draw, and only equal strata are compared. Those that got no answer because nobody could be
    asked are unlike the rest: pass rates are bounded by them both ways, and where most of a side got none there is no
    difference. A decided verdict without the value got its answer.
    """
    known = [(verdict, side, held) for verdict, side in used if (held := value(verdict)) is not None]
    of_known, of_open = {False: 0.0, True: 0.0}, {False: 0.0, True: 0.0}
    numbers = Counter[bool]()
    for verdict, side in used:
        numbers[side] += verdict.unanswered or value(verdict) is not None
        if verdict.passed is not None or value(verdict) is not None:
            of_known[side] += verdict.weight
        elif verdict.unanswered:
            of_open[side] += verdict.weight
    strata, seen = _strata([(verdict.name, side) for verdict, side, _ in known], query), Counter[str]()
    rows = (
        Compared(
            after=side, value=float(held), weight=verdict.weight, cluster=_cluster(verdict, query, seen),
            stratum=strata[verdict.name],
        )
        for verdict, side, held in known
    )  # fmt: skip
    enough = min(numbers[False], numbers[True]) >= LEAST  # else there were too few with their answers too
    for side, where in ((False, "before"), (True, "after")):
        if enough and of_open[side] > of_known[side]:
            return Unavailable(f"most of the side {where} got no answer: {UNANSWERED}")
    if query.quantile is not None:
        return quantile_difference(rows, query.quantile, error=error)
    found = difference(rows, error=error, pass_rates=pass_rates)
    if not pass_rates or not any(of_open.values()) or isinstance(found, Unavailable):
        return found
    # Of a rate p, of which the share u is open, the least is p·(1 − u), and the most u above that.
    shares = {side: of_open[side] / (of_open[side] + of_known[side]) for side in (False, True)}
    means = {False: found.before.raw_mean, True: found.after.raw_mean}
    falls, rises = ({side: shares[side] * x for side, x in rates.items()} for rates in (means, _failing(means)))
    return replace(
        found, lower=max(-1.0, found.lower - falls[True] - rises[False]),
        upper=min(1.0, found.upper + rises[True] + falls[False]),
    )  # fmt: skip


def _failing(means: Mapping[bool, float]) -> dict[bool, float]:
    return {side: 1 - mean for side, mean in means.items()}


def versions_of(verdicts: Iterable[ComparedVerdict], by: By) -> dict[str, int]:
    """When each version was first seen, ns since the epoch, the earliest first."""
    began: dict[str, int] = {}
    for verdict in verdicts:
        if version := version_of(verdict, by):
            began[version] = min(verdict.closed_ns, began.get(version, verdict.closed_ns))
    return dict(sorted(began.items(), key=lambda each: each[1]))


def version_of(verdict: ComparedVerdict, by: By) -> str:
    """Empty where the trace states none."""
    known = {
        "release": verdict.release, "prompt": verdict.prompt, "model": verdict.model,
        "rubric_version": verdict.rubric_version,
    }  # fmt: skip
    return known.get(by) or ""


def _compared(key: Key, verdicts: Sequence[ComparedVerdict], query: ComparisonQuery, error: float) -> PlaceComparison:
    before, after = ("before", "after") if query.by == "time" else _versions(verdicts, query)
    unanswered = Counter[bool]()
    if before == after:
        whose = "all verdicts are" if query.a is None or query.b is None else "both sides are"
        found: Difference | Unavailable = Unavailable(f"{whose} of one version: {before or 'none is named'}")
    else:
        sides = ((verdict, _side(verdict, query, before, after)) for verdict in verdicts)
        used = [(verdict, side) for verdict, side in sides if side is not None]
        unanswered.update(side for verdict, side in used if verdict.unanswered and _value(verdict, query) is None)
        found = difference_of(
            used, lambda verdict: _value(verdict, query), query, error=error, pass_rates=query.metric is None
        )
    of = unanswered[False], unanswered[True]
    return PlaceComparison(key=key, before=before, after=after, found=found, unanswered=of)


def _value(verdict: ComparedVerdict, query: ComparisonQuery) -> float | None:
    if query.metric is not None:
        return verdict.metrics[query.metric][0] if query.metric in verdict.metrics else None
    return None if verdict.passed is None else float(verdict.passed)


def version_named(name: str, known: Collection[str]) -> str:
    """The version that has this name, else one that goes by it; the name itself where none does."""
    return name if name in known else next((version for version in known if is_named(version, name)), name)


def _versions(verdicts: Sequence[ComparedVerdict], query: ComparisonQuery) -> tuple[str, str]:
    """The two requested versions; by default the last that began, and the one before it."""
    valued = (each for each in verdicts if each.unanswered or _value(each, query) is not None)
    order = list(versions_of(valued, query.by))
    a, b = (each and version_named(each, order) for each in (query.a, query.b))
    after = b if b is not None else next((v for v in reversed(order) if v != a), a or "")
    earlier = [version for version in order if version != after]
    return (a if a is not None else earlier[-1] if earlier else after), after


def _side(verdict: ComparedVerdict, query: ComparisonQuery, before: str, after: str) -> bool | None:
    if query.by == "time":
        return verdict.closed_ns >= query.split_ns
    version = version_of(verdict, query.by)
    return True if version == after else False if version == before else None


def _cluster(verdict: ComparedVerdict, query: ComparisonQuery, seen: Counter[str]) -> str | None:
    """The verdict's cluster; a large one is split into pieces of ``LARGEST``, as in the design effect."""
    cluster = {"session": verdict.session, "user": verdict.user, "none": None}[query.cluster]
    if cluster is None:
        return None
    seen[cluster] += 1
    return f"{cluster}/{(seen[cluster] - 1) // LARGEST}"


def _strata(used: Sequence[tuple[str | None, bool]], query: ComparisonQuery) -> Mapping[str | None, str]:
    """The stratum of each name."""
    counted = Counter(used)
    often = {name for (name, _), n in counted.items() if query.within == "name" and n >= _OFTEN}
    return {name: repr(name) if name in often else "" for name, _ in counted}


class ComparedVerdicts(NamedTuple):
    """Verdicts, the newest first, and whether older ones were left unread."""

    verdicts: Sequence[ComparedVerdict]
    capped: bool


class _Reading(NamedTuple):
    at_s: float
    wanted: ComparedFilter
    found: ComparedVerdicts


class ComparedSource:
    """Reads the store at ``path`` and, where one is named, the history at ``history`` before ``kept_since`` of now."""

    def __init__(
        self, path: Path, history: str | None, kept_since: Callable[[int], int],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._path, self._history, self._kept_since, self._clock_s = path, history, kept_since, clock_s
        self._kept: _Reading | None = None
        self._one = threading.Lock()
        self._out = False

    def read(self, wanted: ComparedFilter, now_ns: int) -> ComparedVerdicts:
        """The matching verdicts without repeats; the store's takes precedence. May block for long.

        While the history cannot be read, only the store's verdicts are returned; the first failure is logged. Raises
        ``StoreError``, ``SearchTooLong``.
        """
        stored = read_compared(self._path, wanted)
        old_ns = min(wanted.until_ns, self._kept_since(now_ns))
        capped = len(stored) >= wanted.most
        if self._history is None or capped or wanted.since_ns >= old_ns:
            return ComparedVerdicts(stored, capped)
        with self._one:
            archived = self._archived(self._history, wanted, old_ns)
        known = {(each.trace_id, each.rubric) for each in stored}
        both = [*stored, *(
            each for each in archived.verdicts
            if wanted.since_ns <= each.closed_ns < wanted.until_ns and (each.trace_id, each.rubric) not in known
        )]  # fmt: skip
        both.sort(key=lambda each: each.closed_ns, reverse=True)
        return ComparedVerdicts(both[: wanted.most], archived.capped or len(both) > wanted.most)

    def _archived(self, history: str, wanted: ComparedFilter, old_ns: int) -> ComparedVerdicts:
        at_s, kept = self._clock_s(), self._kept
        usable = kept is not None and _covers(kept.wanted, wanted, old_ns)
        if kept is not None and usable and at_s - kept.at_s < _KEPT_S:
            return kept.found
        # What the store gives up while the reading stands is read ahead; what it still has is its own.
        ahead = replace(wanted, until_ns=old_ns + 2 * round(_KEPT_S * 1e9))
        try:
            found = _read(history, ahead)
        except (ImportError, OSError, ValueError) as error:
            if not self._out:
                cause = f"{type(error).__name__}: {str(error)[:300]}"
                log.warning("the history cannot be read; comparisons end with the store", extra={"cause": cause})
            self._out = True
            return kept.found if kept is not None and usable else ComparedVerdicts((), capped=False)
        self._out = False
        self._kept = _Reading(self._clock_s(), ahead, found)
        return found


def _covers(read: ComparedFilter, wanted: ComparedFilter, old_ns: int) -> bool:
    alike = replace(read, since_ns=wanted.since_ns, until_ns=wanted.until_ns) == wanted
    return alike and read.since_ns <= wanted.since_ns and old_ns <= read.until_ns


def _read(path: str, wanted: ComparedFilter) -> ComparedVerdicts:
    from sidejudge.integrations.history.place import Place  # noqa: PLC0415  # pyarrow only where it is configured

    from .archived_verdicts import history_compared  # noqa: PLC0415  # as above

    return ComparedVerdicts(*history_compared(Place(path), wanted))
