"""Run health on runs with known faults: each fault lowers its own metric, names its span, and nothing else moves."""

from __future__ import annotations

import dataclasses
import json

import pytest
from msgspec.structs import replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.result.result import NotApplicable, Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.rubrics.open_verdict import open_verdict
from sidejudge.scoring.trace.span import Message, SpanKind, ToolCall, Unread, Usage
from tests.spans import span as plain_span
from tests.spans import trace

HEALTH = RUBRICS["run_health"]
MS = 1_000_000
PARAMETERS = {
    "type": "object",
    "properties": {"port": {"type": "string"}, "day": {"type": "integer"}},
    "required": ["port"],
}
OFFER = (json.dumps([{"type": "function", "function": {"name": "find_ship", "parameters": PARAMETERS}}]),)


def span(span_id, parent_id, kind, at, **fields):
    return plain_span(span_id, parent_id, kind, start_ns=at * MS, end_ns=(at + 1) * MS, **fields)


def tool(span_id, at, result="the ship Aurora sails at 9", *, name="find_ship", error=None, **arguments):
    call = ToolCall(name=name, arguments=arguments or {"port": "Riga"}, result=None if error else result, error=error)
    return span(span_id, "agent", SpanKind.TOOL, at, name=name, tool=call, error=error)


def model(span_id, at, text="", *, calls=(), finish="stop", parent="agent", **fields):
    stated = Message(role="assistant", text=text, tool_calls=tuple(ToolCall(name=n, arguments=a) for n, a in calls))
    fields.setdefault("tool_definitions", OFFER)
    return span(
        span_id, parent, SpanKind.LLM, at, output=text or None, output_messages=(stated,), finish_reason=finish,
        usage=Usage(input=10, output=5), **fields,
    )  # fmt: skip


def run(*steps, answer="Aurora sails at 9.", error=None, **fields):
    top = plain_span(
        "agent", None, SpanKind.AGENT, name="harbour", agent="harbour", end_ns=100 * MS,
        input="When does a ship leave Riga?", output=answer, error=error, **fields,
    )  # fmt: skip
    return extract(trace(top, *steps))


SOUND = (model("m1", 1, calls=[("find_ship", {"port": "Riga"})]), tool("t1", 3), model("m2", 5, "Aurora sails at 9."))


def judged(case):
    return score(case, HEALTH, created_at="2026-01-01T00:00:00Z")


def values(verdict):
    return {s.metric: s.result.value if isinstance(s.result, Scored) else s.result.status for s in verdict.scores}


ANSWERED_BY_THE_PROVIDER = span(
    "m1", "agent", SpanKind.LLM, 1, output="Aurora sails at 9.", output_messages=(
        Message(role="assistant", text="Aurora sails at 9.", tool_calls=(ToolCall(name="web_search", call_id="s1"),)),
        Message(role="tool", text="Aurora, Riga, 9:00", tool_call_id="s1"),
    ),
)  # fmt: skip
"""A model call in which the provider's own search ran, and was answered."""
WRITTEN_BESIDE = model("m1", 1, "Let me look that up.", calls=[("find_ship", {"port": "Riga"})])
"""A model's text that comes with a call of a tool."""


@pytest.mark.parametrize(
    ("steps", "answer", "value"),
    [
        ((WRITTEN_BESIDE, tool("t1", 3)), None, "unavailable"),
        ((WRITTEN_BESIDE,), None, "unavailable"),
        ((ANSWERED_BY_THE_PROVIDER,), None, 1.0),
        # The answer of an earlier call is that of a step: the run has ended with a call of a tool.
        ((model("m0", 0, "sailings"), SOUND[0], tool("t1", 3)), None, "unavailable"),
        ((SOUND[0], tool("t1", 3)), None, 0.0),
        # The work is passed to an agent that runs elsewhere.
        (
            (model("m1", 1, calls=[("transfer_to_expert", {})]), tool("t1", 3, name="transfer_to_expert")),
            None,
            "not_applicable",
        ),
        (
            (
                model("m1", 1, calls=[("transfer_to_expert", {})]),
                tool("t1", 3, name="transfer_to_expert"),
                plain_span("e", "agent", SpanKind.AGENT, agent="expert", output=""),
            ),
            None,
            0.0,
        ),
        # The call may be for the caller's own tool, or await a person's consent.
        ((SOUND[0],), None, "unavailable"),
        ((span("turn", "agent", SpanKind.CHAIN, 1, error="E: x"), replace(SOUND[0], parent_id="turn")), None, 0.0),
        ((WRITTEN_BESIDE, tool("t1", 3)), "Let me look that up.", 1.0),
        ((WRITTEN_BESIDE, tool("t1", 3), model("m2", 5, "Aurora sails at 9.")), None, 1.0),
        ((WRITTEN_BESIDE, tool("t1", 3, name="final_answer", answer="At 9.")), None, 1.0),
        # One that asks for tools may hold the calls that follow it.
        ((replace(WRITTEN_BESIDE, end_ns=90 * MS), tool("t1", 3), model("m2", 5, "At 9.", parent="m1")), None, 1.0),
    ],
)
def test_what_a_model_writes_beside_its_last_call_of_a_tool_is_an_answer_only_where_a_step_states_it(
    steps, answer, value
):
    assert values(judged(run(*steps, answer=answer)))["answered"] == value


def test_a_call_of_a_model_that_asks_for_a_tool_and_stands_alone_says_nothing_of_the_run_s_end():
    alone = extract(trace(replace(WRITTEN_BESIDE, parent_id=None)))
    assert values(judged(alone))["answered"] == "not_applicable"


def unrecorded(span_id, at, **fields):
    """A call of a model of which the request was recorded and the answer was not."""
    asked = Message(role="user", text="When does a ship leave Riga?")
    return span(span_id, "agent", SpanKind.LLM, at, input_messages=(asked,), usage=Usage(input=10, output=5), **fields)


