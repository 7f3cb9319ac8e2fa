"""The charts of a declaration exist whatever the thresholds are, and whatever a service is found to pass."""

from __future__ import annotations

import itertools

import pytest

from sidejudge.scoring.alerts.declaration import AlertLimits, Declaration
from sidejudge.scoring.status.status import Mode, Policy, Thresholds

RATIOS = (0.0, 0.001, 0.05, 0.2, 1 / 3, 0.5, 0.84, 0.97, 1.0)


@pytest.mark.parametrize("mode", ["adaptive", "bound", "point"])
@pytest.mark.parametrize(("critical", "warning"), [*itertools.combinations_with_replacement(RATIOS, 2)])
def test_every_threshold_has_charts_whatever_is_usual(critical: float, warning: float, mode: Mode) -> None:
    declared = Declaration(policy=Policy(mode=mode, thresholds=Thresholds(warning=warning, critical=critical)))
    for usual in RATIOS:
        charts = [
            declared.chart("qa", 50.0, 4, usual), declared.slide_chart("qa", 50.0, 4, usual),
            declared.slice_chart("qa", 50.0, 4, usual), declared.collapse_chart("qa", 50.0),
            declared.drift_chart(50.0, 4, usual), declared.chart("qa", 50.0), declared.metric_chart(usual, 50.0, 4),
        ]  # fmt: skip
        assert all(0 < chart.bad < chart.good < 1 for chart in charts)
        assert declared.usual("qa", usual) >= warning or warning == 1


@pytest.mark.parametrize("allowed", [0.0, 0.5, 1.0])
def test_a_service_that_never_keeps_to_its_scenario_has_a_chart_whatever_is_allowed(allowed: float) -> None:
    chart = Declaration(limits=AlertLimits(violation_ratio=allowed)).drift_chart(50.0, 4, baseline=0.0)
    assert 0 < chart.bad < chart.good < 1
