"""The span tree: what opens below a span, and how much of it at most."""

from __future__ import annotations

import pytest
import yaml

from sidejudge.dashboards.pages.span_tree import MOST, signs_of, span_tree
from sidejudge.dashboards.pages.trace_page import regression_test_text, scenario_text
from sidejudge.monitor.config import load
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.trace.span import Message, Span, SpanKind, ToolCall, Usage
from sidejudge.scoring.trace.trace import Trace


def whole(*spans: Span) -> Trace:
    return Trace.of("1" * 32, spans, "root_ended")


def a_span(number: int, **more: object) -> Span:
    return Span(
        trace_id="1" * 32, span_id=f"{number:016x}", parent_id=None, name=f"s{number}", dialect="genai",
        start_ns=0, end_ns=1, **{"kind": SpanKind.LLM, **more},
    )  # fmt: skip


def test_messages_tokens_and_cost_of_a_model_call_are_shown() -> None:
    asked = Message(role="user", text="Where?")
    called = Message(role="assistant", tool_calls=(ToolCall(name="find", arguments={"a": 1}),))
    tree = span_tree(
        whole(a_span(1, input_messages=(asked,), output_messages=(called,), cost_usd=0.002, finish_reason="tool_calls",
                      usage=Usage(input=1200, output=30)))
    )  # fmt: skip
    assert tree is not None
    assert tree.rows[0].call == [("user", "Where?"), ("assistant", 'find({"a": 1})')]
    assert tree.rows[0].facts == [
        ("tokens in", "1,200"), ("tokens out", "30"), ("cost", "$0.002"), ("stopped", "tool_calls"),
    ]  # fmt: skip


def test_a_span_without_messages_shows_its_input_and_output() -> None:
    tree = span_tree(whole(a_span(1, kind=SpanKind.CHAIN, input="a", output={"b": 2})))
    assert tree is not None
    assert tree.rows[0].call == [("input", "a"), ("output", '{"b": 2}')]


def test_the_texts_of_all_spans_together_are_bounded() -> None:
    tree = span_tree(whole(*(a_span(number, input="x" * 5000) for number in range(1, 200))))
    assert tree is not None
    assert sum(len(text) for row in tree.rows for _, text in row.call) <= 153_000
    assert len(tree.rows) == 199


def test_a_run_as_a_scenario_is_one_that_the_configuration_takes(tmp_path) -> None:
    calls = (ToolCall(name="find: x"), ToolCall(name="refund"), ToolCall(name="refund"))
    text = scenario_text(Case(case_id="c", model_output="x", name="refund #1", agents_called=("a",), tools_used=calls))
    (tmp_path / "c.yaml").write_text("scenarios:\n" + "".join(f"  {line}\n" for line in text.splitlines()))
    (scenario,) = load(tmp_path / "c.yaml", {}).scenarios.values()
    assert scenario["max_calls"] == {"find: x": 1, "refund": 2}
    assert scenario["agents_should_include"] == ["a"]


@pytest.mark.parametrize("name", ["ä\x85b", "it's\u2028so", "\u2029"])
def test_what_is_copied_has_the_names_of_the_trace_whatever_breaks_stand_in_them(name) -> None:
    case = Case(case_id="c", model_output="x", input=name, name=name, agents_called=(name,))
    assert yaml.safe_load(scenario_text(case)) == {name: {"agents_should_include": [name]}}
    assert yaml.safe_load(regression_test_text(case, [{"passed": False, "scores": []}]))[0]["input"] == name


def test_a_run_without_agents_and_tools_is_no_scenario() -> None:
    assert scenario_text(Case(case_id="c", model_output="x")) == ""


def test_what_a_verdict_found_wrong_stands_at_its_span_however_many_spans_there_are() -> None:
    error = {"span_id": f"{900:016x}", "category": "planning", "impact": "high", "evidence": "Leaves it out.",
             "quotation": "the plan is"}  # fmt: skip
    sign = {"metric": "sound_steps", "span_id": f"{900:016x}", "sign": "planning error, high impact"}
    verdict = {"signs": [sign], "scores": [{"metric": "sound_steps", "details": {"findings": [error]}}]}
    tree = span_tree(whole(*(a_span(number) for number in range(1, 1000))), signs_of([verdict, {"signs": "x"}]))
    assert tree is not None
    assert len(tree.rows) == MOST + 1
    assert tree.more == 999 - MOST - 1
    assert tree.rows[-1].signs == ["sound_steps: planning error, high impact: Leaves it out. “the plan is”"]