@pytest.mark.parametrize(
    ("steps", "top", "value"),
    [
        ((unrecorded("m1", 1),), {}, "unavailable"),
        ((*SOUND[:2], unrecorded("m2", 5)), {}, "unavailable"),
        ((unrecorded("m1", 1), model("m2", 5, "")), {}, 0.0),
        ((replace(unrecorded("m1", 1), end_ns=9 * MS), model("m2", 5, "", parent="m1")), {}, 0.0),
        ((unrecorded("m1", 1, error="HTTP 500"),), {}, 0.0),
        ((unrecorded("m1", 1, output=""),), {}, 0.0),
        ((unrecorded("m1", 1),), {"answer": ""}, 0.0),
        ((unrecorded("m1", 1),), {"error": "E: x"}, 0.0),
        ((tool("t1", 3),), {}, "unavailable"),
        ((tool("t1", 3),), {"answer": ""}, 0.0),
        ((tool("t1", 3),), {"error": "E: x"}, 0.0),
    ],
)
def test_an_answer_that_nobody_recorded_is_not_taken_for_none(steps, top, value):
    assert values(judged(run(*steps, **{"answer": None, **top})))["answered"] == value


def test_a_step_of_an_agent_may_answer_as_its_run_may():
    top, step = (span(name, None, SpanKind.CHAIN, 1, input="Where?") for name in ("root", "step"))
    steps = (tool("t1", 3), replace(step, parent_id="root", agent="harbour"))
    assert (
        values(judged(extract(trace(top, *(replace(each, parent_id="root") for each in steps)))))["answered"]
        == "unavailable"
    )


@pytest.mark.parametrize(
    ("errors", "value"),
    [
        (("E: x",), 0.0),
        (("E: x", "E: x"), 0.0),
        (("E: x", None), "unavailable"),
        (("asyncio.CancelledError",), "unavailable"),
        ((), "unavailable"),
    ],
)
def test_without_contents_there_is_no_answer_only_where_every_model_call_failed(errors, value):
    top = plain_span("agent", None, SpanKind.AGENT, agent="harbour", end_ns=100 * MS)
    calls = (span(f"m{at}", "agent", SpanKind.LLM, at, error=error) for at, error in enumerate(errors))
    assert values(judged(extract(trace(top, *calls))))["answered"] == value


EMPTY = (
    "{}", "[]", "null", '""', " {}\n", "```json\n{}\n```", '{"answer": ""}', "[null, {}]", {}, [], {"answer": None},
)  # fmt: skip


@pytest.mark.parametrize("answer", EMPTY)
def test_json_without_contents_is_an_answer_only_perhaps_and_none_where_no_model_wrote_it(answer):
    written = json.dumps(answer) if not isinstance(answer, str) else answer
    assert values(judged(run(*SOUND[:2], model("m2", 5, written), answer=answer)))["answered"] == "unavailable"
    assert values(judged(run(tool("t1", 3), answer=answer)))["answered"] == "unavailable"
    assert values(judged(run(*SOUND[:2], model("m2", 5, ""), answer=answer)))["answered"] == 0.0
    assert run(*SOUND, answer=answer).model_output == "Aurora sails at 9.", "what a model says goes before it"


@pytest.mark.parametrize("answer", ["0", "false", "[0]", '{"found": false}', "none", "{", "no", "[" * 500 + "]" * 500])
def test_json_that_says_something_is_an_answer(answer):
    assert values(judged(run(*SOUND[:2], model("m2", 5, answer), answer=answer)))["answered"] == 1.0


def test_a_sound_run_passes_with_every_metric_at_one():
    verdict = judged(run(*SOUND))
    assert verdict.passed
    found = values(verdict)
    assert found.pop("within_usual") == "unavailable", "nobody knows what is usual for the service"
    assert set(found.values()) == {1.0, "not_applicable"}
    assert values(verdict)["no_repetition"] == "not_applicable", "one call cannot repeat"
    assert "signs" not in verdict.to_json()


@pytest.mark.parametrize(
    ("stated", "value"),
    [
        ({"error": "E: down"}, "unavailable"),
        ({"error": "E: down", "model_output": None}, 0.0),
        ({"error": "E: down", "model_output": " "}, 0.0),
        ({"error": "E: down", "tools_used": (ToolCall(name="find_ship", error="E: down"),)}, 1.0),
        ({"error": "E: down", "tools_used": (ToolCall(name="find_ship", error="E: slow"),)}, "unavailable"),
        ({"error": "E: down", "timed_out": True}, 0.0),
        ({}, 1.0),
    ],
)
def test_an_error_of_a_case_without_a_trace_is_the_run_s_where_there_is_no_answer_and_may_be_where_there_is(
    stated, value
):
    case = Case(**{"case_id": "c1", "model_output": "Aurora sails at 9.", "tools_used": (), **stated})
    assert values(judged(case))["completed"] == value


def requested(name="find_ship", **arguments):
    return model("m9", 9, calls=[(name, arguments)])


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        ((requested(),), "unavailable"),
        ((requested("final_answer", answer="At 9."),), "not_applicable"),
        ((*SOUND, tool("t2", 6, "HTTP 500", port="Oslo"), requested(port="Bari")), 0.5),
        ((*SOUND, requested(port="Bari")), 1.0),
        ((model("m1", 1, calls=[("find_ship", {"port": "Riga"})]), tool("t1", 3, None)), 1.0),
        ((requested(), span("s1", "agent", SpanKind.OTHER, 10, name="find_ship")), 1.0),
    ],
)
def test_a_call_of_which_nothing_shows_what_came_counts_neither_as_success_nor_as_failure(steps, value):
    assert values(judged(run(*steps)))["tool_success"] == value


