"""``plan`` at the command line, and the warnings of ``check`` about thin traffic."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
import yaml

from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.cli.plan import costs_of_judging
from sidejudge.monitor.config import load
from tests.verdict_lines import verdict_line


def test_it_proposes_a_rate_for_my_traffic(call):
    done = call("plan", "--rate", "10/min", "--good", 0.95, "--bad", 0.7, "--format", "json", "--within", "1h")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [row["verdicts_per_hour"] for row in found["rows"]] == [6, 30, 120, 600]
    waits = [row["median_minutes"] for row in found["rows"]]
    assert waits == sorted(waits, reverse=True)
    assert 0.05 <= found["proposed"]["sampling"]["rate"] <= 0.3


@pytest.mark.parametrize(
    ("options", "named"),
    [(["--rate", "many"], "--rate"), (["--rate", "20/h", "--good", 0.7, "--bad", 0.8], "--bad"),
     (["--rate", "20/h", "--within", "soon"], "--within")],
)  # fmt: skip
def test_a_call_that_is_wrong_names_the_option(call, options, named):
    done = call("plan", *options)
    assert done.exit_code == 2
    assert named in done.stderr


def filled(path: Path, count: int, every_s: float) -> None:
    """A store with verdicts, the last just now."""
    store, now_ns = Store(path), time.time_ns()

    async def fill() -> None:
        for number in range(1, count + 1):
            await store.finish(FinishedTrace(
                trace_id=number.to_bytes(16, "big"), service="shop", reason="scored", completion="root_ended",
                revision=1, details={}, closed_ns=now_ns - round(number * every_s * 10**9),
                verdicts=[verdict_line(str(number), trace_id=f"{number:032x}", service="shop", environment="prod")],
            ))  # fmt: skip

    asyncio.run(fill())
    store.close()


@pytest.mark.parametrize(("mode", "warned"), [("bound", True), ("adaptive", False)])
def test_check_and_doctor_say_before_that_a_bound_has_no_answer_at_20_an_hour(call, tmp_path: Path, mode, warned):
    filled(tmp_path / "s.sqlite", 480, 180)
    config = tmp_path / "c.yaml"
    config.write_text(yaml.safe_dump({"store": {"path": str(tmp_path / "s.sqlite")}, "alerts": {"mode": mode}}))
    done = call("check", config)
    assert ("shop under qa had 20 verdicts an hour" in done.stderr) is warned
    assert ("set alerts.mode: adaptive" in done.stderr) is warned
    assert ("shop under qa" in call("doctor", "--config", config).output) is warned


@pytest.mark.parametrize(("every_s", "warned"), [(20, False), (300, True)])
def test_a_store_that_is_young_is_judged_by_its_age_and_not_by_a_day(call, tmp_path: Path, every_s, warned):
    filled(tmp_path / "s.sqlite", 12, every_s)
    config = tmp_path / "c.yaml"
    config.write_text(yaml.safe_dump({"store": {"path": str(tmp_path / "s.sqlite")}, "alerts": {"mode": "bound"}}))
    assert ("shop under qa had 12 verdicts an hour" in call("check", config).stderr) is warned


def test_check_says_that_a_limit_of_the_sampling_never_makes_a_window(call, tmp_path: Path):
    config = tmp_path / "c.yaml"
    given = {"store": {"path": str(tmp_path / "none")}, "sampling": {"traces_per_hour": 1}}
    config.write_text(yaml.safe_dump(given))
    assert "every status is insufficient_data" in call("check", config).stderr


PRICED = """
evaluators:
  judge: {model: openai/small, api_key: k, context_tokens: 32000,
          price: {input_usd_per_million: 0.1, output_usd_per_million: 0.4}}
  judges:
    strong: {model: openai/large, price: {input_usd_per_million: 2.0, output_usd_per_million: 8.0}}
  cascade: {permuted: %s, rate: 0.05}
rubrics: {quality: {judge: [default, strong]}}
routes: [{match: {}, rubrics: [quality, dimensions, workflow]}]
"""


@pytest.mark.parametrize("permuted", ["true", "false"])
def test_what_a_judge_and_a_cascade_cost_is_known_before(tmp_path, permuted):
    (tmp_path / "sidejudge.yaml").write_text(PRICED % permuted)
    config = load(tmp_path / "sidejudge.yaml", {})
    short, long = (costs_of_judging(config, tokens) for tokens in (1_000, 20_000))
    quality, dimensions = short  # workflow asks no judge
    assert (quality.rubric, quality.judges, quality.questions) == ("quality", ("default", "strong"), 1)
    assert quality.strong_usd == pytest.approx(20 * quality.usd)
    assert quality.usd < quality.cascade_usd[0] < quality.cascade_usd[1] < 0.4 * quality.strong_usd
    assert (dimensions.cascade_usd, dimensions.agrees) == (None, None)
    # twenty thousand tokens of contents at 0.1 USD a million, of which the rubric shows a part
    assert 0.0005 < long[0].usd < 0.004
    assert costs_of_judging(load(None, {}), 1_000) == []
