"""A service as the monitor sees it: verdicts at random times, and what the status code says of them, look by look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.cusum import Cusum
from sidejudge.scoring.statistics.estimate import Estimate, from_sums
from sidejudge.scoring.status.hysteresis import HysteresisState, Look, step
from sidejudge.scoring.status.status import Policy, Status, appraise

HOUR_NS = 3_600 * 10**9
ALARMS = (Status.WARNING, Status.CRITICAL)
RUBRIC = "qa"

ADAPTIVE = Declaration(policy=Policy(mode="adaptive"))
PLAIN = Declaration(policy=Policy(mode="point", min_samples=1, min_failures=0))
"""The plain average: the seed's monitor over the window, which is what most alerts on a score are."""
BOUND = Declaration(policy=Policy(mode="bound"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Verdicts in order of time: when (ns), whether they passed, with what weight."""

    at_ns: np.ndarray
    passed: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.at_ns)


def service(
    rng: np.random.Generator, *, per_hour: float, stretches: Sequence[tuple[float, float]], forced: bool = False
) -> Verdicts:
    """Poisson traffic; ``stretches`` are (hours, pass ratio) one after the other.

    ``forced``: half of the failures are kept whatever the rate (weight 1), the rest of the traffic at a twentieth
    (weight 20), so that what is seen fails far more often than what there is.
    """
    at, passed, weight, begin = [], [], [], 0.0
    for hours, ratio in stretches:
        if forced:
            traces = rng.poisson(per_hour * hours * 20)
            ok = rng.random(traces) < ratio
            known = ~ok & (rng.random(traces) < 0.5)
            kept = known | (rng.random(traces) < 0.05)
            when = np.sort(rng.random(traces)) * hours + begin
            at.append(when[kept])
            passed.append(ok[kept])
            weight.append(np.where(known, 1.0, 20.0)[kept])
        else:
            n = rng.poisson(per_hour * hours)
            at.append(np.sort(rng.random(n)) * hours + begin)
            passed.append(rng.random(n) < ratio)
            weight.append(np.full(n, 100.0))
        begin += hours
    return Verdicts(
        at_ns=(np.concatenate(at) * HOUR_NS).astype(np.int64),
        passed=np.concatenate(passed),
        weight=np.concatenate(weight),
    )


def estimates(verdicts: Verdicts, looks_ns: np.ndarray, window_ns: int) -> Iterator[Estimate | None]:
    """The estimate of the window at each look, from the same sums that the windows keep.

    It is the same object for as long as the same verdicts are in the window.
    """
    w, failed = verdicts.weight, ~verdicts.passed
    sums = [np.concatenate([[0], np.cumsum(each)]) for each in (np.ones(len(w)), failed, w, w * failed, w * w)]
    begins = np.searchsorted(verdicts.at_ns, looks_ns - window_ns, side="right")
    ends = np.searchsorted(verdicts.at_ns, looks_ns, side="right")
    held, reported = (-1, -1), None
    for window in zip(begins.tolist(), ends.tolist(), strict=True):
        if window != held:
            held = begin, end = window
            n, failures, weight, failed_weight, squared = (float(each[end] - each[begin]) for each in sums)
            reported = from_sums(
                n=round(n), failures=round(failures), weight=weight, failed_weight=failed_weight, squared_weight=squared
            )
        yield reported


def statuses(declared: Declaration, verdicts: Verdicts, *, hours: float) -> Iterator[tuple[int, Status]]:
    """(ns, status in force) at every look."""
    rule = declared.rule
    policy = declared.policy_of(RUBRIC)
    raised = policy.raised(rule.recovery_margin)
    looks_ns = np.arange(1, int(hours * HOUR_NS / declared.look_ns) + 1) * declared.look_ns
    held: HysteresisState | None = None
    look: Look | None = None
    last: Estimate | None = None
    for now_ns, reported in zip(looks_ns, estimates(verdicts, looks_ns, declared.window_ns), strict=True):
        if look is None or reported is not last:  # else no verdict came or went: a look sees what the last one saw
            last = reported
            look = Look(
                status=appraise(reported, policy).status,
                with_margin=appraise(reported, raised).status,
                empty=reported is None,
            )
        held = step(held, look, int(now_ns), rule)
        yield int(now_ns), held.status


def entries(reported: Iterator[tuple[int, Status]], levels: Sequence[Status] = ALARMS) -> list[int]:
    """When (ns) an alarm began: a look in one of the levels after one that was not."""
    return list(entered(reported, levels))


def entered(reported: Iterator[tuple[int, Status]], levels: Sequence[Status] = ALARMS) -> Iterator[int]:
    """Likewise, one by one: who asks for the first need not look on."""
    before = False
    for now_ns, status in reported:
        if status in levels and not before:
            yield now_ns
        before = status in levels


def early_warnings(declared: Declaration, verdicts: Verdicts, *, per_hour: float) -> list[tuple[int, int | None]]:
    """(ns, estimated time of the change) of each early warning."""
    window_h = declared.window_ns / HOUR_NS
    chart = declared.chart(RUBRIC, round(per_hour * window_h))
    cusum, found = Cusum(), []
    for at_ns, passed, weight in zip(verdicts.at_ns, verdicts.passed, verdicts.weight, strict=True):
        before = cusum.alarmed
        cusum.add(chart, passed=bool(passed), weight=float(weight), at_ns=int(at_ns))
        if cusum.alarmed and not before:
            found.append((int(at_ns), cusum.since_ns))
    return found


def described(declared: Declaration) -> str:
    """The numbers that results depend on, in one line."""
    policy, rule, bounds = declared.policy, declared.hysteresis, declared.policy.thresholds
    good, bad = declared.good_and_bad(RUBRIC)
    return (
        f"thresholds {bounds.warning:g} and {bounds.critical:g}, window {declared.window_ns / HOUR_NS:g} h, "
        f"a look every {declared.look_ns / 1e9:g} s, "
        f"{policy.min_samples:g} samples and {policy.min_failures} failures at least, "
        f"{rule.needed} of {rule.looks} looks, margin {rule.recovery_margin:g}, hold {rule.hold_ns / 60e9:g} min, "
        f"change {good:.3g} to {bad:.4g} once in {declared.change.false_alarm_every_ns / HOUR_NS / 24:g} days"
    )