FAULTS = {
    "the agent fails": (run(*SOUND[:2], answer=None, error="RuntimeError: x"), {"completed", "answered"}, False),
    "a last thought is no answer": (
        run(model("m1", 1, "Let me look that up"), answer=None, error="E: x"),
        {"completed", "answered", "tools_tried"}, False,
    ),
    "the only model call fails": (
        run(model("m1", 1, "", error="HTTP 500"), answer=None, error="E: x"),
        {"completed", "answered", "step_success"}, False,
    ),
    "an answer that cannot be seen": (
        run(*SOUND[:2], model("m2", 5, ""), answer=" \u200b\ufeff\n"), {"answered"}, False,
    ),
    "an empty answer": (run(*SOUND[:2], model("m2", 5, ""), answer=""), {"answered"}, False),
    "cut off": (run(*SOUND[:2], model("m2", 5, "Aurora sai", finish="length")), {"answer_intact"}, False),
    "cut off in a call that a span of the client lies around": (
        run(
            *SOUND[:2], model("w", 6, "Aurora sai", finish=None),
            model("m2", 5, "Aurora sai", finish="length", parent="w"),
        ),
        {"answer_intact"}, False,
    ),
    "cut off by what the step right above the call states": (
        run(
            *SOUND[:2], span("n", "agent", SpanKind.CHAIN, 5, finish_reason="length"),
            model("m2", 6, "Aurora sai", finish=None, parent="n"),
        ),
        {"answer_intact"}, False,
    ),
    "cut off by what the client's other span of the call states": (
        run(
            *SOUND[:2], model("w", 5, "Aurora sai", finish="length"),
            model("m2", 6, "Aurora sai", finish=None, parent="w"),
        ),
        {"answer_intact"}, False,
    ),
    "whole behind an earlier call that was cut off and whose span lies around it": (
        run(
            *SOUND[:2], model("w", 5, "Aurora sai", finish="length"),
            model("m2", 6, "Aurora sails at 9.", finish=None, parent="w"),
        ),
        set(), True,
    ),
    "filtered": (run(*SOUND[:2], model("m2", 5, "Auro", finish="content_filter")), {"answer_intact"}, False),
    "the answer is an exception": (run(*SOUND, answer="TimeoutError: 30 s"), {"answer_intact"}, False),
    "the answer is what the last model call failed with": (
        run(model("m1", 5, "", error="E: {'message': 'no such deployment here'}"), answer="no such deployment here"),
        {"answer_intact", "step_success"}, False,
    ),
    **{
        f"the answer is what the last model call wrote and the client could not read: {quoted}": (
            run(model("m1", 5, "", error=f"ToolCallError: {quoted}"), answer="Aurora sails at 9."),
            {"step_success"}, False,
        )
        for quoted in (
            "no tool calls.\n- Generated: Aurora sails at 9.\n- Error: no tool calls",
            "Could not parse `Aurora sails at 9.`",
            "1 validation error [type=json, input_value='Aurora sails at 9.', input_type=str]",
        )
    },
    "a refusal": (run(*SOUND, answer="I'm sorry, but I can't help with that."), {"not_refused"}, True),
    "errors in results": (
        run(*SOUND[:2], tool("t2", 4, "Error: no ship", port="Oslo"), *SOUND[2:]), {"tool_success"}, True,
    ),
    "most calls fail": (
        run(tool("t3", 1, error="E", port="Bari"), tool("t2", 2, "HTTP 500", port="Oslo"), *SOUND),
        {"tool_success"}, False,
    ),
    "the same error until an equal call succeeds": (
        run(*(tool(f"f{n}", 2, f"HTTP 429: wait {n} s") for n in range(3)), *SOUND), {"error_variety"}, True,
    ),
    "an equal call fails after it succeeded": (run(*SOUND, tool("t2", 6, "HTTP 500")), {"tool_success"}, True),
    "one of two calls fails, and no equal one succeeds": (
        run(tool("t2", 1, "HTTP 500", port=None), SOUND[1]), {"tool_success"}, False,
    ),
    "the same error again": (
        run(*SOUND, tool("t2", 6, "Error: no ship 4", port="Oslo"), tool("t3", 7, "Error: no ship 5", port="Bari")),
        {"tool_success", "error_variety"}, False,
    ),
    "a model call fails": (
        run(*SOUND, model("m3", 7, "", error="RateLimitError: slow down"), model("m4", 8, "Aurora sails at 9.")),
        {"step_success"}, True,
    ),
    "an equal call again": (run(*SOUND[:2], tool("t2", 4), *SOUND[2:]), {"no_repetition"}, True),
    "no tool was tried": (run(model("m1", 1, "Aurora sails at 9.")), {"tools_tried"}, True),
    "an unknown tool": (
        run(*SOUND, tool("t2", 6, "Unknown tool: find_shop", name="find_shop")), {"tool_success"}, True,
    ),
    "a call with wrong arguments fails": (
        run(*SOUND, tool("t2", 6, "Error: bad day", port="Oslo", day="soon")), {"tool_success"}, True,
    ),
    "an unknown tool that a model chose": (
        run(model("m0", 0, calls=[("find_shop", {})]), *SOUND, tool("t2", 6, name="find_shop")), {"calls_valid"}, True,
    ),
    "arguments that do not fit": (run(*SOUND, tool("t2", 6, port="Oslo", day="soon")), {"calls_valid"}, True),
    "a result that nobody used": (
        run(*SOUND[:2], model("m2", 5, "I do not know."), answer="I do not know."), {"results_used"}, True,
    ),
    "dropped attributes": (run(*SOUND[:2], replace(SOUND[2], dropped_attributes=7)), {"telemetry"}, True),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_lowers_its_own_metrics_and_no_other(fault):
    case, lowered, passed = FAULTS[fault]
    verdict = judged(case)
    found = {metric for metric, value in values(verdict).items() if isinstance(value, float) and value < 1.0}
    assert found == lowered
    assert verdict.passed is passed


@pytest.mark.parametrize(
    ("call", "answer"),
    [(tool("t1", 3, None, name="final_answer", answer="At 9."), "At 9."),
     (tool("t1", 3, "Structured output provided successfully", name="StructuredOutput", to="Riga"), {"to": "Riga"}),
     (tool("t1", 3, "At 9.", name="agent-submit", port="Riga", ship="Aurora"), "At 9."),
     (tool("t1", 3, "gone", name="submit_order", answer="At 9."), None),
     (tool("t1", 3, error="E: x", name="final_answer", answer="At 9."), None)],
)  # fmt: skip
def test_an_answer_may_be_given_by_a_tool_for_it(call, answer):
    case = run(model("m1", 1, "", calls=[(call.tool.name, call.tool.arguments)]), call, answer=None)
    assert case.model_output == answer
    assert values(judged(case))["answered"] == float(answer is not None)


def seen(*roles):
    return tuple(Message(role=role, text="text") for role in roles)


def test_a_model_alone_may_answer_without_a_tool():
    case = extract(trace(model("m1", 1, "Hello, how can I help?", parent=None)))
    assert values(judged(case))["tools_tried"] == "not_applicable"
    assert judged(case).passed


@pytest.mark.parametrize(
    ("roles", "tried"), [(("user", "assistant", "tool"), 1.0), (("tool", "assistant", "user"), 0.0)]
)
def test_a_result_shown_in_this_turn_is_a_tool_tried(roles, tried):
    case = run(model("m1", 1, "Aurora sails at 9.", input_messages=seen(*roles)))
    assert values(judged(case))["tools_tried"] == tried


def test_which_tools_an_agent_tried_is_not_known_without_its_model_s_calls():
    assert values(judged(run(tool_definitions=OFFER)))["tools_tried"] == "unavailable"


@pytest.mark.parametrize(
    ("offered", "called", "valid"),
    [
        ("ships-find_ship", "find_ship", True),
        ("mcp__ships__find_ship", "find_ship", True),
        ("find_ship", "ships-find_ship", True),
        ("ships-find_ship", "ship", False),
    ],
)
def test_a_tool_is_known_by_its_name_without_that_of_its_plugin(offered, called, valid):
    offer = (json.dumps([{"type": "function", "function": {"name": offered, "parameters": PARAMETERS}}]),)
    case = run(model("m1", 1, calls=[(called, {"port": "Riga"})], tool_definitions=offer), tool("t1", 3, name=called))
    assert (values(judged(case))["calls_valid"] == 1.0) is valid


def test_a_tool_of_a_server_is_known_by_the_server_that_was_offered():
    offer = ('{"type": "provider", "name": "mcp", "id": "openai.mcp"}',)
    for called, valid in (("mcp.find_ship", True), ("find_ship", False)):
        case = run(model("m1", 1, calls=[(called, {"port": "Riga"})], tool_definitions=offer))
        assert (values(judged(case))["calls_valid"] == 1.0) is valid


@pytest.mark.parametrize(
    ("fault", "spans"),
    [
        ("errors in results", {"t2"}), ("an equal call again", {"t2"}), ("no tool was tried", {"m1"}),
        ("cut off", {"m2"}), ("an unknown tool", {"t2"}), ("a model call fails", {"m3"}),
        ("the agent fails", {"agent"}),
        ("the same error again", {"t2", "t3"}),
    ],
)  # fmt: skip
def test_a_sign_names_its_span(fault, spans):
    signs = judged(FAULTS[fault][0]).to_json()["signs"]
    assert {sign["span_id"] for sign in signs} == spans


def test_a_result_that_nobody_used_is_no_sign_of_the_run():
    verdict = judged(FAULTS["a result that nobody used"][0])
    assert "signs" not in verdict.to_json()


def test_polling_that_sees_a_change_is_no_repetition():
    case = run(tool("t1", 1, "waiting"), tool("t2", 2, "still waiting"), tool("t3", 3, "Aurora sails at 9"))
    assert values(judged(case))["no_repetition"] == 1.0


def in_turns(times, result="nothing new"):
    return [tool(f"t{n}", n, result, port=("Riga", "Oslo")[n % 2]) for n in range(1, times + 1)]


@pytest.mark.parametrize(
    ("steps", "value", "passed"),
    [
        (in_turns(4), 0.5, True),
        (in_turns(10), 0.2, True),
        (in_turns(12), 0.0, False),
        (in_turns(40), 0.0, False),
        ([tool(f"t{n}", n, "nothing new") for n in range(1, 12)], 0.0, False),
        ([tool(f"t{n}", n, "done" if n == 30 else "waiting") for n in range(1, 31)], 1 - 22 / 30, True),
        ([tool(f"t{n}", n, f"page {n}", port=f"port {n}") for n in range(1, 41)], 1.0, True),
        ([tool(f"t{n}", n, "nothing new") for n in range(1, 9)] + list(in_turns(30, "x")[8:]), 0.0, False),
    ],
    ids=["a few", "many", "a loop of two", "a long one", "a loop of one", "polling", "many pages", "of both kinds"],
)  # fmt: skip
def test_a_loop_that_brings_nothing_new_fails_the_run_and_other_repetition_is_noticed(steps, value, passed):
    verdict = judged(run(*steps))
    assert values(verdict)["no_repetition"] == pytest.approx(value)
    assert verdict.passed is passed
    assert value == 1.0 or {sign["metric"] for sign in verdict.to_json()["signs"]} >= {"no_repetition"}


def beside(count, *, start=1, **fields):
    """Calls that one turn made: each begins before the first has ended."""
    calls = [tool(f"t{n}", start, **fields, **({} if fields else {"port": f"port {n}"})) for n in range(count)]
    return [replace(call, end_ns=call.start_ns + 50 * MS) for call in calls]


@pytest.mark.parametrize("calls", [beside(2, port="Riga"), beside(12)], ids=["equal", "many of one tool"])
def test_calls_beside_each_other_are_no_repetition(calls):
    assert values(judged(run(*calls)))["no_repetition"] == 1.0


@pytest.mark.parametrize(("asked", "value"), [([2], 1.0), ([1, 1], 0.75)], ids=["in one turn", "in two turns"])
def test_equal_calls_that_one_turn_asks_for_are_no_repetition(asked, value):
    riga = ("find_ship", {"port": "Riga"})
    turns = [model(f"m{n}", n, calls=[riga] * count) for n, count in enumerate(asked)]
    case = run(*turns, tool("t1", 11), tool("t2", 13), model("m9", 15, "Aurora sails at 9."))
    assert values(judged(case))["no_repetition"] == value


def test_a_graph_that_answers_without_a_tool_is_an_agent_that_tried_none():
    graph = span("graph", None, SpanKind.CHAIN, 0, name="LangGraph")
    case = extract(trace(graph, model("m1", 1, "At 9.", parent="graph")))
    assert values(judged(case))["tools_tried"] == 0.0


def test_calls_without_contents_are_not_taken_for_equal():
    calls = [span(f"t{n}", "agent", SpanKind.TOOL, n, name="find", tool=ToolCall(name="find")) for n in range(8)]
    assert values(judged(run(*calls)))["no_repetition"] == 1.0


def test_two_calls_in_turns_are_repetitions_and_calls_that_differ_are_none():
    turns = [tool(f"t{n}", n, f"r{n}", port=("Riga", "Oslo")[n % 2]) for n in range(1, 7)]
    assert values(judged(run(*turns)))["no_repetition"] == pytest.approx(0.5)
    row = [tool(f"t{n}", n, "", name="bash", command=f"sed -i {n}d a.py") for n in range(1, 44)]
    assert values(judged(run(*row)))["no_repetition"] == 1.0


@pytest.mark.parametrize(
    ("schema", "value", "valid"),
    [
        ({"type": "string", "nullable": True}, None, 1.0),
        ({"type": "string", "nullable": True}, "Riga", 1.0),
        ({"type": "string", "nullable": True}, 7, 0.0),
        ({"type": "string", "nullable": False}, None, 0.0),
        ({"type": "string"}, None, 0.0),
        ({"type": "string", "enum": ["a", "b"], "nullable": True}, None, 1.0),
        ({"type": "array", "items": {"type": "integer", "nullable": True}}, [1, None], 1.0),
        ({"$ref": "#/$defs/port", "nullable": True}, None, 1.0),
        ({"$ref": "#/$defs/port"}, None, 0.0),
        ({"type": "object", "properties": {"nullable": {"type": "boolean"}}}, {"nullable": True}, 1.0),
        ({"type": "object", "properties": {"nullable": {"type": "boolean"}}}, {"nullable": "x"}, 0.0),
        ({"type": "integer"}, "123456789012345678901", 1.0),  # as a longer number than 64 bits is read
        ({"type": "integer", "nullable": True}, "-123456789012345678901", 1.0),
        ({"type": "integer"}, "12", 0.0),
        ({"type": "string", "pattern": "^A"}, "123456789012345678901", 0.0),
    ],
)
def test_a_value_fits_the_type_of_its_declaration(schema, value, valid):
    parameters = {"type": "object", "properties": {"port": schema}, "$defs": {"port": {"type": "string"}}}
    offer = (json.dumps([{"name": "find_ship", "input_schema": parameters}]),)
    steps = (model("m1", 1, calls=[("find_ship", {"port": value})], tool_definitions=offer), tool("t1", 3, port=value))
    assert values(judged(run(*steps)))["calls_valid"] == valid


def server_side(*, root="tools/call lookup_order", http=None, error=None):
    call = ToolCall(name="lookup_order", arguments={"id": 1}, result=None if error else "found", error=error)
    above = () if http is None else (span("http", None, SpanKind.OTHER, 0, name=http),)
    called = span("t", "http" if above else None, SpanKind.TOOL, 1, name=root, tool=call, error=error)
    return extract(trace(*above, called))


@pytest.mark.parametrize("error", [None, "ToolError: no such order"])
@pytest.mark.parametrize("http", [None, "POST /mcp", "POST", "MCP server handle"])
def test_one_call_of_a_tool_as_its_server_reports_it_is_no_run(http, error):
    found = judged(server_side(http=http, error=error))
    assert (found.passed, found.state.value) == (None, "incomplete")
    assert all(isinstance(score.result, NotApplicable) for score in found.scores)


def test_a_call_below_what_an_application_does_is_a_run_of_it():
    failed = tool("t", 2, error="ToolError: no such order")
    for above in (
        span("agent", None, SpanKind.OTHER, 0, name="handle_request"),
        span("agent", None, SpanKind.CHAIN, 0),
    ):
        assert judged(extract(trace(above, failed))).passed is False
    assert judged(run(failed)).passed is False
    two = [replace(each, parent_id=None) for each in (tool("t1", 1), tool("t2", 3, error="ToolError: x"))]
    assert judged(extract(trace(*two))).passed is False


def test_an_error_that_came_up_from_below_counts_once():
    chain = span("chain", "agent", SpanKind.CHAIN, 6, error="E: below")
    failed = model("m3", 7, "", parent="chain", error="E: below")
    result = next(s.result for s in judged(run(*SOUND, chain, failed)).scores if s.metric == "step_success")
    assert isinstance(result, Scored)
    assert result.details["count"] == 1
    between = span("between", "chain", SpanKind.OTHER, 6, error="E: below")
    wrapped = judged(run(*SOUND, chain, between, replace(failed, parent_id="between")))
    assert values(wrapped)["step_success"] == result.value, "a plain span on its way is no further step"


def test_what_is_not_known_is_not_judged():
    bare = extract(trace(span("m", None, SpanKind.LLM, 1, finish_reason=None, error=None)))
    found = {s.metric: s.result for s in judged(bare).scores}
    assert isinstance(found["tool_success"], Unavailable)
    assert isinstance(found["answered"], Unavailable)
    assert isinstance(found["calls_valid"], Unavailable)


@pytest.mark.parametrize(("field", "value"), [("output", "unavailable"), ("", "unavailable"), ("input", 0.0)])
def test_an_answer_that_was_not_understood_is_not_said_to_be_missing(field, value):
    unread = Unread(source="my.completion", shape="object with type, value", field=field)
    case = run(replace(model("m1", 1), unread=(unread,)), answer=None)
    assert values(judged(case))["answered"] == value
    answered = next(score.result for score in judged(case).scores if score.metric == "answered")
    assert field == "input" or "my.completion (object with type, value)" in answered.reason


def test_plain_http_is_no_run():
    case = extract(trace(span("GET /livez", None, SpanKind.OTHER, 1, error="500")))
    for each in (case, dataclasses.replace(case, trace=None)):  # as it is, and as an inspection leaves it
        assert all(isinstance(s.result, NotApplicable) for s in judged(each).scores if s.metric != "no_repetition")


def test_reasons_name_the_cause_and_show_contents_to_none_but_those_who_may_see_them():
    case = run(*SOUND, tool("t2", 6, error="ValueError: secret 4711-0815"), answer="Error: secret 4711-0815")
    verdict = judged(case).to_json()
    (reason,) = (each["reason"] for each in verdict["scores"] if each["metric"] == "tool_success")
    assert reason.endswith("ValueError (secret 4711-0815)")
    assert "0815" not in repr([each["details"] for each in verdict["scores"]])
    assert "0815" not in repr(open_verdict(verdict))
    assert "ValueError (…)" in repr(open_verdict(verdict))


def test_failures_of_one_kind_are_named_once_with_the_message_of_the_first():
    errors = ("ValueError: a", "ValueError: b", "order database unreachable")
    case = run(*SOUND, *(tool(f"t{at}", 6, error=error) for at, error in enumerate(errors, 2)))
    (reason,) = (each.result.reason for each in judged(case).scores if each.metric == "tool_success")
    assert reason.count("ValueError (a)") == 1
    assert "ValueError (b)" not in reason
    assert reason.endswith("error status (order database unreachable)")


# -- failures that stand beside a call


def called(at=3, result=None, *below, arguments=None):
    given = {"port": "Riga"} if arguments is None else arguments
    call = ToolCall(name="find_ship", arguments=given or None, result=result)
    return (span("t1", "agent", SpanKind.TOOL, at, name="find_ship", tool=call), *below)


def below(span_id, at, kind=SpanKind.OTHER, parent="t1", **fields):
    return span(span_id, parent, kind, at, **fields)


FAILED_BELOW = below("b1", 4, error="ConnectionError: registry of ships is down")


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        (called(3, None, FAILED_BELOW), 0.0),
        (called(3, "", FAILED_BELOW), 0.0),
        (called(3, "Sorry: registry of ships is down", FAILED_BELOW), 0.0),
        (called(3, None, below("c", 4, SpanKind.CHAIN), below("b1", 5, parent="c", error="E: down")), 0.0),
        (called(3, "the ship Aurora sails at 9", FAILED_BELOW), 1.0),
        (called(3, None, FAILED_BELOW, below("b2", 6)), 1.0),
        (called(3, None, below("m", 4, SpanKind.LLM, error="RateLimitError: x")), 1.0),
        (called(3, None, FAILED_BELOW, arguments=False), 0.0),
        (called(3, None, below("b1", 4, name="GET", error="404"), arguments=False), 1.0),
        (called(3, None, below("c", 4), below("b1", 5, parent="c", error="E: down"), arguments=False), 1.0),
        (called(3, None, below("b2", 6)), 1.0),
    ],
    ids=["nothing came", "empty", "repeated", "deeper", "handled", "tried again", "a model", "no contents",
         "no contents, a request", "no contents, deeper", "fine"],
)  # fmt: skip
def test_an_error_below_a_tool_is_the_tools_where_nothing_came_of_it(steps, value):
    assert values(judged(run(*steps, SOUND[2])))["tool_success"] == value


