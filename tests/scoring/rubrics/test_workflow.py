"""workflow: what no golden story tells of seed 003, and the extensions of rubrics §10."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.rubrics.workflow_sides import validate
from sidejudge.scoring.scenario.scenario import Side
from sidejudge.scoring.trace.span import SpanKind, ToolCall, Unread
from sidejudge.scoring.verdict.verdict import State
from tests.spans import span, trace

RUBRIC = RUBRICS["workflow"]
AT = "2026-01-01T00:00:00Z"
SEED = {
    "agents_should_include": ["research"],
    "agents_should_exclude": ["clarification"],
    "tools_should_include": ["pdf_retrieval"],
    "tools_should_exclude": ["web_search"],
}


def call(name, **more):
    return ToolCall(name=name, **more)


def case(scenario, agents=("orchestrator", "research"), tools=("pdf_retrieval",), **more):
    called = None if tools is None else tuple(tool if isinstance(tool, ToolCall) else call(tool) for tool in tools)
    return Case(
        case_id="c", **{"model_output": "done", **more}, scenario=scenario, agents_called=agents, tools_used=called
    )


def verdict(about):
    return score(about, RUBRIC, created_at=AT)


def outcome(metric, about):
    result = next(s for s in verdict(about).scores if s.metric == metric).result
    return (result.status, getattr(result, "value", None))


def test_the_failing_example_needs_to_know_nothing_of_agents():
    found = verdict(case({"tools_should_include": ["pdf_retrieval", "web_search"]}, agents=None))
    assert found.passed is False
    assert found.extra["workflow"]["agents"]["pass"] is True


def test_the_metrics_details_are_the_sides_of_the_seeds_object():
    found = verdict(case(SEED))
    details = {s.metric: s.result.details for s in found.scores[:2]}
    assert details == {side: found.extra["workflow"][side] for side in ("agents", "tools")}


@pytest.mark.parametrize(
    ("side", "called", "missing", "unexpected"),
    [
        (Side(include=("a",), closed=True), ["a", "b"], [], ["b"]),
        (Side(include=("a",), closed=False), ["a", "b"], [], []),
        (Side(include=("a",), exclude=("b",), closed=False), ["a", "b"], [], ["b"]),
        (Side(include=("a",), exclude=("b",), closed=True), ["b"], ["a"], ["b"]),
        (Side(include=("orchestrator",), closed=True), [], [], []),  # always expected: never missing
        (Side(closed=True), ["orchestrator"], [], []),  # and never unexpected
        (Side(closed=True), ["x", "x"], [], ["x"]),  # distinct names
        (Side(include=("a",), closed=True, always=()), ["a", "orchestrator"], [], ["orchestrator"]),
    ],
)
def test_missing_and_unexpected_follow_from_what_is_named(side, called, missing, unexpected):
    found = validate(side, called)
    assert (found["missing"], found["unexpected"]) == (missing, unexpected)
    assert found["pass"] is (not missing and not unexpected)


def test_a_handoff_is_not_a_tool_called():
    about = case(
        {"tools_should_include": ["pdf_retrieval"]}, tools=["pdf_retrieval", call("transfer_to_x", handoff=True)]
    )
    assert verdict(about).passed


@pytest.mark.parametrize(("tools", "good"), [("abc", 1), ("axbyc", 1), ("acb", 0), ("ab", 0), ("cabc", 1)])
def test_order_allows_other_calls_in_between(tools, good):
    about = case({"tools_in_order": ["a", "b", "c"]}, tools=list(tools))
    assert outcome("order", about) == ("scored", good)
    assert verdict(about).passed is bool(good)


@pytest.mark.parametrize(
    ("limits", "good"),
    [({"a": 2}, 1), ({"a": 1}, 0), ({"*": 3}, 1), ({"*": 2}, 0), ({"b": 0}, 0), ({"z": 0}, 1), (3, 1), (2, 0)],
)
def test_call_budgets_hold_per_tool_and_for_all(limits, good):
    about = case({"max_calls": limits}, tools=["a", "a", "b"])
    assert outcome("call_budget", about) == ("scored", good)
    assert verdict(about).extra["workflow"]["pass"] is bool(good)


@pytest.mark.parametrize(
    ("expected", "given", "good"),
    [
        ({"lang": "en"}, {"lang": "en", "more": 1}, 1),
        ({"lang": "en"}, {"lang": "EN"}, 0),
        ({"lang": "en"}, {}, 0),
        ({"n": 2}, {"n": True}, 0),
        ({"q": {"matches": "(?i)sql"}}, {"q": "text-to-SQL"}, 1),
        ({"q": {"matches": "^sql$"}}, {"q": "text-to-sql"}, 0),
        ({"q": {"matches": "x"}}, {"q": 7}, 0),
        ({"q": {"matches": "a"}}, {"q": "a" * 5000}, 0),
        ({"k": {"schema": {"type": "integer", "maximum": 5}}}, {"k": 5}, 1),
        ({"k": {"schema": {"type": "integer", "maximum": 5}}}, {"k": 6}, 0),
    ],
)
def test_arguments_are_held_against_value_pattern_or_schema(expected, given, good):
    about = case({"arguments": {"t": expected}}, tools=[call("t", arguments=given), call("other", arguments={})])
    assert outcome("arguments", about) == ("scored", good)


@pytest.mark.parametrize(
    "expected",
    [
        {"matches": "(x{0,30}){0,30}y"},
        {"schema": {"pattern": "(x{0,30}){0,30}y"}},
        {"schema": {"items": {"enum": list(range(400))}}},
    ],
)
def test_arguments_that_would_take_too_long_to_check_are_not_checked(expected):
    argument = [4_000] * 8_000 if "items" in expected.get("schema", {}) else "x" * 4_000
    tools = [call("t", arguments={f"a{n}": argument for n in range(10)}) for _ in range(20)]
    about = case({"arguments": {"t": {f"a{n}": expected for n in range(10)}}}, tools=tools)
    before = time.process_time()
    found = {line.metric: line.result for line in verdict(about).scores}["arguments"]
    assert found.status == "error"
    assert "steps, at most" in found.reason
    assert time.process_time() - before < 10  # unbounded the last takes minutes


def test_every_call_of_a_tool_must_have_its_arguments():
    about = case({"arguments": {"t": {"a": 1}}}, tools=[call("t", arguments={"a": 1}), call("t", arguments={"a": 2})])
    assert outcome("arguments", about) == ("scored", 0)


def test_unknown_arguments_leave_the_verdict_incomplete_and_a_breach_decides_all_the_same():
    scenario = {"arguments": {"t": {"a": 1}}}
    assert verdict(case(scenario, tools=["t"])).state is State.INCOMPLETE
    assert "workflow" not in verdict(case(scenario, tools=["t"])).extra
    assert verdict(case(scenario, tools=["t", call("t", arguments={"a": 2})])).passed is False


def test_a_tool_that_was_not_called_has_no_arguments_to_hold_against_it():
    assert outcome("arguments", case({"arguments": {"t": {"a": 1}}}, tools=["x"]))[0] == "not_applicable"


SEARCH = call("search", arguments={"q": "best text-to-SQL model"}, result={"text": "DIN-SQL reaches 85.3 on Spider"})


@pytest.mark.parametrize(
    ("output", "good"),
    [
        ("The best model, DIN-SQL, reaches 85.3% execution accuracy.", 1),
        ("DIN-SQL reaches high accuracy on the Spider benchmark.", 1),
        ("The best text-to-SQL model is a model for SQL.", 0),
        ("I do not know.", 0),
        ({"answer": "८५.३ percent"}, 1),
    ],
)
def test_a_result_is_used_when_something_that_only_it_brought_in_shows(output, good):
    about = case({"result_use": ["search"]}, tools=[SEARCH], model_output=output, input="Which is the best model?")
    assert outcome("result_use", about) == ("scored", good)


@pytest.mark.parametrize(
    ("tools", "status"),
    [
        ([call("search")], "unavailable"),
        ([call("search", error="timeout")], "not_applicable"),
        (["other"], "not_applicable"),
        (None, "unavailable"),
    ],
)
def test_a_result_that_is_unknown_is_not_held_against_the_output(tools, status):
    assert outcome("result_use", case({"result_use": ["search"]}, tools=tools))[0] == status


HANDOFF = call("transfer_to_x", handoff=True, arguments={"why": "y"})


@pytest.mark.parametrize(
    ("scenario", "metric", "good"),
    [
        ({"tools_should_exclude": ["transfer_to_x"]}, "tools", 0),
        ({"tools_should_include": ["transfer_to_x", "t"]}, "tools", 1),
        ({"tools_should_include": ["t"]}, "tools", 1),
        ({"tools_in_order": ["transfer_to_x", "t"]}, "order", 1),
        ({"max_calls": {"transfer_to_x": 0}}, "call_budget", 0),
        ({"max_calls": 1}, "call_budget", 1),
        ({"arguments": {"transfer_to_x": {"why": "z"}}}, "arguments", 0),
    ],
)
def test_a_handoff_counts_as_a_tool_where_the_scenario_names_it(scenario, metric, good):
    about = case(scenario, tools=[HANDOFF, "t"])
    assert outcome(metric, about) == ("scored", good)


@pytest.mark.parametrize(
    ("scenario", "metric", "good"),
    [
        ({"tools_should_include": ["find_order", "t"]}, "tools", 1),
        ({"tools_should_include": ["find_order", "refund"]}, "tools", 0),
        ({"tools_should_include": ["mcp__shop__find_order", "t"]}, "tools", 1),
        ({"tools_should_include": ["mcp__depot__find_order"], "closed": False}, "tools", 0),
        ({"tools_should_include": ["order"], "closed": False}, "tools", 0),
        ({"tools_should_exclude": ["find_order"]}, "tools", 0),
        ({"tools_should_exclude": ["find_order"], "tools_may_include": ["mcp__shop__find_order", "t"]}, "tools", 1),
        ({"tools_in_order": ["find_order", "t"]}, "order", 1),
        ({"before": [["t", "find_order"]]}, "order", 0),
        ({"max_calls": {"find_order": 0}}, "call_budget", 0),
        ({"arguments": {"find_order": {"order": "A-18"}}}, "arguments", 0),
    ],
)
def test_a_tool_behind_its_server_s_name_is_meant_by_its_own(scenario, metric, good):
    about = case(scenario, tools=[call("mcp__shop__find_order", arguments={"order": "A-17"}), "t"])
    assert outcome(metric, about) == ("scored", good)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ('{"q": "sql"}', ("scored", 1)),
        ('{"q": "x"}', ("scored", 0)),
        ("{}", ("scored", 0)),
        ('{"q": "sql", "more": "cut at the lim', ("unavailable", None)),
        ("sql", ("unavailable", None)),
        ('"sql"', ("unavailable", None)),
        (["sql"], ("unavailable", None)),
    ],
)
def test_arguments_are_read_by_name_also_as_json_text_and_not_known_where_they_have_none(given, found):
    for asked in (
        {"arguments": {"t": {"q": "sql"}}},
        {"arguments_schema": {"t": {"properties": {"q": {"const": "sql"}}, "required": ["q"]}}},
    ):
        assert outcome("arguments", case(asked, tools=[call("t", arguments=given)])) == found
    broken = case({"arguments": {"t": {"q": "sql"}}}, tools=[call("t", arguments=given), call("t", arguments={})])
    assert verdict(broken).passed is False, "what another call proves stays so"


PARIS = "Paris is the beautiful capital city of France on the Seine"


@pytest.mark.parametrize(
    ("result", "output", "status", "good"),
    [
        (PARIS, "Paris.", "scored", 1),
        (PARIS, "It is the city of PARIS", "scored", 1),
        (PARIS, "The capital of France is Lyon.", "scored", 0),  # both words stand in the question
        (PARIS, "I do not know.", "scored", 0),
        (PARIS, "", "scored", 0),
        ('{"city": "Paris"}', "Paris", "scored", 1),
        ('{"city": "Paris"}', "It is a city.", "scored", 0),
        ({"n": 7}, "7", "scored", 1),
        ({"n": 7}, "8", "scored", 0),
        ("UK", "In the UK.", "scored", 1),
        ("the capital of France", "Paris.", "unavailable", None),
        ({"ok": True, "status": "ok"}, "Done.", "unavailable", None),
        ("", "Paris.", "unavailable", None),
        ("巴黎是法国的首都", "巴黎。", "scored", 1),
        ("巴黎是法国的首都", "不知道，抱歉。", "scored", 0),
    ],
)
def test_one_distinctive_word_shows_that_a_result_was_used(result, output, status, good):
    about = case(
        {"result_use": ["t"]},
        tools=[call("t", result=result)],
        model_output=output,
        input="What is the capital of France?",
    )
    assert outcome("result_use", about) == (status, good)


def test_a_result_that_was_certainly_not_used_decides_beside_one_that_cannot_be_told():
    tools = [call("t", result=True), call("u", result=PARIS)]
    assert outcome("result_use", case({"result_use": ["t", "u"]}, tools=tools, model_output="no")) == ("scored", 0)


def test_a_verdict_stays_small_whatever_the_names():
    names = [f"{n}{'x' * 20_000}" for n in range(300)]
    scenario = {
        "tools_should_include": names, "tools_in_order": names, "max_calls": dict.fromkeys(names[150:], 0),
        "arguments": {name: {name: 1} for name in names[150:]}, "result_use": names, "agents_should_include": names,
    }  # fmt: skip
    tools = [call(name, arguments={}, result="Paris") for name in names[150:]]
    assert len(str(verdict(case(scenario, agents=tuple(names[150:]), tools=tools)).to_json())) < 150_000


def test_extensions_that_the_scenario_does_not_ask_for_are_not_applicable():
    for metric in ("order", "call_budget", "arguments", "result_use"):
        assert outcome(metric, case(SEED)) == ("not_applicable", None)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        (case(SEED, complete=False, completion="pressure"), "incomplete (pressure)"),
        (case(None), "no scenario"),
        (case("unknown_name"), "'unknown_name'"),
        (case({"tools_shuld_include": []}), "did you mean tools_should_include?"),
        (case(SEED, agents=None), "agents_called is not known"),
        (case(SEED, tools=None), "tools_used is not known"),
    ],
)
def test_what_cannot_be_told_neither_passes_nor_fails(about, why):
    found = verdict(about)
    assert (found.state, found.passed, found.composite) == (State.INCOMPLETE, None, None)
    assert why in found.reason
    assert "workflow" not in found.extra


NAMES = st.lists(st.sampled_from("abcd"), max_size=5)


@given(NAMES, NAMES, NAMES, st.booleans())
def test_included_missing_and_excluded_divide_what_is_named(include, exclude, called, closed):
    side = Side(include=tuple(dict.fromkeys(include)), exclude=tuple(dict.fromkeys(exclude)), closed=closed, always=())
    found = validate(side, called)
    assert set(found["included"]) | set(found["missing"]) == set(include)
    assert not set(found["included"]) & set(found["missing"])
    assert set(found["excluded"]) == set(exclude) - set(called)
    assert set(found["unexpected"]) <= set(called)
    assert found == validate(side, called * 2)


# -- traces in which not everything was understood


def traced(*spans, scenario=SEED):
    made = [span(**{"parent_id": "root", "start_ns": at, "end_ns": at + 1, **each}) for at, each in enumerate(spans)]
    return replace(extract(trace(*made)), scenario=scenario)


ROOT = {
    "span_id": "root",
    "parent_id": None,
    "name": "handle",
    "kind": SpanKind.AGENT,
    "agent": "research",
    "output": "x",
}
MODEL = {"span_id": "m", "name": "chat", "kind": SpanKind.LLM, "output": "30 days"}
SEARCHED = {"span_id": "t", "name": "x", "kind": SpanKind.TOOL, "tool": ToolCall(name="pdf_retrieval", result="x")}


@pytest.mark.parametrize("name", ["GET /health", "pdf_retrieval", "handle_request"])
def test_where_nothing_was_recognised_nothing_is_held_against_it(name):
    found = verdict(traced({"span_id": "root", "parent_id": None, "name": name, "kind": SpanKind.OTHER}))
    assert (found.state, found.passed, found.violations) == (State.INCOMPLETE, None, ())
    assert {score.result.status for score in found.scores if score.weight} == {"unavailable"}


def test_nor_against_one_call_of_a_tool_whose_caller_is_elsewhere():
    assert verdict(traced({**SEARCHED, "parent_id": None})).passed is None


def test_what_was_recognised_is_held_against_it():
    assert verdict(traced(ROOT, SEARCHED)).passed is True
    missed = verdict(traced(ROOT, MODEL))
    assert (missed.passed, missed.violations) == (False, ("tools_missing",))


@pytest.mark.parametrize(
    ("name", "kind", "passed"),
    [
        ("pdf_retrieval", SpanKind.OTHER, None),
        ("tool: pdf-retrieval", SpanKind.OTHER, None),
        ("execute_tool PDF_Retrieval", SpanKind.CHAIN, None),
        ("pdf_retrieval_index", SpanKind.OTHER, None),
        ("pdf_retrievals", SpanKind.OTHER, False),
        ("pdf", SpanKind.OTHER, False),
        ("pdf_retrieval", SpanKind.LLM, False),
    ],
)
def test_a_tool_is_not_missing_where_a_step_of_its_name_was_not_understood(name, kind, passed):
    step = {"span_id": "s", "name": name, "kind": kind}
    assert verdict(traced(ROOT, MODEL, step)).passed is passed
    for asked in ({"tools_in_order": ["pdf_retrieval"]}, {"min_calls": {"pdf_retrieval": 1}}):
        assert (
            verdict(traced(ROOT, MODEL, step, scenario={"agents_should_include": ["research"], **asked})).passed
            is passed
        )
    proven = {**SEED, "agents_should_exclude": ["research"], "agents_should_include": []}
    assert verdict(traced(ROOT, SEARCHED, step, scenario=proven)).passed is False, "what is proven stays so"


def test_nor_where_a_models_answer_was_not_understood():
    for field, passed in (("output", None), ("", None), ("input", False)):
        unread = Unread(source="my.completion", shape="object with x", field=field)
        answer = "30 days" if field == "input" else None
        assert (
            verdict(traced(ROOT, MODEL, {**MODEL, "span_id": "n", "output": answer, "unread": (unread,)})).passed
            is passed
        )


@pytest.mark.parametrize(("field", "passed"), [("output", None), ("input", True)])
@pytest.mark.parametrize(
    "asked",
    [
        {"tools_should_exclude": ["refund"]},
        {"tools_may_include": ["search"], "closed": True},
        {"max_calls": {"refund": 0}},
        {"arguments": {"refund": {"order": 7}}},
        {"result_use": ["refund"]},
        *({relation: [["verify", "refund"]]} for relation in ("before", "after", "not_after", "not_both")),
    ],
)
def test_nor_is_a_forbidden_call_ruled_out_there(asked, field, passed):
    unread = Unread(source="my.completion", shape="object with x", field=field)
    about = traced(ROOT, MODEL, {**MODEL, "span_id": "n", "output": "30 days", "unread": (unread,)}, scenario=asked)
    assert verdict(about).passed is passed


@pytest.mark.parametrize(("name", "passed"), [(None, None), ("writer", False), ("research", True)])
def test_nor_is_an_agent_without_a_name_within_anothers_run_one_that_may_run(name, passed):
    boss = span("a", None, SpanKind.AGENT, agent="boss", output="done")
    about = extract(trace(boss, span("b", "a", SpanKind.AGENT, agent=name, start_ns=1, end_ns=5)))
    asked = {"agents_may_include": ["boss", "research"], "closed": True}
    assert verdict(replace(about, scenario=asked)).passed is passed
    assert (
        verdict(replace(extract(trace(span("a", None, SpanKind.AGENT, output="done"))), scenario=asked)).passed is True
    ), "the application itself"


@pytest.mark.parametrize(("name", "passed"), [(None, None), ("writer", False)])
def test_an_agent_is_not_missing_where_one_ran_whose_name_the_trace_does_not_show(name, passed):
    ran = span("a", None, SpanKind.AGENT, name="agent.run", agent=name, output="done")
    about = replace(extract(trace(ran)), scenario={"agents_should_include": ["research"]})
    assert verdict(about).passed is passed
    left_out = {"agents_should_exclude": ["research"]}
    assert verdict(replace(about, scenario=left_out)).passed is (True if name else None)
    step = span("a", None, SpanKind.OTHER, name="Agent.run" if name is None else "agent writer")
    model = span("m", "a", SpanKind.LLM, output="done")
    about = replace(extract(trace(step, model)), scenario={"agents_should_include": ["research"]})
    assert verdict(about).passed is passed


def test_an_agent_is_not_missing_where_a_step_of_its_name_was_not_understood():
    root = {**ROOT, "agent": "orchestrator"}
    assert verdict(traced(root, SEARCHED)).passed is False
    assert verdict(traced(root, SEARCHED, {"span_id": "s", "name": "research", "kind": SpanKind.CHAIN})).passed is None


@pytest.mark.parametrize(
    ("name", "kind", "passed"),
    [
        ("web_search", SpanKind.OTHER, None),
        ("tool: web-search", SpanKind.CHAIN, None),
        ("web_searches", SpanKind.OTHER, True),
        ("web_search", SpanKind.LLM, True),
    ],
)
def test_an_excluded_tool_is_not_known_to_be_left_out_where_a_step_of_its_name_was_not_understood(name, kind, passed):
    assert verdict(traced(ROOT, SEARCHED, {"span_id": "s", "name": name, "kind": kind})).passed is passed


@pytest.mark.parametrize(
    "asked",
    [
        {"tools_should_exclude": ["web_search"], "closed": False},
        {"agents_should_exclude": ["sales"], "closed": False},
        {"max_calls": {"refund": 1}, "closed": False},
        {"not_both": [["approve", "reject"]], "closed": False},
        {"arguments": {"refund": {"sum": 1}}, "closed": False},
    ],
)
def test_what_shows_no_run_keeps_to_no_contract(asked):
    health = traced(
        {"span_id": "root", "parent_id": None, "name": "GET /health", "kind": SpanKind.OTHER}, scenario=asked
    )
    assert (verdict(health).state, verdict(health).passed) == (State.INCOMPLETE, None)
    assert verdict(traced(ROOT, SEARCHED, scenario=asked)).passed is True
    timed = {**asked, "max_seconds": 60}
    assert verdict(replace(health, scenario={"max_seconds": 60, "closed": False})).passed is True, "time shows"
    assert verdict(replace(health, scenario=timed)).passed is None


@pytest.mark.parametrize(("names", "passed"), [(("clerk", "clerk"), True), (("clerk", "web"), False)])
def test_an_agent_that_ran_alone_is_the_orchestrator_also_where_its_run_shows_as_steps(names, passed):
    run = {"span_id": "root", "parent_id": None, "name": "FunctionAgent.run", "kind": SpanKind.CHAIN, "output": "x"}
    step = {"name": "run_agent_step", "kind": SpanKind.CHAIN}
    steps = [{**step, "span_id": name + str(at), "agent": name} for at, name in enumerate(names)]
    about = traced(run, *steps, SEARCHED, scenario={"tools_should_include": ["pdf_retrieval"], "closed": True})
    assert verdict(about).passed is passed


def test_agents_that_follow_each_other_by_clocks_of_milliseconds_do_not_enclose_each_other():
    asked = {"agents_should_include": ["writer"], "tools_should_include": []}
    first = {"span_id": "f", "kind": SpanKind.AGENT, "agent": "intruder", "output": "x", "start_ns": 1, "end_ns": 2}
    second = {**first, "span_id": "s", "agent": "writer", "start_ns": 2, "end_ns": 3}
    top = {"span_id": "root", "parent_id": None, "kind": SpanKind.CHAIN, "end_ns": 9}
    assert verdict(traced(top, first, second, scenario=asked)).passed is False
    assert verdict(traced(top, first, {**second, "parent_id": "f"}, scenario=asked)).passed is True
    at_once = {**first, "end_ns": 1}, {**second, "parent_id": "f", "start_ns": 1, "end_ns": 1}
    assert verdict(traced(top, *at_once, scenario=asked)).passed is True


# -- what is proven, whatever else is unknown


def test_a_doubt_about_one_relation_leaves_what_calls_alone_break():
    step = {"span_id": "s", "name": "browse", "kind": SpanKind.OTHER}
    both = [{**SEARCHED, "span_id": name, "tool": call(name)} for name in ("approve", "reject")]
    lacking = {"any_of": [["search", "browse"]], "closed": False}
    for broken in ({"not_both": [["approve", "reject"]]}, {"not_after": [["approve", "reject"]]}):
        found = verdict(traced(ROOT, *both, step, scenario={**lacking, **broken}))
        assert (found.passed, "browse" in found.reason) == (False, False)
    assert verdict(traced(ROOT, *both, step, scenario=lacking)).passed is None
    assert verdict(traced(ROOT, *both, scenario=lacking)).passed is False


@pytest.mark.parametrize(
    ("asked", "more", "passed"),
    [
        ({"max_calls": {"t": 1}, "max_tokens": 9}, {}, False),
        ({"max_calls": {"t": 2}, "max_tokens": 9}, {}, None),
        ({"max_calls": {"t": 2}, "max_tokens": 9}, {"input_tokens": 10}, False),
        ({"max_seconds": 1, "max_tokens": 9}, {"latency_e2e_ms": 2_000}, False),
        ({"max_seconds": 1}, {"latency_e2e_ms": 2_000, "tools": None}, False),
        ({"max_seconds": 3}, {"latency_e2e_ms": 2_000, "tools": None}, True),
        ({"max_seconds": 3, "max_calls": {"t": 1}}, {"latency_e2e_ms": 2_000, "tools": None}, None),
    ],
)
def test_a_budget_that_is_exceeded_is_so_whatever_else_is_unknown(asked, more, passed):
    assert verdict(case({**asked, "closed": False}, **{"tools": ["t", "t"], **more})).passed is passed


def test_a_time_that_is_exceeded_by_little_reads_so():
    found = verdict(case({"max_seconds": 30, "closed": False}, tools=["t"], latency_e2e_ms=30_004))
    assert "30.004 s, at most 30" in found.reason


@pytest.mark.parametrize(
    ("asked", "metric"),
    [
        ({"tools_should_exclude": ["b"]}, "tools"),
        ({"agents_should_exclude": ["research"]}, "agents"),
        ({"not_both": [["a", "b"]]}, "order"),
        ({"not_after": [["a", "b"]]}, "order"),
        ({"max_calls": {"b": 0}}, "call_budget"),
        ({"arguments": {"b": {"n": 1}}}, "arguments"),
    ],
)
def test_what_part_of_a_trace_shows_of_a_breach_fails_it(asked, metric):
    cut = case(asked, tools=["a", call("b", arguments={"n": 2})], complete=False, completion="idle")
    found = verdict(cut)
    assert (found.state, found.passed, found.composite, found.blockers) == (State.DISQUALIFIED, False, None, (metric,))
    assert len(found.violations) == 1
    assert "workflow" not in found.extra


@pytest.mark.parametrize(
    "asked",
    [
        {"tools_should_include": ["c"]},
        {"tools_should_include": ["a"]},
        {"agents_should_include": ["sales"]},
        {"tools_in_order": ["b", "a"]},
        {"before": [["c", "b"]]},
        {"after": [["b", "c"]]},
        {"any_of": [["c", "d"]]},
        {"min_calls": {"b": 2}},
        {"max_calls": {"*": 1}},
        {"values_from": {"b": {"n": ["input"]}}},
        {"tools_should_exclude": ["c"]},
    ],
)
def test_what_the_rest_of_a_trace_may_mend_is_held_against_no_part_of_it(asked):
    cut = case(asked, tools=["a", call("b", arguments={"n": 2222})], complete=False, completion="idle")
    assert (verdict(cut).state, verdict(cut).passed) == (State.INCOMPLETE, None)


def test_one_side_that_is_broken_decides_though_nothing_is_known_of_the_other():
    found = verdict(case({**SEED, "agents_should_exclude": ["research"], "agents_should_include": []}, tools=None))
    assert (found.state, found.passed, found.blockers) == (State.DISQUALIFIED, False, ("agents",))
