"""Seed 004's production monitor, transcribed as it stands, and ours in its special case, on the same verdicts."""

from __future__ import annotations

import random

import pytest

from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.scoring.alerts.condition import Observed
from sidejudge.scoring.alerts.declaration import Declaration
from tests.seed_policy import SEED

KEY = Key("shop", "production", "dimensions")
FOREVER_NS = 10**18


class ProductionMonitor:
    """The seed's class, with what it samples handed in."""

    def __init__(self):
        self.samples = []
        self.alert_thresholds = {"pass_rate_warning": 0.85, "pass_rate_critical": 0.70}

    def get_metrics(self):
        """Calculate current metrics from samples."""
        if not self.samples:
            return {"status": "insufficient_data"}

        passed = sum(1 for s in self.samples if s["passed"])
        pass_rate = passed / len(self.samples)
        avg_score = sum(s["score"] for s in self.samples) / len(self.samples)

        return {
            "sample_count": len(self.samples),
            "pass_rate": pass_rate,
            "average_score": avg_score,
            "status": self._get_status(pass_rate),
        }

    def _get_status(self, pass_rate):
        """Get status based on pass rate."""
        if pass_rate < self.alert_thresholds["pass_rate_critical"]:
            return "critical"
        if pass_rate < self.alert_thresholds["pass_rate_warning"]:
            return "warning"
        return "healthy"


def ours(windows, now_ns):
    standing = windows.status(KEY, now_ns, SEED)
    if standing.estimate is None:
        return {"status": standing.appraisal.status.value}
    return {
        "sample_count": standing.estimate.n,
        "pass_rate": pytest.approx(standing.estimate.pass_ratio, abs=1e-12),
        "average_score": pytest.approx(standing.composite_mean, abs=1e-12),
        "status": standing.appraisal.status.value,
    }


@pytest.mark.parametrize(("quality", "seed"), [(0.5, 1), (0.69, 2), (0.71, 3), (0.84, 4), (0.86, 5), (0.99, 6)])
def test_a_thousand_samples_give_the_seeds_metrics_after_each(quality, seed):
    chance = random.Random(seed)
    theirs, windows = ProductionMonitor(), Windows(FOREVER_NS)
    assert theirs.get_metrics() == ours(windows, 0)
    for number in range(1, 1001):
        score = chance.random() * 0.3 + (0.7 if chance.random() < quality else 0.4)
        theirs.samples.append({"score": score, "passed": score >= 0.7})
        windows.add(
            KEY, Observation(identity=str(number), at_ns=number, passed=score >= 0.7, composite=score, weight=100.0)
        )
        assert theirs.get_metrics() == ours(windows, number), number


def test_every_share_of_up_to_a_hundred_samples_gets_the_seeds_status():
    seen = set()
    for n in range(1, 101):
        theirs, windows = ProductionMonitor(), Windows(FOREVER_NS)
        for failed in range(n + 1):
            theirs.samples = [{"score": 0.5, "passed": k >= failed} for k in range(n)]
            for k in range(n) if failed == 0 else (failed - 1,):
                windows.add(KEY, Observation(identity=str(k), at_ns=1, passed=k >= failed, composite=0.5))
            assert theirs.get_metrics() == ours(windows, 1), (n, failed)
            seen.add(theirs.get_metrics()["status"])
    assert seen == {"healthy", "warning", "critical"}


@pytest.mark.parametrize(("quality", "seed"), [(0.5, 1), (0.71, 3), (0.84, 4), (0.86, 5)])
def test_the_watch_in_mode_point_says_what_the_seed_says_after_each_sample_however_it_is_looked_at(quality, seed):
    chance = random.Random(seed)
    theirs, windows = ProductionMonitor(), Windows(FOREVER_NS)
    watch = Watch(Declaration(policy=SEED, window_ns=FOREVER_NS), windows)
    for number in range(1, 301):
        passed = chance.random() < quality
        theirs.samples.append({"score": 0.5, "passed": passed})
        seen = Observation(identity=str(number), at_ns=number, passed=passed, composite=0.5, weight=100.0)
        windows.add(KEY, seen)
        watch.learn(KEY, seen)
        if chance.random() < 0.3:
            watch.look(Observed(now_ns=number), {}, {})
        (standing,) = watch.service_statuses(number)
        assert standing.appraisal.status == theirs.get_metrics()["status"], number
