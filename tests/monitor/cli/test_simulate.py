"""``sidejudge simulate``: the past as a table and as JSON, and what is wrong with a call."""

from __future__ import annotations

import json
from pathlib import Path

from sidejudge.scoring.trace.time_units import iso_time
from tests.verdict_lines import verdict_line

BEGIN_NS = 1_795_255_200 * 10**9
MINUTE_NS = 60 * 10**9
CONFIG = """
sampling: {rate: 0.1}
routes: [{rubrics: [qa, text]}]
alerts: {window: 30m, hysteresis: {needed: 2, looks: 3, hold: 5m}}
evaluators: {judge: {model: openai/gpt-4.1-mini-2025-04-14, budget_usd_per_hour: 10}}
"""


def past(folder: Path, *more: str) -> Path:
    """Three hours at four a minute, the second hour half wrong."""
    path = folder / "v.jsonl"
    lines = []
    for number in range(3 * 240):
        passed = not (240 <= number < 480 and number % 2)
        lines.append(
            verdict_line(
                f"c{number}", passed=passed, service="calls\x1b[31m", environment="prod", sampling_probability=0.1,
                created_at=iso_time(BEGIN_NS + number * MINUTE_NS // 4), judge={"model": "m", "cost_usd": 0.001},
            )
        )  # fmt: skip
    path.write_text("\n".join([*map(json.dumps, lines), *more]) + "\n")
    return path


def config(folder: Path) -> Path:
    path = folder / "c.yaml"
    path.write_text(CONFIG)
    return path


def test_the_past_is_told_as_a_table(call, tmp_path: Path) -> None:
    shown = call("simulate", config(tmp_path), "--verdicts", past(tmp_path), "--since", "3h")
    assert shown.exit_code == 0, shown.stderr
    assert "\x1b[31m" not in shown.stdout
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert ["pass_rate_critical", "critical"] in [row[:2] for row in rows]
    assert "routed now, and without a verdict in this past, so nothing can be shown: text" in shown.stdout
    assert "judge: $0.72 for 720 of 720 verdicts, by m; about $7.20 for all traffic, $0.72 at the base rate" in (
        shown.stdout
    )
    assert "dearest hour $0.24 of $10.00" in shown.stdout
    lax = tmp_path / "lax.yaml"
    lax.write_text("alerts: {thresholds: {warning: 0.3, critical: 0.2}}")
    assert "no alert" in call("simulate", lax, "--verdicts", past(tmp_path), "--since", "3h").stdout


def test_several_versions_of_a_rubric_in_the_past_are_named(call, tmp_path: Path) -> None:
    path = past(tmp_path)
    assert "several versions" not in call("simulate", config(tmp_path), "--verdicts", path, "--since", "3h").stderr
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0].replace("qa@00000000", "qa@1"), *lines[1:]]) + "\n")
    shown = call("simulate", config(tmp_path), "--verdicts", path, "--since", "3h")
    assert "verdicts of several versions of qa are replayed as one" in shown.stderr
    assert "begins anew: qa@1, qa@00000000" in shown.stderr


def test_the_past_as_json_says_the_same(call, tmp_path: Path) -> None:
    shown = call("simulate", config(tmp_path), "--verdicts", past(tmp_path), "--since", "3h", "--json")
    stated = json.loads(shown.stdout)
    critical = next(each for each in stated["alerts"] if each["condition"] == "pass_rate_critical")
    assert BEGIN_NS + 60 * MINUTE_NS < critical["began_ns"] < BEGIN_NS + 100 * MINUTE_NS
    assert critical["ended_ns"] > BEGIN_NS + 120 * MINUTE_NS
    assert critical["upper"] < 0.70, "the figure is of what came since the drop, by which it is judged"
    (course,) = stated["courses"]
    assert (course["rubric"], course["verdicts"]) == ("qa", 720)
    assert set(course["shares"]) == {"healthy", "warning", "critical", "insufficient_data", "no_data"}
    assert stated["judge"]["paid_usd"] == 0.72


def test_limits_of_what_no_verdict_holds_are_named(call, tmp_path: Path) -> None:
    limits = tmp_path / "limits.yaml"
    limits.write_text(
        "alerts: {metrics: [{metric: latency_p95, warning: 5s}, {metric: answer_relevancy_mean, warning_below: 0.1}]}"
    )
    shown = call("simulate", limits, "--verdicts", past(tmp_path), "--since", "1h")
    assert shown.exit_code == 0, shown.stderr
    assert "alerts.metrics: latency_p95: no verdict holds such figures" in shown.stderr


def test_lines_that_are_no_verdicts_are_said_and_are_the_exit_code(call, tmp_path: Path) -> None:
    shown = call("simulate", "--verdicts", past(tmp_path, "{}"), "--since", "1h")
    assert shown.exit_code == 1
    assert "v.jsonl, line 721: state: is missing" in shown.stderr


def test_what_is_wrong_with_the_call_is_two_lines(call, tmp_path: Path) -> None:
    empty = tmp_path / "e.jsonl"
    empty.write_text("")
    for arguments, cause in (
        (["--verdicts", tmp_path / "none"], "does not exist"),
        (["--verdicts", empty], f"{empty}: holds no verdict"),
        (["--store", tmp_path / "none.sqlite"], "there is no such file"),
        (["--since", "7"], "--since: must be a duration"),
        (["--since", "0s", "--verdicts", empty], "--since: must be above 0"),
        (["--store", empty, "--verdicts", empty], "one past at a time"),
    ):
        shown = call("simulate", *arguments)
        assert shown.exit_code == 2, shown.stdout
        assert cause in shown.stderr
        assert len(shown.stderr.splitlines()) == 2
