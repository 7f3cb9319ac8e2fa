"""A rubric that somebody declared is taken by every command that takes one that ships."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.monitor.demo.traffic import SampleTraffic
from sidejudge.scoring.trace.time_units import iso_time
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode

RUBRIC = {
    "title": "Parcels",
    "pass_mark": 0.7,
    "metrics": [
        {"id": "says_way", "check": {"icontains": "way"}, "weight": 0.5},
        {"id": "brief", "check": {"word-count": {"max": 12}}, "weight": 0.5},
        {"id": "no_promise", "check": {"not-contains": "guarantee"}, "blocker": "disqualify"},
    ],
}
ANSWERS = ["It is on its way", "It is on its way, we guarantee it", "Nobody knows. " * 10, "On the way"]


@pytest.fixture
def config(tmp_path):
    def write(**sections):
        path = tmp_path / "sidejudge.yaml"
        path.write_text(yaml.safe_dump({"rubrics": {"parcel": RUBRIC}, "default_rubrics": ["parcel"], **sections}))
        return path

    return write


@pytest.fixture
def verdicts(call, config, tmp_path):
    """The file that ``score`` writes, where no rubric is named and the cases have no task."""
    cases = [{"case_id": f"c{n}", "model_output": ANSWERS[n % 4], "input": "where?"} for n in range(40)]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in cases))
    done = call("score", tmp_path / "cases.jsonl", "--config", config(), "--out", tmp_path / "v.jsonl")
    assert done.exit_code == 0, done.stderr
    return tmp_path / "v.jsonl"


def test_score_judges_by_default_rubrics_where_neither_a_route_nor_a_task_names_one(verdicts):
    found = [json.loads(line) for line in verdicts.read_text().splitlines()]
    assert {each["rubric"] for each in found} == {"parcel"}
    assert [each["passed"] for each in found[:4]] == [True, False, False, True]
    assert found[1]["blockers"] == ["no_promise"]


def test_gate_holds_the_pass_rate_against_a_bound(call, verdicts):
    done = call("gate", verdicts, "--rubric", "parcel", "--pass-rate", "0.5", "--format", "json")
    (run,) = json.loads(done.stdout)["runs"]
    assert (done.exit_code, run["aggregates"]["pass_rate"]) == (0, 0.5)
    assert [gate["gate"] for gate in run["gates"]] == ["pass_rate", "evaluator_error_rate", "incomplete_rate"]
    strict = call("gate", verdicts, "--rubric", "parcel")
    assert strict.exit_code == 1
    assert "pass_rate: 0.5 is below 0.85" in strict.stdout
    assert "accuracy_mean" not in strict.stdout
    assert "gates of 'answer' are fixed" in call("gate", verdicts, "--pass-rate", "0.5").stderr
    assert "holds no verdict of 'other'" in call("gate", verdicts, "--rubric", "other").stderr


def test_gate_names_the_evaluator_that_failed(call, verdicts):
    lines = [json.loads(line) for line in verdicts.read_text().splitlines()]
    for line in lines[:5]:
        line |= {"passed": None, "state": "incomplete", "composite": None, "composite_norm": None}
        line["scores"][0] |= {"status": "error", "value": None, "reason": "the function hung"}
    verdicts.write_text("".join(json.dumps(each) + "\n" for each in lines))
    done = call("gate", verdicts, "--rubric", "parcel", "--pass-rate", "0.1", "--format", "json")
    (run,) = json.loads(done.stdout)["runs"]
    reasons = {gate["gate"]: gate["reason"] for gate in run["gates"]}
    assert reasons["evaluator_error_rate"] == (
        "5 of 40 samples have no grade; the first: says_way failed: the function hung"
    )


def test_scorecard_has_its_metrics_its_score_and_its_blocker(call, config, verdicts):
    done = call("scorecard", f"A={verdicts}", "--config", config(), "--format", "json")
    assert done.exit_code == 0, done.stderr
    card = json.loads(done.stdout)
    values = {row["title"]: row["cells"]["A"]["value"] for row in card["rows"] if row["cells"]}
    assert values["Says way"] == 0.75
    assert values["Parcels score"] == 0.75
    assert values["Any Blocker Triggered?"] is True
    assert "QA Score" not in values
    for form in ("markdown", "html"):
        shown = call("scorecard", f"A={verdicts}", "--config", config(), "--format", form)
        assert "Parcels score" in shown.stdout
    refused = call("scorecard", f"A={verdicts}")
    assert (refused.exit_code, "--config that declares their rubric" in refused.stderr) == (2, True)


def test_metrics_and_explain_show_it(call, config):
    assert "says_way" in call("metrics", "--rubric", "parcel", "--config", config()).stdout
    assert "no_promise" in call("explain", "parcel", "--config", config()).stdout
    assert "parcel_says_way" in call("explain", "says_way", "--config", config()).stdout


def test_calibrate_compares_it_with_labels(call, tmp_path, verdicts):
    labels = [{"case_id": f"c{n}", "rubric": "parcel", "label": n % 4 == 0, "by": "ann"} for n in range(40)]
    labels += [
        {"case_id": f"c{n}", "rubric": "parcel", "metric": "brief", "label": n % 4 != 2, "by": "ann"} for n in range(40)
    ]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))
    done = call("calibrate", tmp_path / "labels.jsonl", "--verdicts", verdicts, "--format", "json")
    assert done.exit_code == 0, done.stderr
    found = {(each["rubric"], each["metric"]): each for each in json.loads(done.stdout)}
    assert found["parcel", "pass"]["raw_agreement"]["value"] == 0.75
    assert found["parcel", "brief"]["kappa"]["value"] == 1.0


def test_simulate_raises_its_alert(call, config, tmp_path, verdicts):
    past, begin_ns = tmp_path / "past.jsonl", 1_795_250_400 * 10**9
    lines = [json.loads(line) for line in verdicts.read_text().splitlines()] * 10
    dated = (
        each | {"case_id": f"c{n}", "created_at": iso_time(begin_ns + n * 12 * 10**9)} for n, each in enumerate(lines)
    )
    past.write_text("".join(json.dumps(each) + "\n" for each in dated))
    alerts = {"min_samples": 5, "hysteresis": {"needed": 1, "looks": 1}}
    done = call("simulate", config(alerts=alerts), "--verdicts", past, "--since", "2h")
    assert done.exit_code == 0, done.stderr
    assert re.search(r"pass_rate_critical +critical.*parcel", done.stdout)


def test_test_puts_tests_to_an_agent_and_judges_by_it(call, config, tmp_path, monkeypatch):
    (tmp_path / "parcel_bot.py").write_text("def ask(text):\n    return 'It is on its way to ' + text\n")
    (tmp_path / "set.yaml").write_text("tests:\n  - {id: a, input: Bern}\n  - {id: b, input: a guarantee}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    done = call(
        "test", "set.yaml", "--agent", "python:parcel_bot:ask", "--rubric", "parcel", "--config", config(),
        "--format", "json",
    )  # fmt: skip
    assert done.exit_code == 1, done.stderr
    found = json.loads(done.stdout)
    assert (found["passed"], [each["test"]["id"] for each in found["failures"]]) == (1, ["b"])
    assert found["dimension_averages"] == {"parcel_says_way": 1.0, "parcel_brief": 1.0, "parcel_no_promise": 0.5}


def test_backfill_writes_its_scores_to_past_traces(call, config, tmp_path):
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as server:
        traffic = SampleTraffic(1)
        for number in range(3):
            body = traffic.next((1_795_000_000 + number) * 10**9, wrong=0.3).body
            observations_of(server).put(*rows_of(decode_spans(body)))
        keys = {"base_url": server.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
        path = config(
            routes=[{"rubrics": ["parcel"]}], sampling={"rate": 1.0}, store={"path": str(tmp_path / "state.sqlite")},
            sinks={"langfuse": {**keys, "requests_per_minute": 60_000}},
        )  # fmt: skip
        done = call(
            "backfill", path, "--from", "2026-11-01", "--to", "2026-12-01T00:00Z", "--yes",
            "--state", tmp_path / "job.sqlite",
        )  # fmt: skip
        assert done.exit_code == 0, done.stderr
        names = {each["name"] for each in server.scores.stored()}
    assert {"parcel_pass", "parcel_says_way", "parcel_brief"} <= names