def sub_agent(output, *, under="agent", error=None):
    asked = "Which ship sails first?"
    return span(
        "sub", under, SpanKind.AGENT, 4, name="research", agent="research", input=asked, output=output, error=error
    )


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", 2 / 3),
        ("Error: the registry timed out", 2 / 3),
        ("Maximum number of rounds reached", 2 / 3),
        ({"output": "Connection error."}, 2 / 3),
        ("Aurora sails first.", 1.0),
        ("No ship of this name was found.", 1.0),
        ("Errors in the registry were corrected in May.", 1.0),
        (None, 1.0),
    ],
)
def test_what_a_sub_agent_returns_in_place_of_an_answer_is_a_failed_step(output, value):
    assert values(judged(run(*SOUND, sub_agent(output))))["step_success"] == pytest.approx(value)


def test_a_call_and_the_agent_below_it_that_failed_are_one_sign():
    text = "Error: the registry timed out"
    asked = span(
        "t9", "agent", SpanKind.TOOL, 4, name="ask", tool=ToolCall(name="ask", arguments={"q": "x"}, result=text)
    )
    found = values(judged(run(*SOUND, asked, sub_agent(text, under="t9"))))
    assert (found["tool_success"], found["step_success"]) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("wrapper", "failed", "completed"),
    [
        ({}, ("research",), 1.0),  # the last agent got over it
        ({}, ("report",), 0.0),
        ({"agent": "desk"}, ("report",), 1.0),
        ({"output": "The registry is closed."}, ("report",), 1.0),
    ],
)
def test_an_agent_s_span_that_states_nothing_ends_as_the_last_agent_right_below_it(wrapper, failed, completed):
    below = [
        span(name, "wrapper", SpanKind.AGENT, at, agent=name, error="Error in agent run" if name in failed else None)
        for at, name in ((3, "research"), (6, "report"))
    ]
    steps = (
        plain_span("root", None, SpanKind.CHAIN, end_ns=9 * MS),
        span("wrapper", "root", SpanKind.AGENT, 2, **wrapper),
    )
    assert values(judged(extract(trace(*steps, *below))))["completed"] == completed


