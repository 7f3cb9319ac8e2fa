"""Slices: a minute's verdicts of one monitor as exact sums, which add up to those of the fleet.

A slice is a stretch of ``SLICE_NS`` on the clock, the same on every monitor. A verdict is in the slice of its time, end
included, where its revisions stay. Besides the sums a slice holds its *firsts*: verdicts in their first version, equal
ones counted together, for methods that follow verdicts one by one. They never change once a slice is published.

The order within a slice is lost (``scoring.statistics.evidence`` states the cost). Beyond ``MOST_CLUSTERS`` sessions of
a key the rest counts as sessions of ``LARGEST`` verdicts, the worst case; the number of sessions is then a lower bound.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, TypeAlias

import msgspec

from sidejudge.monitor.alerting.cascade_sums import CascadeSums
from sidejudge.monitor.alerting.details import LIMITED_SHARE, keeps_to_scenario
from sidejudge.monitor.alerting.observation import First, Key, Observation, SliceFirst
from sidejudge.monitor.alerting.windows import HeldObservation
from sidejudge.scoring.statistics.design_effect import LARGEST
from sidejudge.scoring.statistics.sums import ExactSums
from sidejudge.scoring.status.service_status import OTHER
from sidejudge.scoring.trace.time_units import MINUTE_NS

SLICE_NS: Final = MINUTE_NS
MOST_CLUSTERS: Final = 500
"""Sessions of one service under one rubric in one minute of one monitor that are kept apart."""
MOST_SLICED: Final = 200
"""Kinds of a verdict in a slice of traffic, such as a tenant's failures, that are kept apart; the rest is one value."""
MOST_WEIGHTS: Final = 10
"""Weights among them that are kept apart; of more each is rounded to a power of the root of 2."""
MOST_AHEAD: Final = 60
"""Slices this far ahead of the leader's clock still count; later ones come from a broken clock and would never leave.
"""
MOST_BYTES: Final = 64 * 2**20
"""A larger slice is not read: it is no slice of ours."""
MOST_KEYS: Final = 20_000
"""Services under rubrics of one monitor in one minute."""
MOST_ENTRIES: Final = 500_000
"""Names, parts of totals, sessions and firsts of one slice: about 250 MiB while it is read."""
MOST_KEY_BYTES: Final = 4 * 2**20
"""A key's part of a slice; one with the firsts of all verdicts that a monitor's windows hold has less than half."""
MOST_COUNT: Final = 10**6
"""Verdicts of one monitor in one minute, fifty times what its windows hold; more is an error of who wrote it."""
MOST_TOTAL: Final = 1e100
"""A part of a total. Sums of this many digits are still quick, and a product of two is still a float."""


def slice_of(at_ns: int) -> int:
    """The number of the slice that holds this time: slice k goes from k, exclusive, to k + 1, inclusive."""
    return (at_ns - 1) // SLICE_NS


def end_ns(number: int) -> int:
    """The last moment of a slice."""
    return (number + 1) * SLICE_NS


@dataclass(slots=True)
class KeySlice:
    """One key's verdicts in one slice: their sums, how many belong to each session, and the firsts.

    ``sliced`` counts the firsts by version, tenant and whatever else traffic is divided by, and those that count in
    shares with a limit (``LIMITED_SHARE``).
    """

    sums: ExactSums = field(default_factory=ExactSums)
    clusters: Counter[str] = field(default_factory=Counter)
    firsts: Counter[First] = field(default_factory=Counter)
    sliced: Counter[SliceFirst] = field(default_factory=Counter)

    def merge(self, other: KeySlice, times: int = 1) -> None:
        """Add what another one holds, without its firsts; −1 takes it away."""
        self.sums.merge(other.sums, times)
        for cluster, n in other.clusters.items():
            self.clusters[cluster] += times * n
            if not self.clusters[cluster]:
                del self.clusters[cluster]

    def __bool__(self) -> bool:
        return bool(self.sums or self.firsts)

    def to_json(self) -> dict[str, object]:
        """The slice for a wire, equal for equal slices."""
        firsts = sorted(
            ([*first, n] for first, n in self.firsts.items()), key=lambda each: [str(part) for part in each]
        )
        apart: dict[str, list[list[object]]] = {}
        for (by, *first), n in sorted(self.sliced.items()):
            if by == LIMITED_SHARE:  # a version before there were any would compare them with one another
                apart.setdefault("shares", []).append([*first, n])
            else:
                apart.setdefault("slices", []).append([by, *first, n])
        return {**self.sums.to_json(), "clusters": dict(sorted(self.clusters.items())), "firsts": firsts, **apart}


Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNT)]
Weight: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=MOST_TOTAL)]
Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=200)]
Part: TypeAlias = Annotated[float, msgspec.Meta(ge=-MOST_TOTAL, le=MOST_TOTAL)]


