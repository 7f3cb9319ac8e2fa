"""Conditions in CEL: types are checked before anything runs, what is not known is unavailable, nothing hangs."""

from __future__ import annotations

import time

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Failed, Scored, Unavailable
from sidejudge.scoring.trace.span import ToolCall

pytest.importorskip("cel_expr_python")
from sidejudge.scoring.declared.cel import VIEW, CelError, compile_cel

TOOLS = (ToolCall(name="lookup_order", arguments={"id": 7}), ToolCall(name="refund", arguments={"amount": 20}))
CASE = Case(
    case_id="c", model_output='{"answer": "on its way"}', input="money back", tools_used=TOOLS, agents_called=("desk",),
    metadata={"plan": "pro", "nested": {"a": [1, None]}}, context=("a", "b"), cost_usd=0.002, latency_e2e_ms=1200.0,
    input_tokens=100, output_tokens=20, session_id="s1", expected_outcome="refund",
)  # fmt: skip


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("!tools.exists(t, t.name == 'refund') || tools.exists(t, t.name == 'lookup_order')", 1.0),
        ("tools.exists(t, t.name == 'refund' && t.arguments.amount > 50)", 0.0),
        ("tools.all(t, t.error == '')", 1.0),
        ("output.contains('way') && input.startsWith('money')", 1.0),
        ("output_json.answer == 'on its way'", 1.0),
        ("metadata.plan == 'pro' && !has(metadata.trial)", 1.0),
        ("'desk' in agents", 1.0),
        ("cost_usd < 0.001", 0.0),
        ("duration < duration('2s')", 1.0),
        ("tokens.total", 120.0),
        ("size(context)", 2.0),
        ("double(tokens.output) / double(tokens.total)", 20 / 120),
        ("expected == 'refund'", 1.0),
        ("output.matches('(a?){195}b')", 0.0),
        ("session == 's1' && size(errors) == 0", 1.0),
    ],
)
def test_a_condition_is_decided_as_cel_says(source, value):
    found = compile_cel(source).measure(CASE)
    assert isinstance(found, Scored)
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("source", "stated"),
    [
        ("toolz.exists(t, true)", "line 1, column 1: there is no name 'toolz'; did you mean tools"),
        ("input + 3 == 'x'", "line 1, column 7: found no matching overload"),
        ("1 +", "line 1, column 4: Syntax error: something is missing at the end"),
        ("size(output > 3", r"Syntax error: '\)' is missing at the end"),
        ("output = 'x'", "line 1, column 8: Syntax error at '=': write =="),
        ("output == 'x' and input == 'y'", "Syntax error at 'and': write &&"),
        ("not output", "Syntax error at 'output'"),
        ("true &&\n cost_usd < 'a'", "line 2, column 11"),
        ("output", "gives a string"),
        ("", "1 to 4000 characters"),
        ("x" * 5000, "1 to 4000 characters"),
    ],
)
def test_a_mistake_is_found_before_anything_runs_and_has_a_place(source, stated):
    with pytest.raises(CelError, match=stated):
        compile_cel(source)


@pytest.mark.parametrize(
    ("source", "about"),
    [
        ("cost_usd < 1.0", {}),
        ("size(tools) > 0", {}),
        ("size(tools) > 0", {"tools_used": TOOLS, "complete": False}),
        ("size(spans) > 0", {}),
        ("expected == 'x'", {}),
        ("output_json.a == 1", {"model_output": "no JSON"}),
        ("size(output) > 0", {"model_output": "x" * 1_000_001}),
    ],
)
def test_a_condition_on_what_is_not_known_is_unavailable(source, about):
    assert isinstance(compile_cel(source).measure(Case(**{"case_id": "c", "model_output": None, **about})), Unavailable)


@pytest.mark.parametrize(
    "source",
    [
        "tokens.input + tokens . output < 9 && agents.all(a, a != '')",
        "agents.all(a, a != 'context')",
        'agents.all(a, a != """the "input" \\""" context""") && true',
        "agents.all(a, a != r'''\\d input''')",
        "agents.all(a, true) // isn't it about the input?\n && tokens.total > 0",
        "agents[0].size() == 4 // spans",
        "'desk' in agents",
    ],
)
def test_a_field_or_a_word_in_a_text_or_a_comment_is_no_name_that_has_to_be_known(source):
    case = Case(case_id="c", model_output=None, agents_called=("desk",), input_tokens=1, output_tokens=2)
    assert compile_cel(source).measure(case) == Scored(value=1.0)
    assert isinstance(compile_cel(source.replace("agents", ".agents", 1)).measure(case), Scored)
    assert isinstance(compile_cel(f"({source}\n) && input == ''").measure(case), Unavailable)


@pytest.mark.parametrize(
    ("source", "about"),
    [
        ("metadata.missing == 1", {}),
        ("tools[9].name == 'x'", {"tools_used": TOOLS}),
        ("metadata.n > 1", {"metadata": {"n": 10**30}}),
        ("context.all(a, context.all(b, context.all(c, context.all(d, a != ''))))", {"context": ("x",) * 40}),
    ],
)
def test_a_condition_that_cannot_be_decided_fails_alone_and_soon(source, about):
    program = compile_cel(source)
    before = time.process_time()  # others may use the machine
    assert isinstance(program.measure(Case(case_id="c", model_output="x", **about)), Failed)
    assert time.process_time() - before < 1.0


@pytest.mark.parametrize(
    "source",
    [
        "tools.map(t, output + input + output).size() > 0",
        "tools.all(t, size(output + t.name) > 0)",
        "tools.exists(t, tools . exists_one (u, t.name + u.name == '+'))",
    ],
)
def test_what_a_trace_holds_does_not_decide_how_much_memory_a_loop_takes(source):
    many = tuple(ToolCall(name=f"tool {n}") for n in range(2_000))
    large = Case(case_id="c", model_output="y" * 900_000, input="z" * 900_000, tools_used=many)
    found = compile_cel(source).measure(large)
    assert isinstance(found, Unavailable)
    assert "joins more than 20000000 characters in loops" in str(found.reason)
    assert isinstance(compile_cel(source).measure(CASE), Scored)


def test_a_loop_that_joins_nothing_may_look_at_all_of_it():
    many = tuple(ToolCall(name=f"tool {n}") for n in range(2_000))
    large = Case(case_id="c", model_output="y" * 900_000, tools_used=many)
    assert isinstance(compile_cel("tools.all(t, t.name != 'a+b' && output != '')").measure(large), Scored)


def test_every_name_of_the_view_has_a_meaning_and_can_be_used():
    for name, variable in VIEW.items():
        assert variable.meaning
        compile_cel(f"dyn({name}) != null")
