"""Run health on runs with known faults: each fault lowers its own metric, names its span, and nothing else moves."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from scoring.case.extract import extract
from scoring.evaluators.score import score
from scoring.result.result import NotApplicable, Scored, Unavailable
from scoring.rubrics import RUBRICS
from scoring.trace.span import Message, Span, SpanKind, ToolCall, Usage
from scoring.trace.trace import Trace

HEALTH = RUBRICS["run_health"]
MS = 1_000_000
PARAMETERS = {
    "type": "object",
    "properties": {"port": {"type": "string"}, "day": {"type": "integer"}},
    "required": ["port"],
}
OFFER = (json.dumps([{"type": "function", "function": {"name": "find_ship", "parameters": PARAMETERS}}]),)


def span(span_id, parent_id, kind, at, **fields):
    fields.setdefault("name", span_id)
    return Span(
        trace_id="1" * 32, span_id=span_id, parent_id=parent_id, kind=kind, dialect="test",
        start_ns=at * MS, end_ns=(at + 1) * MS, **fields,
    )  # fmt: skip


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
    top = Span(
        trace_id="1" * 32, span_id="agent", parent_id=None, name="harbour", kind=SpanKind.AGENT, agent="harbour",
        dialect="test", start_ns=0, end_ns=100 * MS, input="When does a ship leave Riga?", output=answer, error=error,
        **fields,
    )  # fmt: skip
    return extract(Trace.of("1" * 32, [top, *steps], "batch"))


SOUND = (model("m1", 1, calls=[("find_ship", {"port": "Riga"})]), tool("t1", 3), model("m2", 5, "Aurora sails at 9."))


def judged(case):
    return score(case, HEALTH, created_at="2026-01-01T00:00:00Z")


def values(verdict):
    return {s.metric: s.result.value if isinstance(s.result, Scored) else s.result.status for s in verdict.scores}


def test_a_sound_run_passes_with_every_metric_at_one():
    verdict = judged(run(*SOUND))
    assert verdict.passed
    found = values(verdict)
    assert found.pop("within_usual") == "unavailable", "nobody knows what is usual for the service"
    assert set(found.values()) == {1.0, "not_applicable"}
    assert values(verdict)["no_repetition"] == "not_applicable", "one call cannot repeat"
    assert "signs" not in verdict.to_json()


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
    "an empty answer": (run(*SOUND[:2], model("m2", 5, ""), answer=""), {"answered"}, False),
    "cut off": (run(*SOUND[:2], model("m2", 5, "Aurora sai", finish="length")), {"answer_intact"}, False),
    "filtered": (run(*SOUND[:2], model("m2", 5, "Auro", finish="content_filter")), {"answer_intact"}, False),
    "the answer is an exception": (run(*SOUND, answer="TimeoutError: 30 s"), {"answer_intact"}, False),
    "a refusal": (run(*SOUND, answer="I'm sorry, but I can't help with that."), {"not_refused"}, True),
    "errors in results": (
        run(*SOUND[:2], tool("t2", 4, "Error: no ship", port="Oslo"), *SOUND[2:]), {"tool_success"}, True,
    ),
    "most calls fail": (
        run(tool("t3", 1, error="E"), tool("t2", 2, "HTTP 500", port="Oslo"), *SOUND), {"tool_success"}, False,
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
        run(*SOUND, tool("t2", 6, "Unknown tool: find_shop", name="find_shop")), {"tool_success", "calls_valid"}, False,
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


def seen(*roles):
    return tuple(Message(role=role, text="text") for role in roles)


def test_a_model_alone_may_answer_without_a_tool():
    case = extract(Trace.of("1" * 32, [model("m1", 1, "Hello, how can I help?", parent=None)], "batch"))
    assert values(judged(case))["tools_tried"] == "not_applicable"
    assert judged(case).passed


@pytest.mark.parametrize(
    ("roles", "tried"), [(("user", "assistant", "tool"), 1.0), (("tool", "assistant", "user"), 0.0)]
)
def test_a_result_shown_in_this_turn_is_a_tool_tried(roles, tried):
    case = run(model("m1", 1, "Aurora sails at 9.", input_messages=seen(*roles)))
    assert values(judged(case))["tools_tried"] == tried


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
    failed = tool("t1", 3, "Error: no ship", name=called, port="Riga")
    case = run(model("m1", 1, calls=[(called, {"port": "Riga"})], tool_definitions=offer), failed)
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
        ([tool(f"t{n}", n, f"page {n}", port=f"port {n}") for n in range(1, 41)], 1 - 32 / 40, True),
        ([tool(f"t{n}", n, "nothing new") for n in range(1, 9)] + list(in_turns(30, "x")[8:]), 0.0, False),
    ],
    ids=["a few", "many", "a loop of two", "a long one", "a loop of one", "polling", "many pages", "of both kinds"],
)  # fmt: skip
def test_a_loop_that_brings_nothing_new_fails_the_run_and_other_repetition_is_noticed(steps, value, passed):
    verdict = judged(run(*steps))
    assert values(verdict)["no_repetition"] == pytest.approx(value)
    assert verdict.passed is passed
    assert {sign["metric"] for sign in verdict.to_json()["signs"]} >= {"no_repetition"}


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
    case = extract(Trace.of("1" * 32, [graph, model("m1", 1, "At 9.", parent="graph")], "batch"))
    assert values(judged(case))["tools_tried"] == 0.0


def test_calls_without_contents_are_not_taken_for_equal():
    calls = [span(f"t{n}", "agent", SpanKind.TOOL, n, name="find", tool=ToolCall(name="find")) for n in range(8)]
    assert values(judged(run(*calls)))["no_repetition"] == 1.0


def test_two_calls_in_turns_and_one_tool_over_and_over_are_repetitions():
    turns = [tool(f"t{n}", n, f"r{n}", port=("Riga", "Oslo")[n % 2]) for n in range(1, 7)]
    assert values(judged(run(*turns)))["no_repetition"] == pytest.approx(0.5)
    row = [tool(f"t{n}", n, f"r{n}", port=f"port {n}") for n in range(1, 11)]
    assert values(judged(run(*row)))["no_repetition"] == pytest.approx(0.8)


def test_an_error_that_came_up_from_below_counts_once():
    chain = span("chain", "agent", SpanKind.CHAIN, 6, error="E: below")
    failed = model("m3", 7, "", parent="chain", error="E: below")
    result = next(s.result for s in judged(run(*SOUND, chain, failed)).scores if s.metric == "step_success")
    assert isinstance(result, Scored)
    assert result.details["count"] == 1


def test_what_is_not_known_is_not_judged():
    bare = extract(Trace.of("1" * 32, [span("m", None, SpanKind.LLM, 1, finish_reason=None, error=None)], "batch"))
    found = {s.metric: s.result for s in judged(bare).scores}
    assert isinstance(found["tool_success"], Unavailable)
    assert isinstance(found["answered"], Unavailable)
    assert isinstance(found["calls_valid"], Unavailable)


def test_plain_http_is_no_run():
    case = extract(Trace.of("1" * 32, [span("GET /livez", None, SpanKind.OTHER, 1)], "batch"))
    assert all(isinstance(s.result, NotApplicable) for s in judged(case).scores if s.metric != "no_repetition")


def test_reasons_hold_no_contents():
    case = run(*SOUND, tool("t2", 6, error="ValueError: secret 4711-0815"), answer="Error: secret 4711-0815")
    assert "0815" not in repr(judged(case).to_json())