class _Stated(msgspec.Struct):
    """A key's slice as another monitor states it, in the ranges of its fields; what else it states is passed over."""

    n: dict[str, Count]
    sum: dict[str, list[Part]]
    clusters: dict[str, Count]
    firsts: list[tuple[bool, Weight, bool | None, str | None, Count]]
    slices: list[tuple[Name, Name, bool, Weight, Count]] = []  # of a version before there were any
    shares: list[tuple[str, bool, Weight, Count]] = []  # of a version before there were any

    @property
    def entries(self) -> int:
        """The number of entries to read."""
        return sum(map(len, (self.n, self.clusters, self.firsts, self.slices, self.shares, *self.sum.values())))

    def read(self) -> KeySlice:
        """The slice; ``ValueError`` where its fields contradict each other."""
        sums = ExactSums.of_json({"n": self.n, "sum": self.sum})
        for prefix in ("", "checked/", "kept/"):
            n, failures = sums.n(f"{prefix}n"), sums.n(f"{prefix}failures")
            weight, failed = sums.total(f"{prefix}weight"), sums.total(f"{prefix}failed_weight")
            if failures > n or failed > weight or (n > 0) != (weight > 0):
                raise ValueError(f"{failures} of {n} verdicts failed, with weight {failed:g} of {weight:g}")
        for name in self.sum:
            if name.endswith("weight") and sums.total(name) < 0:
                raise ValueError(f"{name} is negative")
        firsts = Counter({First(passed, weight, kept, by): n for passed, weight, kept, by, n in self.firsts if n})
        sliced = Counter({SliceFirst(by, value, passed, weight): n for by, value, passed, weight, n in self.slices})
        sliced.update({SliceFirst(LIMITED_SHARE, name, kept, weight): n for name, kept, weight, n in self.shares})
        return KeySlice(sums, Counter(self.clusters), firsts, sliced)


_SLICES: Final = msgspec.json.Decoder(Annotated[list[msgspec.Raw], msgspec.Meta(max_length=MOST_KEYS)])
_SLICE: Final = msgspec.json.Decoder(tuple[str, str, str, str | None, _Stated])


def key_slice(members: Iterable[HeldObservation]) -> KeySlice:
    """The sums of these verdicts of one key; no firsts."""
    part, cascade = KeySlice(), CascadeSums()
    cascaded = False
    for each in members:
        _put(part, each)
        if each.cascade is not None:
            cascaded = True
            cascade.move(each.passed, each.weight, each.cascade, 1)
    if cascaded:
        cascade.write(part.sums)
    part.clusters = _bounded(part.clusters)
    return part


def first_of(seen: Observation, *, scenario: bool) -> First | None:
    """The counted fields of a verdict in its first version; None for a later version or an undecided one."""
    if seen.revision != 1 or seen.passed is None:
        return None
    kept = keeps_to_scenario(seen.metrics.items(), signs=True) if scenario else None
    return First(seen.passed, seen.weight, kept, None if seen.cluster is None else digest(seen.cluster))


def digest(cluster: str) -> str:
    """The digest of a session or a user for other monitors: 16 hex digits, the same on every monitor."""
    return hashlib.blake2b(cluster.encode("utf-8", "replace"), digest_size=8).hexdigest()


def bounded(firsts: Counter[First]) -> Counter[First]:
    """The firsts of one key with at most ``MOST_CLUSTERS`` sessions; the rest in sessions of ``LARGEST``."""
    sizes: Counter[str] = Counter()
    for first, n in firsts.items():
        if first.cluster is not None:
            sizes[first.cluster] += n
    if len(sizes) <= MOST_CLUSTERS:
        return firsts
    apart = {cluster for cluster, _ in sorted(sizes.items(), key=lambda each: (-each[1], each[0]))[:MOST_CLUSTERS]}
    found: Counter[First] = Counter()
    filled = 0
    for first, n in sorted(firsts.items(), key=lambda each: str(each[0])):
        if first.cluster is None or first.cluster in apart:
            found[first] += n
            continue
        for _ in range(n):
            found[first._replace(cluster=f"rest/{first.cluster[:4]}/{filled // LARGEST}")] += 1
            filled += 1
    return found


def bounded_slices(firsts: Counter[SliceFirst]) -> Counter[SliceFirst]:
    """The same with ``MOST_SLICED`` kinds at most, those with most verdicts; the rest of a dimension is one value.

    Where weights are many they are rounded. Of shares with a limit, which are few for each weight, all are kept apart.
    """
    if len(firsts) <= MOST_SLICED:
        return firsts
    weights = {first.weight for first in firsts}
    few = len(weights) <= MOST_WEIGHTS
    kept = {weight: weight if few else 2 ** (round(2 * math.log2(weight)) / 2) for weight in weights}
    found, sliced = Counter[SliceFirst](), Counter[SliceFirst]()
    for first, n in firsts.items():
        (found if first.by == LIMITED_SHARE else sliced)[first._replace(weight=kept[first.weight])] += n
    for place, (first, n) in enumerate(sorted(sliced.items(), key=lambda each: (-each[1], each[0]))):
        found[first if place < MOST_SLICED else first._replace(value=OTHER)] += n
    return found


def encoded(slices: Mapping[Key, KeySlice], versions: Mapping[str, str]) -> bytes:
    """The slices of one monitor and one minute for the database, equal for equal ones; ``versions`` by rubric."""
    stated = [[*key, versions.get(key.rubric), part.to_json()] for key, part in sorted(slices.items()) if part]
    return zlib.compress(json.dumps(stated, separators=(",", ":")).encode(), 6)