def test_wrappers_in_a_cycle_of_parents_are_followed_to_an_end():
    looped = [span(name, above, SpanKind.AGENT, 1) for name, above in (("a", "b"), ("b", "a"))]
    assert (
        values(judged(extract(trace(*looped, model("m1", 2, "It sails at 9.", parent="a")))))["telemetry"] is not None
    )


def test_a_run_of_which_nobody_saw_the_end_does_not_pass_and_fails_by_what_it_shows() -> None:
    headless = extract(trace(*SOUND, completion="idle"))
    assert (judged(headless).state, judged(headless).passed) == ("incomplete", None)
    down = [tool(f"t{n}", 10 + n, error="HTTP 503", port=f"P{n}") for n in range(8)]
    assert judged(extract(trace(*SOUND, *down, completion="idle"))).passed is False, "eight of nine calls failed"


@pytest.mark.parametrize("completion", ["idle", "torn", "pressure", "deadline"])
def test_of_a_trace_whose_top_never_came_no_step_speaks_for_the_run(completion):
    steps = (
        span(
            "sub",
            "gone",
            SpanKind.AGENT,
            1,
            agent="sub",
            output="Error: no such order",
            error="ToolError: no such order",
        ),
        model("m1", 3, "I promise", parent="sub", finish="length"),
    )
    case = extract(trace(*steps, completion=completion))
    found = judged(case)
    assert (found.passed, found.blockers) == (None, ())
    assert {values(found)[name] for name in ("completed", "answered", "answer_intact", "not_refused")} == {
        "unavailable"
    }
    assert judged(extract(trace(*steps, completion="pseudo_root"))).passed is False, "its caller is elsewhere"
    whole = extract(trace(span("gone", None, SpanKind.CHAIN, 0, output="fine"), *steps, completion=completion))
    assert "answer_intact" in judged(whole).blockers or completion in ("torn", "pressure")


