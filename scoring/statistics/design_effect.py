"""Design effect: how much less information clustered verdicts carry than as many independent ones.

Turns of one session, requests of one user and answers about one bad document pass and fail together. With F the failed
weight of a cluster, W its weight and q the share of failures, the variance of the pass ratio is that of the clusters'
totals; the design effect divides it by the variance of independent verdicts::

    design effect = Σ (F − q·W)² / Σ w²·(failed − q)²               effective n = Kish's n / design effect

The sums run over all past verdicts, with a memory of ``MEMORY`` verdicts, because a window of an hour holds too few
failing clusters. Until there were enough of them the estimate leans on the worst case, that a cluster's verdicts are
all equal (Σ W² / Σ w², ``MOST_AT_FIRST`` at most): a false alarm costs more than some hours of patience. After
``LARGEST`` verdicts a cluster counts as a new one, because an id that all traffic shares carries no information. A
verdict without a cluster is its own cluster; where all are, the design effect is 1. Verdicts of before a sampling rate
rose would outweigh what comes by the square of their weights, so the sums begin anew once those weights are forgotten
(``evidence.Scale``).

A method that looks after every verdict (CUSUM, confidence sequence) lets each verdict move it by its ``worth``,
1 / design effect of a move: exact for clusters of one size whose verdicts agree, and for independent ones; in between
right in the limit of small moves (a likelihood to the power of 1 / design effect). One cluster counts for ``MOST``
typical ones at most.

Sources: Kish 1965, *Survey Sampling*, §5.4 and §8.2; cluster totals: Särndal, Swensson and Wretman 1992, §5.10;
likelihoods to a power: Pauli, Racugno and Ventura 2011, Statistica Sinica 21:149–164.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from sidejudge.scoring.trace.span import JsonRecord

from .evidence import LARGEST_SHARE, Scale, Together

MEMORY = 20_000
"""Verdicts after which an observation counts for half."""
MOST = 3.0
"""Most typical clusters that one may count for."""
MOST_AT_FIRST = 5.0
LARGEST = 20
_OPEN = 2_000
"""Most clusters that may still grow; beyond it the least recently seen one is dropped and begins anew."""
_DOUBT = 3.0
"""The weight of the worst case, in failing clusters."""
_NOTHING = (0.0, 0.0, 0.0, 0.0)
"""A new cluster's state: weight, weight of failures, worth of verdicts, number of verdicts."""
_SUMS = (
    "n", "weight", "failed", "own", "own_failed", "own_crossed", "together", "together_failed", "failed_together",
    "failing",
)  # fmt: skip


