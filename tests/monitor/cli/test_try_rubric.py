"""``sidejudge try``: each step of judging one case is shown, with a real judge's protocol in between."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from sidejudge.integrations.otlp.wire.encode import encode_spans
from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.cli.try_rubric import try_rubric
from tests.fakes.openai import Provider, states
from tests.forked import sidejudge
from tests.needs import LITELLM

CONFIG = """
evaluators:
  judge: {{model: openai/judge-2026-01-01, api_base: "{url}", retries: 0, api_key: sk-test}}
rubrics:
  own:
    metrics:
      - {{id: way, check: {{contains: way}}, weight: 0.5}}
      - {{id: polite, ask: "Is {{{{output}}}} polite to who wrote {{{{input}}}}?", weight: 0.5}}
"""
JUDGES = """  judges:
    strong: {{model: openai/strong-2026-01-01}}
  cascade: {{rate: 1.0}}
rubrics:
"""
CASES = [{"case_id": "1", "input": "where?", "model_output": "On its way."}, {"case_id": "2", "model_output": "No."}]


def answers(value):
    """A judge that answers all questions alike."""

    def text(messages):
        requested = messages[-1]["content"]
        ids = re.findall(r"^id: (\S+)\nmetric: (\S+)", requested, re.MULTILINE)
        found = [{"id": id_, "metric": metric, "answer": value, "reason": "as it says"} for id_, metric in ids]
        return json.dumps({"answers": found})

    return states(text)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)))
    return tmp_path


def tried(folder, provider, config=CONFIG):
    (folder / "sidejudge.yaml").write_text(config.format(url=provider.url))
    return sidejudge("try", "own", "cases.jsonl", "--config", "sidejudge.yaml", cwd=folder)


@LITELLM.mark
def test_prompt_raw_answer_value_and_verdict_are_shown(folder):
    with Provider(answers(value=True)) as provider:
        done = tried(folder, provider)
    assert done.returncode == 0, done.stderr
    for shown in (
        'Is "model_output" polite to who wrote "input"?', "where?", "raw answer of openai/judge-2026-01-01 (used)",
        '"answer": true', "as it says", "composite 1.000, passed",
    ):  # fmt: skip
        assert shown in done.stdout


@LITELLM.mark
@pytest.mark.parametrize(("named", "asked"), [("strong", ["strong"]), ("[default, strong]", ["judge", "strong"])])
def test_the_judges_of_the_rubric_are_asked(folder, named, asked):
    config = CONFIG.replace("rubrics:\n", JUDGES).replace("    metrics:\n", f"    judge: {named}\n    metrics:\n")
    with Provider(answers(value=True)) as provider:
        done = tried(folder, provider, config)
    assert done.returncode == 0, done.stderr
    models = re.findall(r"raw answer of openai/(\w+)-2026-01-01 \(used\)", done.stdout)
    assert list(dict.fromkeys(models)) == asked


@LITELLM.mark
def test_an_answer_of_another_type_is_shown_and_not_used(folder):
    with Provider(answers(value="perhaps")) as provider:
        done = tried(folder, provider)
    assert done.returncode == 1, done.stderr
    assert "not used: parse_error" in done.stdout
    assert '"answer": "perhaps"' in done.stdout
    assert "neither passed nor failed" in done.stdout


def test_a_ready_rubric_is_tried_without_being_added_and_without_a_judge_what_would_be_asked_is_shown(folder):
    done = CliRunner().invoke(try_rubric, ["tone", str(folder / "cases.jsonl")], standalone_mode=False)
    assert "warm" in done.output
    assert "needs a judge" in done.output


def test_what_does_not_exist_is_named_with_what_is_near(folder):
    done = CliRunner().invoke(try_rubric, ["faithfulnes", str(folder / "cases.jsonl")], standalone_mode=False)
    assert "did you mean 'faithfulness'" in done.exception.remedy
    done = CliRunner().invoke(try_rubric, ["tone", str(folder / "cases.jsonl"), "--case", "9"], standalone_mode=False)
    assert "there is no case '9'" in str(done.exception)


def test_a_case_of_a_table_is_tried_and_so_is_one_behind_a_byte_order_mark(tmp_path):
    (tmp_path / "c.csv").write_text('case_id,model_output\n1,bad\n2,"good, or so"\n')
    (tmp_path / "c.jsonl").write_text('\ufeff{"case_id": "2", "model_output": "good"}\n')
    config = tmp_path / "sidejudge.yaml"
    config.write_text("rubrics: {says: {metrics: [{id: good, check: {contains: good}}]}}\n")
    for name in ("c.csv", "c.jsonl"):
        call = ["says", str(tmp_path / name), "--case", "2", "--config", str(config)]
        assert "composite 1.000, passed" in CliRunner().invoke(try_rubric, call, standalone_mode=False).output, name
    (tmp_path / "c.csv").write_text("case_id,model_output\n1,good, or so\n")
    call = ["says", str(tmp_path / "c.csv"), "--config", str(config)]
    done = CliRunner().invoke(try_rubric, call, standalone_mode=False)
    assert "line 2: has 3 cells for 2 columns" in str(done.exception)


def test_a_case_is_held_to_the_scenario_of_its_route(tmp_path):
    (tmp_path / "cases.jsonl").write_text(json.dumps({"case_id": "1", "model_output": "x", "tools_used": []}))
    (tmp_path / "sidejudge.yaml").write_text(
        "routes: [{rubrics: [workflow], scenario: s}]\nscenarios: {s: {tools_should_include: [look]}}\n"
    )
    call = ["workflow", str(tmp_path / "cases.jsonl"), "--config", str(tmp_path / "sidejudge.yaml")]
    assert "missing: look" in CliRunner().invoke(try_rubric, call, standalone_mode=False).output


def test_a_trace_of_a_monitor_is_judged_with_its_spans_and_as_its_case_where_these_are_not_given(monitor_at):
    trace, steps = "ab" * 16, [{"gen_ai.operation.name": "chat", "error.type": "TimeoutError"}] * 2
    spans = [
        RawSpan(
            trace_id=trace, span_id=f"{n:016x}", parent_id=None if n == 1 else f"{1:016x}", name="step", start_ns=n,
            end_ns=n + 1, attributes=attributes,
        )
        for n, attributes in enumerate([{"gen_ai.operation.name": "invoke_agent"}, *steps], 1)
    ]  # fmt: skip
    case = {"case_id": trace, "trace_id": trace, "model_output": "On its way.", "agents_called": ["support"]}
    answers = {f"/v1/traces/{trace}": {"verdicts": [], "case": case}}
    tried = [
        CliRunner().invoke(try_rubric, ["run_health", trace.upper(), "--url", monitor_at(each)])
        for each in (answers, answers | {f"/v1/traces/{trace}/spans": encode_spans(spans)})
    ]
    assert [re.search(r"step_success +(\S+)", done.output)[1] for done in tried] == ["not_applicable", "0"]