def test_an_empty_answer_is_one_beside_a_span_of_the_same_call_that_ends_later_and_shows_nothing():
    """Anthropic's SDK for JavaScript makes such a span beside that of an instrumentation."""
    asked = (Message(role="user", text="When?"),)
    top = plain_span("app", None, SpanKind.OTHER, name="answer", end_ns=100 * MS)
    shown = model("m1", 1, parent="app", input_messages=asked)
    bare = replace(shown, span_id="m2", end_ns=shown.end_ns + 1, input_messages=(), output_messages=())
    assert values(judged(extract(trace(top, shown, bare))))["answered"] == 0.0
    later = replace(bare, start_ns=9 * MS, end_ns=10 * MS)
    assert values(judged(extract(trace(top, shown, later))))["answered"] == "unavailable", "another call"


@pytest.mark.parametrize(
    "name",
    [
        "final_answer", "FinalAnswer", "submit", "done", "functions.final_answer", "strands_structured_output",
        "StructuredOutput",
    ],
)  # fmt: skip
@pytest.mark.parametrize("by", ["span", "message", "both"])
def test_a_tool_that_gives_the_answer_is_no_tool_that_was_tried(name, by):
    asks = model("m8", 1, "" if by != "span" else "I am done.", calls=[(name, {"answer": "9"})] if by != "span" else ())
    given = (tool("t8", 3, "9", name=name, answer="9"),) if by != "message" else ()
    assert values(judged(run(asks, *given)))["tools_tried"] == 0.0
    assert values(judged(run(SOUND[0], SOUND[1], asks, *given)))["tools_tried"] == 1.0
    alone = (json.dumps([{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}]),)
    offered = replace(asks, tool_definitions=alone)
    assert values(judged(run(offered, *given)))["tools_tried"] == "not_applicable", "nothing else was offered"


