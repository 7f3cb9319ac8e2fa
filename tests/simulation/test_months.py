"""The simulation of many months at once against the detectors of the product, verdict by verdict."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from sidejudge.monitor.alerting.tracked import ChartPace, Tracked
from sidejudge.scoring.statistics.baseline import Baseline
from sidejudge.scoring.statistics.cusum import Cusum
from sidejudge.scoring.statistics.design_effect import DesignEffect

_SPEC = importlib.util.spec_from_file_location("months", Path(__file__).with_name("months.py"))
many = sys.modules["months"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(many)

DECLARED = many.Declaration()


@pytest.mark.parametrize(
    "traffic",
    [many.Traffic(per_hour=20), many.Traffic(per_hour=30, size=5), many.Traffic(per_hour=20, forced=True, daily=True)],
)
def test_what_is_simulated_at_once_is_what_the_product_would_do(traffic):
    months = many.drawn(np.random.default_rng(1), traffic, months=2, hours=72, good=0.9, bad=0.7, from_h=36)
    months.weight[:, :3] = months.weight.max()  # the largest weight comes first, as the simulation takes it
    chart = DECLARED.chart("qa", 20)
    worth, effect = many.worths(months)
    alarmed, since = many.cusum(months, [chart], worth)
    usual = many.baselines(months, worth, 0.9)
    for month in range(2):
        design, cusum, baseline = DesignEffect(), Cusum(), Baseline(0.9)
        baseline.add(passed=True, weight=float(months.weight.max()), worth=0.0)  # the scale is known
        for k in range(int(np.isfinite(months.at_h[month]).sum())):
            stated = {"passed": bool(months.passed[month, k]), "weight": float(months.weight[month, k])}
            assert design.value == pytest.approx(effect[month, k])
            share = design.add(str(months.cluster[month, k]), **stated)
            assert share == pytest.approx(worth[month, k])
            at_ns = round(months.at_h[month, k] * many.HOUR_NS)
            cusum.add(chart, **stated, at_ns=at_ns, worth=share)
            assert baseline.lower == pytest.approx(usual[month, k])
            baseline.add(**stated, worth=share)
            assert cusum.alarmed == alarmed[month, k]
            if cusum.alarmed:
                assert cusum.pass_ratio == pytest.approx(since[month, k])
        assert alarmed[month].any()


def test_every_kind_of_traffic_has_the_rate_and_the_pass_ratio_that_it_is_given():
    for traffic in (
        many.Traffic(per_hour=50),
        many.Traffic(per_hour=50, size=5),
        many.Traffic(per_hour=50, daily=True),
    ):
        months = many.drawn(np.random.default_rng(2), traffic, months=20, hours=240, good=0.9)
        known = np.isfinite(months.at_h)
        assert known.sum() / 20 / 240 == pytest.approx(50, rel=0.05)
        assert months.passed[known].mean() == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize(
    "traffic",
    [many.Traffic(per_hour=40), many.Traffic(per_hour=40, size=5), many.Traffic(per_hour=30, forced=True, daily=True)],
)
def test_all_detectors_at_once_are_those_that_the_product_follows(traffic):
    months = many.drawn(np.random.default_rng(5), traffic, months=2, hours=96, good=0.95, bad=0.55, from_h=70)
    months.weight[:, 0] = months.weight.max()  # the largest weight comes first, as the simulation takes it
    _, effects = many.worths(months)
    pace = 30.0
    known = many.followed(DECLARED, months, pace)
    worst = max(1.0, float(np.median(effects[:, effects.shape[1] // 2])))
    for month in range(2):
        tracked, places = Tracked(DECLARED, "qa"), []
        for k in range(int(np.isfinite(months.at_h[month]).sum())):
            tracked.learn(
                DECLARED, ChartPace(pace / worst, 1), passed=bool(months.passed[month, k]),
                weight=float(months.weight[month, k]), at_ns=round(months.at_h[month, k] * many.HOUR_NS),
                cluster=None if traffic.size == 1 else str(months.cluster[month, k]), kept=None,
            )  # fmt: skip
            if k % 3:  # what it learns shows at the next one as well
                continue
            drops = tracked.drops(1)
            places.append((drops.fall is not None, drops.collapse is not None, drops.slide is not None))
            found = (known.fall, known.collapse, known.slide)
            for stated, column in zip((drops.fall, drops.collapse, drops.slide), found, strict=True):
                assert (1.0 if stated is None else stated) == pytest.approx(column[k, month], abs=1e-9)
            if k > 0:  # the first verdict sets the scale of weights
                for place, level in enumerate(known.levels):
                    assert tracked.sequence.evidence(level) == pytest.approx(
                        known.evidence[k, place, month], rel=1e-4, abs=1e-4
                    )
        assert all(map(any, zip(*places, strict=True))), "each of them reports something"
