"""What the cascade promises, held against simulated judges. ``tests/bench/bench_cascade.py`` prints the figures."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from sidejudge.monitor.config.evaluators import CascadeSection

_SPEC = importlib.util.spec_from_file_location(
    "bench_cascade", Path(__file__).parents[1] / "bench" / "bench_cascade.py"
)
bench = sys.modules["bench_cascade"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(bench)

TRACES = 250
PRICES = {"default": bench.SMALL, "strong": bench.STRONG}


@pytest.mark.parametrize(("rubric", "noise", "error"), [("grades", 0.05, 0.05), ("yes or no", 0.04, 0.01)])
async def test_nine_tenths_of_the_strong_judges_verdicts_cost_a_quarter(rubric, noise, error):
    truth, judges = (bench.Simulated(noise, error, PRICES) for _ in range(2))
    strong = await bench.verdicts(truth, rubric, ("strong",), CascadeSection(), TRACES)
    found = await bench.verdicts(judges, rubric, ("default", "strong"), CascadeSection(), TRACES)
    assert bench.agreement(strong, found) >= 0.9
    assert sum(judges.usd.values()) / truth.usd["strong"] <= 0.27, "a quarter, and the chance of so few traces"