@pytest.mark.parametrize(
    ("outcome", "answered"), [({}, "unavailable"), ({"result": "booked"}, 0.0), ({"error": "E"}, 0.0)]
)
def test_a_call_whose_span_ends_without_an_outcome_may_wait_for_a_person(outcome, answered):
    call = ToolCall(**({"name": "book_ship", "arguments": {"port": "Riga"}} | outcome))
    step = span("t1", "agent", SpanKind.TOOL, 3, name="book_ship", tool=call, error=call.error)
    asked = model("m1", 1, calls=[("book_ship", {"port": "Riga"})])
    assert values(judged(run(asked, step, answer=None)))["answered"] == answered


@pytest.mark.parametrize(
    ("steps", "answer", "completed"),
    [
        ((), None, 0.0),
        ((), "Aurora sails at 9.", 0.0),
        ((), "Please ask at the desk.", 1.0),
        ((tool("t1", 9),), None, 1.0),
    ],
)
def test_an_agent_whose_last_step_failed_has_failed_unless_it_went_on(steps, answer, completed):
    """OpenAI's agents give the error by which a run ends to its turn, such as an answer of the wrong type."""
    turn = plain_span("turn", "agent", SpanKind.CHAIN, start_ns=4 * MS, end_ns=8 * MS, error="Invalid JSON provided")
    case = run(turn, model("m1", 5, "Aurora sails at 9.", parent="turn"), *steps, answer=answer)
    assert values(judged(case))["completed"] == completed


@pytest.mark.parametrize(
    ("failed", "queued", "waited_for", "value"),
    [(True, True, False, 0.0), (True, True, True, 1.0), (True, False, False, 1.0), (False, True, False, 1.0)],
)
def test_a_task_of_a_queue_that_failed_after_the_request_had_ended_is_a_run_that_failed(
    failed, queued, waited_for, value
):
    """What took the message up raised once the model had answered; nobody is left who could get over that."""
    request = plain_span("r", None, name="POST /ask", end_ns=(20 if waited_for else 1) * MS)
    task = plain_span(
        "agent", "r", name="run/answer", start_ns=2 * MS, end_ns=10 * MS, from_queue=queued,
        error="RuntimeError: the database is gone" if failed else None,
    )  # fmt: skip
    verdict = judged(extract(trace(request, task, *SOUND)))
    assert values(verdict)["completed"] == value
    assert verdict.passed is (value == 1.0)


@pytest.mark.parametrize(
    ("more", "value"),
    [
        ((), 0.0),
        ((plain_span("again", "agent", name="run/answer", start_ns=12 * MS, end_ns=13 * MS, from_queue=True),), 1.0),
        ((plain_span("other", "r", name="run/mail", start_ns=12 * MS, end_ns=13 * MS, from_queue=True),), 0.0),
        ((plain_span("asked", "r", SpanKind.LLM, output="At 9.", end_ns=1 * MS),), 1.0),
    ],
)  # fmt: skip
def test_a_task_is_got_over_where_it_is_taken_up_again_and_may_be_beside_an_answer_of_the_request(more, value):
    request = plain_span("r", None, name="POST /ask", end_ns=2 * MS)
    task = plain_span(
        "agent", "r", name="run/answer", start_ns=3 * MS, end_ns=10 * MS, from_queue=True, error="the database is gone"
    )
    assert values(judged(extract(trace(request, task, *SOUND, *more))))["completed"] == value


def test_a_judge_s_task_that_fails_after_the_answer_is_no_end_of_the_run():
    request = plain_span("r", None, name="POST /ask", end_ns=2 * MS)
    task = plain_span("agent", "r", name="run/answer", start_ns=3 * MS, end_ns=10 * MS, from_queue=True)
    check = plain_span(
        "check", "r", SpanKind.EVALUATOR, start_ns=12 * MS, end_ns=15 * MS, from_queue=True, error="RuntimeError: E"
    )
    judge = plain_span("m9", "check", SpanKind.LLM, output="yes", start_ns=13 * MS, end_ns=14 * MS)
    assert values(judged(extract(trace(request, task, *SOUND, check, judge))))["completed"] == 1.0


@pytest.mark.parametrize(
    ("kind", "answer", "above", "completed"),
    [
        (SpanKind.CHAIN, None, SpanKind.CHAIN, 0.0),
        (SpanKind.TOOL, None, SpanKind.CHAIN, 1.0),
        (SpanKind.GUARDRAIL, None, SpanKind.CHAIN, 1.0),
        (SpanKind.AGENT, None, SpanKind.CHAIN, 1.0),
        (SpanKind.CHAIN, None, SpanKind.AGENT, 1.0),
        (SpanKind.CHAIN, "Aurora sails at 9.", SpanKind.CHAIN, 1.0),
    ],
)
def test_what_an_agent_called_may_fail_last_and_so_may_a_step_beside_its_answer(kind, answer, above, completed):
    """The answer of an earlier model call is the run's, whatever came of what followed; an outer agent goes on."""
    root = plain_span(
        "r", None, above, agent="desk" if above is SpanKind.AGENT else None, output=answer, end_ns=20 * MS
    )
    agent = plain_span("agent", "r", SpanKind.AGENT, agent="clerk", start_ns=1 * MS, end_ns=19 * MS)
    said = plain_span("m1", "agent", SpanKind.LLM, start_ns=2 * MS, end_ns=3 * MS, output="Aurora sails at 9.")
    step = plain_span("step", "agent", kind, start_ns=4 * MS, end_ns=8 * MS, error="Invalid JSON")
    last = plain_span("m2", "step", SpanKind.LLM, start_ns=5 * MS, end_ns=6 * MS, output="[1, 2")
    assert values(judged(extract(trace(root, agent, said, step, last))))["completed"] == completed