class DesignEffect:
    """The design effect of one service under one rubric, from verdict to verdict."""

    __slots__ = ("_clusters", "_scale", "_sums")

    def __init__(self) -> None:
        self._sums: dict[str, float] = dict.fromkeys(_SUMS, 0.0)
        self._clusters: OrderedDict[str, list[float]] = OrderedDict()
        self._scale = Scale()

    def add(self, cluster: str | None, *, passed: float, weight: float, at_ns: int | None = None) -> float:
        """Take in the next verdict; returns its worth in [0, 1].

        The worth does not depend on the outcome. ``passed`` may be a part of 1, as a graded answer is.
        """
        self._pass_to(at_ns, weight, 1)
        effect = self.value
        held = self._opened(cluster) if cluster is not None else [*_NOTHING]
        worth = max(0.0, min(1 / effect, MOST * max(1.0, self._worst / effect) - held[2]))
        self._learn(held, weight * (1 - passed), weight)
        held[2] += worth
        held[3] += 1
        return worth

    def add_together(self, group: Iterable[Together], *, at_ns: int | None = None) -> list[Together]:
        """Take in verdicts that came together; returns them with their worth, in any order.

        The worth depends only on earlier verdicts. A cluster that is too large is split into pieces of ``LARGEST``,
        with its failures spread evenly over them.
        """
        group = list(group)
        if group:
            self._pass_to(at_ns, max(each.weight for each in group), sum(each.n for each in group))
        effect = self.value
        most, clusters = MOST * max(1.0, self._worst / effect), dict[str | None, list[Together]]()
        for each in sorted(group, key=lambda each: (each.cluster or "", each.passed, each.weight)):
            clusters.setdefault(each.cluster, []).append(each)
        found: list[Together] = []
        for cluster, alike in clusters.items():
            count = sum(each.n for each in alike)
            if cluster is None:
                for each in alike:
                    self._learn_alone(each)
                worth = 1 / effect
            else:
                held = self._opened(cluster)
                worth = max(0.0, min(count / effect, most * math.ceil(count / LARGEST) - held[2])) / count
                self._learn_cluster(cluster, alike, count, worth)
            found += (each._replace(worth=worth * each.n) for each in alike)
        return found

    def _pass_to(self, at_ns: int | None, weight: float, n: int) -> None:
        before = self._scale.largest
        self._scale.pass_to(at_ns, weight, n)
        if self._scale.largest * LARGEST_SHARE < before:
            self._sums = dict.fromkeys(_SUMS, 0.0)
            self._clusters.clear()
        self._scale.share(weight)

    def _opened(self, cluster: str) -> list[float]:
        """The state of a cluster that may still grow."""
        if self._clusters.get(cluster, _NOTHING)[3] >= LARGEST:
            del self._clusters[cluster]
        held = self._clusters.setdefault(cluster, [*_NOTHING])
        self._clusters.move_to_end(cluster)
        if len(self._clusters) > _OPEN:
            self._clusters.popitem(last=False)
        return held

    def _learn_alone(self, alike: Together) -> None:
        failed = 0.0 if alike.passed else alike.weight
        self._halve()
        s, square = self._sums, alike.n * alike.weight * alike.weight
        s["n"] += alike.n
        s["weight"] += alike.n * alike.weight
        s["failed"] += alike.n * failed
        for name in ("own", "together"):
            s[name] += square
        if failed:
            for name in ("own_failed", "own_crossed", "together_failed", "failed_together"):
                s[name] += square
            s["failing"] += alike.n

    def _learn_cluster(self, cluster: str, alike: Sequence[Together], count: int, worth: float) -> None:
        """Take in verdicts of one cluster, in equal pieces of at most ``LARGEST``."""
        left = float(count)
        while left > 0:
            held = self._opened(cluster)
            size = min(left, LARGEST - held[3])
            share = size / count
            left -= size
            self._halve()
            s, (weight, failed, _, _) = self._sums, held
            s["n"] += size
            for each in alike:
                of, out = share * each.n * each.weight, 0.0 if each.passed else share * each.n * each.weight
                s["weight"] += of
                s["failed"] += out
                s["own"] += of * each.weight
                s["own_failed"] += out * each.weight
                s["own_crossed"] += out * each.weight
                held[0] += of
                held[1] += out
            s["together"] += held[0] ** 2 - weight**2
            s["together_failed"] += held[0] * held[1] - weight * failed
            s["failed_together"] += held[1] ** 2 - failed**2
            s["failing"] += held[1] > 0 and failed == 0
            held[2] += worth * size
            held[3] += size

    def _halve(self) -> None:
        if self._sums["n"] >= MEMORY:
            for name in self._sums:
                self._sums[name] /= 2

    @property
    def _worst(self) -> float:
        """The design effect if a cluster's verdicts were all equal: the mean size of a verdict's cluster."""
        return self._sums["together"] / self._sums["own"] if self._sums["own"] else 1.0

    @property
    def value(self) -> float:
        """The design effect, 1 or more."""
        s, worst = self._sums, self._worst
        if worst <= 1.0:
            return 1.0
        q = s["failed"] / s["weight"]
        apart = s["own_failed"] - 2 * q * s["own_crossed"] + q * q * s["own"]
        if apart <= 0:
            return min(worst, MOST_AT_FIRST)
        found = (s["failed_together"] - 2 * q * s["together_failed"] + q * q * s["together"]) / apart
        return max(1.0, (found * s["failing"] + min(worst, MOST_AT_FIRST) * _DOUBT) / (s["failing"] + _DOUBT))

    def _learn(self, held: list[float], failed: float, weight: float) -> None:
        self._halve()
        s = self._sums
        s["n"] += 1
        s["weight"] += weight
        s["failed"] += failed
        s["own"] += weight * weight
        s["own_failed"] += failed * failed
        s["own_crossed"] += failed * weight
        s["together"] += weight * (2 * held[0] + weight)
        s["together_failed"] += (held[1] + failed) * (held[0] + weight) - held[1] * held[0]
        s["failed_together"] += failed * (2 * held[1] + failed)
        s["failing"] += failed > 0 and held[1] == 0
        held[0] += weight
        held[1] += failed

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs. Growing clusters begin anew after it."""
        return {**self._sums, **self._scale.to_json()}

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote."""
        self._sums = {name: float(record.get(name, 0.0)) for name in _SUMS}
        if "own_crossed" not in record:  # verdicts alone, of which it is the same
            self._sums["own_crossed"] = self._sums["own_failed"]
        if "largest" in record:
            self._scale = Scale.of_json(record)
        elif self._sums["n"]:  # of an earlier version
            self._scale = Scale(math.sqrt(self._sums["own"] / self._sums["n"]))