def decoded(body: bytes) -> Iterator[tuple[Key, str | None, KeySlice]]:
    """Key, rubric version and sums from the output of ``encoded``; ``ValueError`` for anything else."""
    try:
        for service, environment, rubric, rubric_version, part in _stated(_unpacked(body)):
            yield Key(service, environment, rubric), rubric_version, part.read()
    except (zlib.error, ValueError, ArithmeticError, RecursionError, msgspec.MsgspecError) as error:
        raise ValueError(f"not a slice of verdicts: {error}") from error


WAITING: Final = "waiting"
"""The name under which a monitor publishes what waits there, beside its slices: a version before it passes it over."""
BEHIND: Final = "behind"
"""The same of what waits there behind a slow judge."""
BEHIND_PASSED: Final = "behind_passed"
"""And of how many of those pass if they are like what it answered."""
_WAITING: Final = msgspec.json.Decoder(
    Annotated[list[tuple[str, str, str, str | None, Weight]], msgspec.Meta(max_length=MOST_KEYS)]
)


def encoded_waiting(weights: Mapping[Key, float], versions: Mapping[str, str]) -> bytes:
    """How many traces stand for those of each key that wait for an answer; ``versions`` by rubric."""
    stated = [[*key, versions.get(key.rubric), weight] for key, weight in sorted(weights.items())[:MOST_KEYS]]
    return zlib.compress(json.dumps(stated, separators=(",", ":")).encode(), 6)


def decoded_waiting(body: bytes) -> Iterator[tuple[Key, str | None, float]]:
    """Key, rubric version and weight from the output of ``encoded_waiting``; ``ValueError`` for anything else."""
    try:
        for service, environment, rubric, rubric_version, weight in _WAITING.decode(_unpacked(body)):
            yield Key(service, environment, rubric), rubric_version, weight
    except (zlib.error, ValueError, msgspec.MsgspecError) as error:
        raise ValueError(f"not what waits: {error}") from error


def _stated(text: bytes) -> Iterator[tuple[str, str, str, str | None, _Stated]]:
    """The parts of a slice, each read once it is known to be small: read, text takes up to thirty times its length."""
    left = MOST_ENTRIES
    for raw in _SLICES.decode(text):
        if memoryview(raw).nbytes > MOST_KEY_BYTES:
            raise ValueError(f"one service under one rubric has more than {MOST_KEY_BYTES} bytes")
        stated = _SLICE.decode(raw)
        left -= stated[-1].entries
        if left < 0:
            raise ValueError(f"it holds more than {MOST_ENTRIES} entries")
        yield stated


def _unpacked(body: bytes) -> bytes:
    opened = zlib.decompressobj()
    text = opened.decompress(body, MOST_BYTES)
    if not opened.eof:
        raise ValueError("it is cut short, or too large")
    return text


def _put(part: KeySlice, seen: HeldObservation) -> None:
    sums, weight = part.sums, seen.weight
    sums.count("members")
    sums.count("forced", seen.forced)
    sums.count("judge_failed", seen.judge_failed)
    if seen.passed is None:
        sums.count("incomplete")
        sums.add("incomplete_weight", weight)
        if seen.unasked:
            sums.add("unasked_weight", weight)
    else:
        _put_share(sums, "", weight, failed=not seen.passed)
        for metric in seen.blockers:
            sums.count(f"blocked/{metric}")
            sums.add(f"blocked/{metric}/weight", weight)
        if seen.cluster is None:
            sums.count("alone")
        else:
            part.clusters[digest(seen.cluster)] += 1
    if seen.composite is not None:
        sums.count("composite")
        sums.add("composite/weight", weight)
        sums.add("composite/product", seen.composite * weight)
    metrics = list(zip(seen.metrics, seen.values, strict=True))
    for prefix, signs in (("checked/", False), ("kept/", True)):
        kept = keeps_to_scenario(metrics, signs=signs)
        if kept is not None:
            _put_share(sums, prefix, weight, failed=not kept)
    for metric, value in metrics:
        name = f"metric/{metric}"
        sums.count(name)
        sums.add(f"{name}/weight", weight)
        sums.add(f"{name}/squared_weight", weight * weight)
        sums.add(f"{name}/product", value * weight)
        sums.add(f"{name}/squared_product", weight * weight, value)
        sums.add(f"{name}/squared_square", weight * weight, value, value)


def _put_share(sums: ExactSums, prefix: str, weight: float, *, failed: bool) -> None:
    sums.count(f"{prefix}n")
    sums.add(f"{prefix}weight", weight)
    sums.add(f"{prefix}squared_weight", weight * weight)
    if failed:
        sums.count(f"{prefix}failures")
        sums.add(f"{prefix}failed_weight", weight)


def _bounded(clusters: Counter[str]) -> Counter[str]:
    if len(clusters) <= MOST_CLUSTERS:
        return clusters
    return Counter(dict(sorted(clusters.items(), key=lambda each: (-each[1], each[0]))[:MOST_CLUSTERS]))