@pytest.mark.parametrize(
    ("steps", "failed"),
    [
        ((below("s", 7, parent="agent", error="KeyError: port"),), 1),
        ((below("c", 7, SpanKind.CHAIN, "agent"), below("s", 8, parent="c", error="KeyError: port")), 1),
        ((below("o", 7, parent="agent", error="KeyError: x"), below("s", 8, parent="o", error="KeyError: x")), 1),
        ((below("s", 7, parent="agent"),), 0),
        ((below("s", 7, parent="agent", name="POST", error="500"),), 0),
        ((below("s", 7, parent="agent", name="GET /v1/ships", error="500"),), 0),
        ((below("s", 4, parent="t1", error="KeyError: port"),), 0),
        ((below("s", 2, parent="m1", error="ConnectionError: x"),), 0),
    ],
    ids=["plain", "in a chain", "from below", "fine", "http", "request", "of a tool", "of a model"],
)  # fmt: skip
def test_a_plain_step_that_failed_is_a_step_of_the_run_unless_it_is_part_of_another(steps, failed):
    result = next(s.result for s in judged(run(*SOUND, *steps)).scores if s.metric == "step_success")
    assert result.details.get("count", 0) == failed


def test_a_check_of_the_answer_that_was_cut_off_leaves_the_answer_whole() -> None:
    check = span("check", "agent", SpanKind.EVALUATOR, 7)
    cut = model("e1", 7, "The answer is", finish="length", parent="check")
    found = judged(run(*SOUND, check, cut))
    assert values(found)["answer_intact"] == 1.0


@pytest.mark.parametrize(("after", "value"), [
    ((model("m2", 5, "Nothing was found."),), 1.0),
    ((), 0.0),
    ((model("m2", 5, calls=[("find_ship", {"port": "Riga"})], finish="tool_calls"),), 0.0),
])  # fmt: skip
def test_the_error_of_a_tool_that_an_agent_got_over_is_none_of_the_workflow_around_it(after, value) -> None:
    error = "Error running tool (non-fatal): no port"
    whole = span("w", None, SpanKind.CHAIN, 0, error=error, name="workflow")
    whole = replace(whole, end_ns=100 * MS)
    agent = span("agent", "w", SpanKind.AGENT, 1, agent="harbour")
    failed = tool("t1", 3, error=error)

    def found(*spans):
        return values(judged(extract(trace(*spans))))

    asked = model("m1", 2, calls=[("find_ship", {"port": "Riga"})])
    sound = found(whole, agent, asked, failed, *after)
    assert (sound["completed"], sound["step_success"]) == (value, 1.0)
    raised = replace(agent, error=error, end_ns=100 * MS)
    other = replace(whole, error="ValueError: no berth")
    bare = [replace(each, error="500") for each in (whole, failed)]
    worded = [replace(each, error="ValueError: no port") for each in (whole, failed)]
    for spans in (
        (whole, raised, asked, failed), (other, agent, asked, failed), (bare[0], agent, asked, bare[1]),
        (worded[0], agent, asked, worded[1]),
        (whole, agent, asked, failed, replace(agent, span_id="next", start_ns=7 * MS, end_ns=8 * MS, error="refused")),
        (whole, agent, asked, failed, tool("t2", 7, error=error)),
        (whole, agent, asked, failed, span("save", "w", SpanKind.CHAIN, 7, error=error)),
    ):  # fmt: skip
        assert found(*spans, *after)["completed"] == 0.0


@pytest.mark.parametrize(("said", "answered"), [
    ((Message(role="assistant"),), 0.0),
    ((Message(role="assistant", withheld=True),), "unavailable"),
    ((), "unavailable"),
])  # fmt: skip
def test_an_empty_answer_that_the_root_states_is_known_whatever_never_came(said, answered) -> None:
    agent = span("agent", None, SpanKind.AGENT, 0, agent="harbour", input="When?", output_messages=said)
    lost = model("m1", 2, parent="never came")
    case = extract(trace(agent, lost, completion="quiet"))
    assert not case.complete
    assert values(judged(case))["answered"] == answered
    asking = model("m2", 3, calls=[("find_ship", {"port": "Riga"})], finish="tool_calls")
    case = extract(trace(agent, lost, asking, tool("t1", 4), completion="quiet"))
    assert values(judged(case))["answered"] == "unavailable"  # the answer behind it may be what never came


def test_a_model_call_without_contents_hides_no_call_of_a_tool_where_it_is_around_one_that_shows_them() -> None:
    around = span("m0", "agent", SpanKind.LLM, 1, tool_definitions=OFFER)
    shown = model("m1", 2, "Aurora sails at 9.", parent="m0")
    assert run(around, shown).tools_used == ()
    assert run(around, shown, span("m2", "m0", SpanKind.LLM, 3, tool_definitions=OFFER)).tools_used is None
    assert run(around, model("m1", 2, "It is safe.", parent="m0", tool_definitions=())).tools_used is None


def test_an_agent_whose_answer_was_not_captured_is_not_blamed_for_trying_no_tool() -> None:
    quiet = span(
        "m1", "agent", SpanKind.LLM, 1, tool_definitions=OFFER, capture_switch="content",
        output_messages=(Message(role="assistant", withheld=True),),
    )  # fmt: skip
    agent = span("agent", None, SpanKind.AGENT, 0, agent="harbour", capture_switch="content")
    assert values(judged(extract(trace(agent, quiet))))["tools_tried"] == "unavailable"


@pytest.mark.parametrize(
    ("completion", "answer", "value"), [("batch", None, "unavailable"), (None, None, 0.0), ("batch", "", 0.0)]
)
def test_what_is_left_of_a_trace_states_an_answer_that_is_known_to_be_empty(completion, answer, value):
    called = ToolCall(name="find_ship", arguments={"port": "Riga"})
    case = Case(case_id="c", model_output=answer, tools_used=(called,), agents_called=("a",), completion=completion)
    assert values(judged(case))["answered"] == value


def test_what_is_left_of_a_trace_whose_top_never_came_does_not_tell_how_the_run_ended():
    case = Case(case_id="c", model_output="At 9.", agents_called=("a",), complete=False, completion="root_ended")
    assert {values(judged(case))[name] for name in ("completed", "answered")} == {"unavailable"}
    named = dataclasses.replace(case, root_span_id="1")
    assert values(judged(named))["answered"] == 1.0
