"""``plan`` at the command line, and the warnings of ``check`` about thin traffic."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
import yaml

from sidejudge.integrations.store.sqlite import FinishedTrace, Store
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
