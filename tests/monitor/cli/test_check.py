"""check: a short outline of what a monitor will do, and the whole on request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sidejudge.monitor.cli import main

FULL = """
sampling: {rate: 0.05}
routes:
  - {match: {name: "support-*"}, rubrics: [workflow, run_health], scenario: support}
scenarios: {support: {tools_should_include: [a], closed: false}}
evaluators: {judge: {model: openai/gpt-4.1-2025-04-14, api_key: sk-very-secret, budget_usd_per_hour: 2}}
alerts: {notify: [{name: night-shift, slack: {url: "https://hooks.example.com/secret"}}], links: {trace: "https://t/{trace_id}"}}
sinks: {jsonl: {path: v.jsonl}}
forward: {url: "https://otel.example.com"}
"""


@pytest.fixture
def check(tmp_path: Path):
    def run(text: str, *more: str) -> str:
        path = tmp_path / "c.yaml"
        path.write_text(text)
        result = CliRunner().invoke(main, ["check", str(path), *more])
        assert result.exit_code == 0, result.output
        return result.output

    return run


def test_the_outline_says_what_comes_in_what_is_judged_and_where_it_goes(check) -> None:
    shown = check(FULL)
    for line in (
        "passes on  traces, logs, metrics to https://otel.example.com", "draws      0.05 of the traces",
        "name: support-*: workflow, run_health (scenario support)", "everything else: run_health",
        "the judge openai/gpt-4.1-2025-04-14, at most $2 an hour", "notices to night-shift", "verdicts to v.jsonl",
    ):  # fmt: skip
        assert line in shown
    assert "secret" not in shown
    assert "WHAT DOES NOT HAPPEN" not in shown
    assert "configuration ok" in shown


def test_without_anything_configured_it_fits_a_screen_and_names_what_is_left_out(check) -> None:
    shown = check("{}")
    assert len(shown.splitlines()) < 20
    assert "every trace up to 1,000 an hour" in shown
    assert "no model judges answers" in shown


def test_only_what_was_set_is_listed_and_all_lists_everything(check) -> None:
    shown, whole = check("sampling: {rate: 0.5}"), check("sampling: {rate: 0.5}", "--all")
    assert "sampling.rate" in shown
    assert "log.level" not in shown
    for part in ("log.level", "pass_rate_critical", "memory, at most:", "assembly.max_trace_bytes"):
        assert part in whole
    assert check("{}", "--verbose") == check("{}", "--all")


def test_many_routes_are_counted_and_not_listed(check) -> None:
    routes = ", ".join(f"{{match: {{name: r{n}}}, rubrics: [run_health]}}" for n in range(30))
    shown = check(f"routes: [{routes}]")
    assert "and 22 more routes" in shown
    assert "everything else: run_health" in shown
    assert "everything else" not in check(f"routes: [{routes}, {{rubrics: [workflow]}}]"), "nothing is left for it"
    assert len(shown.splitlines()) < 45


LONG_RUNS = """
routes: [{match: {}, rubrics: [trajectory]}]
rubrics: {trajectory: {trajectory: {share: 0.05, most_tokens: 100000}}}
evaluators: {judge: {model: openai/gpt-4.1-2025-04-14, price: {input_usd_per_million: 2, output_usd_per_million: 8}}}
"""


def test_what_a_long_run_may_cost_is_shown_before_one_comes(check) -> None:
    shown = check(LONG_RUNS)
    assert "a long run takes 5% of its tokens, at most 100,000 in about 5 requests; $0.24 a run at most" in shown
    assert "long run" not in check(FULL)


PRICED = """
evaluators:
  judge: {model: openai/small, api_key: k, context_tokens: 32000,
          price: {input_usd_per_million: 0.1, output_usd_per_million: 0.4}}
  judges: {strong: {model: openai/large, price: {input_usd_per_million: 2.0, output_usd_per_million: 8.0}}}
rubrics: {quality: {judge: [default, strong]}}
routes: [{match: {}, rubrics: [quality, dimensions, workflow]}]
"""


def test_what_the_judge_and_a_cascade_cost_is_shown_before(check) -> None:
    shown = " ".join(check(PRICED).split())
    assert "costs quality: $0.0" in shown
    assert "the strongest judge alone $0.00" in shown
    assert "agrees with it in 8" in shown
    assert "dimensions: $0.000" in shown
    assert "workflow: $" not in shown  # it asks no judge
    found = json.loads(check(PRICED, "--format", "json"))["judging"]
    assert [each["rubric"] for each in found] == ["quality", "dimensions"]
    assert found[0]["usd"] < found[0]["cascade_usd"][0] < found[0]["strong_usd"]


def test_a_judge_without_a_known_price_is_named_with_the_remedy(check) -> None:
    text = "evaluators: {judge: {model: openai/own, api_key: k, context_tokens: 32000}}\ndefault_rubrics: [quality]"
    assert "the price of its judge is not known: set evaluators.judge.price" in " ".join(check(text).split())


def test_the_old_name_of_a_mode_is_warned_of_once_by_cause_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "alerts: {mode: sequence, sequence: {error: 0.1}}\nanswerers: {order: [lexical]}\n"
        f"store: {{path: {tmp_path / 's.sqlite'}}}\n"
    )
    checked = CliRunner().invoke(main, ["check", str(path)]).stderr
    assert "\nremedy: set alerts.mode: adaptive and alerts.false_alarms_per_month: 0.1, and" in checked
    rows = json.loads(CliRunner().invoke(main, ["doctor", "--format", "json", "--config", str(path)]).stdout)
    warned = [f"{row['found']}{row['remedy']}" for row in rows if row["grade"] == "warn"]
    for shown in (checked, "".join(warned)):
        assert shown.count("alerts.mode: sequence is the old name of adaptive") == 1
        assert shown.count("answerers is the old name of evaluators") == 1


def test_verdicts_that_a_late_reference_may_revise_are_kept_for_as_long(check) -> None:
    langfuse = "sinks: {langfuse: {base_url: 'http://127.0.0.1:1', public_key: pk, secret_key: sk}}"
    shown = check(f"{langfuse}\nreferences: [{{langfuse_corrections: true}}]\n")
    assert "verdicts for 7d, contents of failed traces for 7d" in " ".join(shown.split())
    assert "verdicts for 1d" in " ".join(check("{}").split())


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("sources: {otlp: {tls: {certificate: /nowhere.pem, key: /k.pem}}}", "sources.otlp.tls.certificate"),
        ("api: {tls: {certificate: /nowhere.pem, key: /k.pem}}", "api.tls.certificate"),
        ("forward: {url: 'http://127.0.0.1:1', ca: /nowhere.pem}", "forward.ca"),
    ],
)
def test_a_certificate_that_is_not_there_is_warned_of(check, section: str, key: str) -> None:
    assert f"warning: {key}: /nowhere.pem: No such file or directory\nremedy: give PEM files" in check(section)
    [warned] = [each for each in json.loads(check(section, "--json"))["warnings"] if "nowhere" in each["cause"]]
    assert warned["cause"].startswith(key)
