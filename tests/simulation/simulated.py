"""A service as the monitor sees it: verdicts at random times, and what the status code says of them, look by look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scoring.alerts.declaration import Declaration
from scoring.statistics.cusum import Cusum
from scoring.statistics.estimate import Estimate, from_sums
from scoring.status.hysteresis import HysteresisState, Look, step
from scoring.status.status import Policy, Status, appraise

HOUR_NS = 3_600 * 10**9
ALARMS = (Status.WARNING, Status.CRITICAL)
RUBRIC = "qa"

ADAPTIVE = Declaration(policy=Policy(mode="adaptive"))
PLAIN = Declaration(policy=Policy(mode="point", min_samples=1, min_failures=0))
"""The plain average: the seed's monitor over the window, which is what most alerts on a score are."""
BOUND = Declaration(policy=Policy(mode="bound"))
SEQUENCE = Declaration(policy=Policy(mode="sequence"))
MODES = {"plain average": PLAIN, "bound": BOUND, "sequence": SEQUENCE}


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
    """The estimate of the window at each look, from the same sums that the windows keep."""
    w, failed = verdicts.weight, ~verdicts.passed
    sums = [np.concatenate([[0], np.cumsum(each)]) for each in (np.ones(len(w)), failed, w, w * failed, w * w)]
    begins = np.searchsorted(verdicts.at_ns, looks_ns - window_ns, side="right")
    ends = np.searchsorted(verdicts.at_ns, looks_ns, side="right")
    for begin, end in zip(begins, ends, strict=True):
        n, failures, weight, failed_weight, squared = (float(each[end] - each[begin]) for each in sums)
        yield from_sums(
            n=round(n), failures=round(failures), weight=weight, failed_weight=failed_weight, squared_weight=squared
        )


def statuses(declared: Declaration, verdicts: Verdicts, *, hours: float) -> Iterator[tuple[int, Status]]:
    """(ns, status in force) at every look."""
    rule = declared.rule
    policy = declared.policy_of(RUBRIC)
    raised = policy.raised(rule.recovery_margin)
    sequence = declared.new_sequence(RUBRIC) if policy.mode == "sequence" else None
    looks_ns = np.arange(1, int(hours * HOUR_NS / declared.look_ns) + 1) * declared.look_ns
    held: HysteresisState | None = None
    fed = 0
    for now_ns, reported in zip(looks_ns, estimates(verdicts, looks_ns, declared.window_ns), strict=True):
        while sequence is not None and fed < len(verdicts) and verdicts.at_ns[fed] <= now_ns:
            sequence.add(
                passed=bool(verdicts.passed[fed]), weight=float(verdicts.weight[fed]), at_ns=int(verdicts.at_ns[fed])
            )
            fed += 1
        look = Look(
            status=appraise(reported, policy, sequence).status,
            with_margin=appraise(reported, raised, sequence).status,
            empty=reported is None,
        )
        held = step(held, look, int(now_ns), rule)
        yield int(now_ns), held.status


def entries(reported: Iterator[tuple[int, Status]], levels: Sequence[Status] = ALARMS) -> list[int]:
    """When (ns) an alarm began: a look in one of the levels after one that was not."""
    found, before = [], False
    for now_ns, status in reported:
        if status in levels and not before:
            found.append(now_ns)
        before = status in levels
    return found


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
        f"sequence {declared.sequence.error:g} in {declared.sequence.period_ns / HOUR_NS / 24:g} days, "
        f"change {good:.3g} to {bad:.4g} once in {declared.change.false_alarm_every_ns / HOUR_NS / 24:g} days"
    )
