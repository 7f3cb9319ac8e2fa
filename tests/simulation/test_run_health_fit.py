"""The page on run_health's weights is that of the weights in force; the fit finds better ones where there are any."""

from __future__ import annotations

import numpy as np

from tests.simulation.run_health_fit import METRICS, PAGE, Judged, failing, fitted, in_force, places


def run(fault, *, lowered=(), named=(), wrong=()):
    values = np.array([0.0 if name in lowered else 1.0 for name in METRICS])
    return Judged(
        fault=fault, values=values, blocked=False, wrong=frozenset(wrong), named={"tool_success": frozenset(named)},
        places=10,
    )  # fmt: skip


def test_the_page_was_made_with_the_weights_in_force():
    """When one changes: ``python -m tests.simulation.run_health_fit``."""
    text, (weights, mark) = PAGE.read_text(encoding="utf-8"), in_force()
    assert f"in force, pass mark {mark:.2f}" in text
    for name, weight in zip(METRICS, weights, strict=True):
        assert f"| `{name}` | {weight:.3g} |" in text


def test_the_fit_weighs_the_metric_that_tells_spoilt_runs_from_sound_ones():
    runs = [run("loop", lowered=("not_refused",)), run(None, lowered=("tool_success",)), run(None)] * 20
    weights, mark = in_force()
    assert failing(runs, weights, mark) == (0.0, 0.5)
    assert failing(runs, *fitted(runs, seed=1)) == (1.0, 0.0)


def test_places_are_counted_by_run_that_is_noticed_and_by_step_that_is_flagged():
    runs = [run("loop", named={3, 4}, wrong={3}), run("crash", named={1}, wrong={0}), run(None)]
    assert places(runs, frozenset({"tool_success"})) == (1 / 2, 2 / 28)
    assert places(runs, frozenset({"answered"})) == (0.0, 0.0)
