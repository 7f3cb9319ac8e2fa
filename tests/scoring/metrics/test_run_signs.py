"""Signs without a judge: what sub-agents return, limits, values of no earlier text, and opposites of results."""

from __future__ import annotations

import json
from itertools import islice, product

import pytest

from sidejudge.integrations.dialects import normalise
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import Message, SpanKind, ToolCall
from sidejudge.scoring.trace.trace import Trace
from tests.linear_time import LONG, SHORT, assert_linear
from tests.scoring.metrics.test_run_health import SOUND, judged, model, run, span, tool, values
from tests.simulation.agent_runs import DIALECTS, spans_of

METRICS = {criterion.metric.id: criterion.metric for criterion in RUBRICS["run_health"].criteria}
SAME = "The registry has no entry for this ship and this day."


def measured(name, case):
    return METRICS[name].start(case)


def named(name, case):
    result = measured(name, case)
    assert isinstance(result, Scored), result
    return [sign["span_id"] for sign in result.details.get("signs", ())]


def sub_agent(span_id, at, output, name="research", **fields):
    return span(span_id, "agent", SpanKind.AGENT, at, agent=name, name=name, output=output, **fields)


def test_a_sub_agent_that_returns_the_same_again_is_named():
    steps = (*SOUND, sub_agent("a", 6, SAME), sub_agent("b", 7, SAME), sub_agent("c", 8, f"{SAME} But another does."))
    short = (sub_agent("e", 10, "ok"), sub_agent("f", 11, "ok"))
    case = run(*steps, sub_agent("d", 9, SAME, "other"), *short)
    assert named("outputs_vary", case) == ["b"]
    assert measured("outputs_vary", run(*SOUND, *short)).status == "not_applicable"


def test_one_run_that_two_spans_show_returns_nothing_again():
    inner = span("b", "a", SpanKind.AGENT, 6, agent="research", name="research", output=SAME)
    assert named("outputs_vary", run(*SOUND, sub_agent("a", 6, SAME), inner)) == []


@pytest.mark.parametrize(
    "output",
    [
        "I'm sorry, but I can't help with that.",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "TimeoutError: 30 s",
        "Credit balance is too low",
    ],
)
def test_a_sub_agent_that_refuses_or_returns_an_error_is_named(output):
    assert named("sub_agents_answered", run(*SOUND, sub_agent("a", 6, output), sub_agent("b", 7, SAME))) == ["a"]


def test_an_error_of_a_sub_agent_is_one_sign():
    case = run(*SOUND, sub_agent("a", 6, None, error="GraphRecursionError: Recursion limit of 25 reached"))
    assert named("sub_agents_answered", case) == named("not_exhausted", case) == ["a"]
    assert [sign["metric"] for sign in judged(case).extra["signs"]] == ["step_success"]


@pytest.mark.parametrize(
    "step",
    [
        sub_agent("a", 6, "Maximum number of rounds reached."),
        sub_agent("a", 6, None, error="MaxTurnsExceeded: Max turns (10) exceeded"),
        sub_agent("a", 6, None, error="409: ABORTED: Exceeded maximum tool call iterations (3)"),
        sub_agent("a", 6, None, error="asyncio.TimeoutError: timed out after 60 s"),
        span("a", "agent", SpanKind.CHAIN, 6, output="Agent stopped due to iteration limit or time limit."),
        model("a", 6, "Sorry, need more steps to process this request."),
        model("a", 6, "The maximum reasoning-acting iterations are exceeded."),
        model("a", 6, "Exceeded tool limit of 20 subtasks per task"),
    ],
)
def test_a_limit_of_rounds_or_time_is_named_where_it_is_reached(step):
    assert named("not_exhausted", run(*SOUND, step)) == ["a"]


def test_retries_that_were_used_up_are_no_limit_of_rounds():
    failed = span("a", "run", SpanKind.CHAIN, 6, error="AI_RetryError: Failed after 3 attempts. Last error: no")
    assert named("not_exhausted", run(*SOUND, failed)) == []


def test_a_limit_that_a_customer_asks_about_and_a_tool_that_is_slow_are_none():
    slow = tool("t2", 6, error="TimeoutError: 30 s", port="Oslo")
    case = run(*SOUND, slow, model("m3", 7, "The speed limit was reached by the Aurora at nine."))
    assert named("not_exhausted", case) == []


def ordered(value, *before, argument="order_id", asked="When does my order ORD-4711 come?", **fields):
    case = run(*before, tool("t9", 8, name="track", **{argument: value}), **fields)
    agent = case.trace.by_id["agent"]
    spans = [agent.__class__(**{f: getattr(agent, f) for f in agent.__struct_fields__} | {"input": asked})]
    return extract(
        Trace.of("1" * 32, [*spans, *(each for each in case.trace.spans if each.span_id != "agent")], "batch")
    )


@pytest.mark.parametrize("value", ["ORD-4711", "ord 4711", "#4711", "4711", ["ORD-4711"]])
def test_a_value_of_the_request_is_founded_however_it_is_written(value):
    result = measured("values_founded", ordered(value))
    assert result.status == "not_applicable" or result.value == 1.0


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("order_id", "ORD-9321"), ("orderNumber", "93217"), ("account", 932_176), ("ids", ["ORD-4711", "ORD-9321"]),
        ("to", "anna9321@example.com"), ("url", "https://example.com/orders/93217"), ("q", "W93217"),
    ],
)  # fmt: skip
def test_a_value_of_no_earlier_text_is_named(argument, value):
    assert named("values_founded", ordered(value, argument=argument)) == ["t9"]


def test_a_value_that_the_model_writes_first_is_made_up_all_the_same_and_named_once():
    thought = model("m1", 1, "I call track with the order ORD-9321.", calls=[("track", {"order_id": "ORD-9321"})])
    again = tool("t8", 7, name="cancel", order_id="ORD-9321")
    assert named("values_founded", ordered("ORD-9321", thought, again)) == ["t8"]


def test_values_of_results_prompts_and_earlier_turns_are_founded():
    listed = tool("t1", 1, {"orders": [{"id": 93217}, "A-5512"]}, name="list")
    spoken = model("m1", 3, input_messages=(Message(role="assistant", text="Your order is B-7733."),))
    prompt = model("m2", 3, system_prompt="Escalate to desk D-8844.")
    for value in ("93217", "A-5512", "B-7733", "D-8844"):
        assert named("values_founded", ordered(value, listed, spoken, prompt)) == [], value
    late = tool("t1", 9, {"orders": ["A-5512"]}, name="list")
    assert named("values_founded", ordered("A-5512", late)) == ["t9"], "what comes later is no source"


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("day", "2026-11-24"), ("year", 2026), ("amount", 123_456), ("q", "price of 93217 ships"),
        ("session_id", "S-93217"),
        ("departs", "2026-11-24T10:00:00Z"), ("version", "10.4.3211"), ("total", "93217.50"), ("url", "http://localhost:8080/x"),
        ("code", "for i in range(93217):\n    print(i)"), ("flag", True), ("resolution", "1920x1080"), ("port", 8080),
        ("page", "2026"), ("query", "ORD-9321"),
    ],
)  # fmt: skip
def test_what_an_agent_may_choose_or_reckon_out_is_not_looked_for(argument, value):
    assert measured("values_founded", ordered(value, argument=argument)).status == "not_applicable"


def test_what_is_not_known_names_no_value():
    unknown = span("t1", "agent", SpanKind.TOOL, 1, name="list", tool=ToolCall(name="list", arguments={"a": "b"}))
    assert measured("values_founded", ordered("ORD-9321", unknown)).status == "unavailable"
    assert measured("values_founded", ordered("ORD-9321", asked=None)).status == "unavailable"


def test_calls_of_a_case_without_a_trace_are_held_against_those_before_them():
    calls = (
        ToolCall(name="list", arguments={}, result="orders: A-5512"),
        ToolCall(name="track", arguments={"order_id": "A-5512"}, result="x"),
        ToolCall(name="track", arguments={"order_id": "A-9981"}, result="x"),
    )  # fmt: skip
    result = measured("values_founded", Case(case_id="1", input="Track it.", model_output="Done.", tools_used=calls))
    assert result.value == 0.5
    assert "track.order_id" in result.reason


def said(answer, *steps):
    return run(*steps, model("m9", 50, answer), answer=answer)


NOT_REFUNDABLE = tool("t1", 3, {"ticket": "Aurora", "refundable": False}, name="get_ticket", ticket="Aurora")
NOT_BOOKED = tool("t1", 3, name="book_seat", seat="window", error="SeatLocked: window")


@pytest.mark.parametrize(
    ("answer", "step"),
    [
        ("Good news: the ticket for the Aurora is fully refundable.", NOT_REFUNDABLE),
        ("I have successfully booked the window seat for you.", NOT_BOOKED),
        ("It is done, the window seat has been booked in your name.", NOT_BOOKED),
        (
            "I am sorry to say that the ticket for the Aurora is not refundable.",
            tool("t1", 3, {"ticket": "Aurora", "isRefundable": True}, name="get_ticket", ticket="Aurora"),
        ),
    ],
)
def test_a_result_whose_opposite_is_stated_is_named(answer, step):
    assert named("results_upheld", said(answer, step)) == ["t1"]


@pytest.mark.parametrize(
    ("answer", "steps"),
    [
        ("The ticket for the Aurora is not refundable.", [NOT_REFUNDABLE]),
        ("If the ticket is refundable, you can send it to the office.", [NOT_REFUNDABLE]),
        ("Our service is refundable in all the cases that we know of.", [NOT_REFUNDABLE]),
        ("I could not say that I have booked the window seat.", [NOT_BOOKED]),
        ("I have booked the window seat for you.", [NOT_BOOKED, tool("t2", 5, name="book_seat", seat="window")]),
        ("I have booked the window seat for you.", [NOT_BOOKED, tool("t2", 5, name="call_office", seat="window")]),
        (
            "The ticket for the Aurora is refundable.",
            [NOT_REFUNDABLE, tool("t2", 5, {"ticket": "Bora", "refundable": True}, name="get_ticket", ticket="Bora")],
        ),
    ],
)
def test_what_agrees_is_hedged_is_made_good_or_is_of_another_thing_is_no_sign(answer, steps):
    result = measured("results_upheld", said(answer, *steps))
    assert result.status == "not_applicable" or result.value == 1.0


def test_opposites_are_read_in_english_alone():
    assert measured("results_upheld", said("Gute Nachricht: Das Ticket ist refundable.", NOT_REFUNDABLE)).status == (
        "not_applicable"
    )


def test_a_sign_by_words_lowers_the_value_and_fails_no_run_alone():
    for case in (
        said("Good news: the ticket for the Aurora is fully refundable.", NOT_REFUNDABLE),
        run(*SOUND, model("m3", 6, "We are stuck in a loop, because the same page is loaded again.")),
        run(*SOUND, sub_agent("a", 6, SAME), sub_agent("b", 7, SAME)),
    ):
        verdict = judged(case)
        assert verdict.passed is True
        assert verdict.composite < 1.0


def test_a_trace_without_contents_has_a_verdict_and_no_sign():
    silent = span("m1", "agent", SpanKind.LLM, 1)
    call = span("t1", "agent", SpanKind.TOOL, 2, name="find", tool=ToolCall(name="find"))
    top = span("agent", None, SpanKind.AGENT, 0, agent="harbour")
    verdict = judged(extract(Trace.of("1" * 32, [top, silent, call], "batch")))
    assert verdict.passed is not None, verdict.to_json()
    for name in ("no_stated_trouble", "not_stuck", "outputs_vary", "results_upheld"):
        assert values(verdict)[name] == "not_applicable", "it takes no coverage from a verdict that needs no contents"
    assert values(verdict)["not_exhausted"] == "unavailable"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_signs_are_the_same_in_each_instrumentation(dialect):
    steps = [
        ("agent", {"input": "Track my order ORD-4711.", "output": "I have cancelled the order ORD-4711."}, False),
        ("tool", {"name": "track", "arguments": {"order_id": "ORD-9321"}, "result": "open"}, False),
        ("tool", {"name": "cancel_order", "arguments": {"order_id": "ORD-4711"}, "result": "Error: locked"}, False),
        ("agent", {"name": "writer", "input": "Write it.", "output": "I'm sorry, but I can't help with that."}, False),
        ("agent", {"name": "solver", "input": "Solve it.", "output": "Maximum number of rounds reached."}, False),
        ("agent", {"name": "solver", "input": "Solve it.", "output": SAME}, False),
        ("agent", {"name": "solver", "input": "Solve it.", "output": SAME}, False),
        ("llm", {"text": "I have cancelled the order ORD-4711 and it is done.", "calls": [], "finish": "stop"}, False),
    ]
    case = extract(Trace.of(f"{1:032x}", [normalise(raw) for raw in spans_of(steps, dialect, 1)], "batch"))
    at = {name: [int(each, 16) - 1 for each in named(name, case)] for name in (
        "values_founded", "results_upheld", "sub_agents_answered", "not_exhausted", "outputs_vary",
    )}  # fmt: skip
    assert at == {
        "values_founded": [1], "results_upheld": [2], "sub_agents_answered": [3, 4], "not_exhausted": [4],
        "outputs_vary": [6],
    }  # fmt: skip


@pytest.mark.parametrize("text", ["a1111-", "ORD-", "is refundable ", "I have ", "1 2 ", "\\n4", "a", "漢", "1"])
def test_a_hostile_text_takes_time_in_proportion(text):
    def work(length):
        hostile = (text * length)[:length]
        step = tool("t1", 3, {"refundable": False, "x": hostile}, name="book_seat", order_id="ORD-4711", x=hostile)
        judged(said(hostile + " the is a to", step, model("m3", 5, hostile)))
        measured("values_founded", ordered("ORD-4711", asked=hostile))

    assert_linear(work)


@pytest.mark.parametrize(
    ("metric", "step"),
    [
        ("sub_agents_answered", lambda at: span(f"s{at}", f"s{at - 1}", SpanKind.AGENT, at, output=f"It is {at}.")),
        ("results_upheld", lambda at: tool(f"s{at}", at, name="book_seat", error="SeatLocked")),
    ],
)
def test_a_run_of_thousands_of_steps_takes_time_in_proportion(metric, step):
    cases = {length: said("Done.", *map(step, range(1, length // 20))) for length in (SHORT, LONG)}
    assert_linear(lambda length: measured(metric, cases[length]))


@pytest.mark.parametrize("says", ["It is the aaaaaa one.", "I have now booked aaaaaa."])
@pytest.mark.parametrize("fails", [False, True])
def test_many_facts_are_looked_for_in_many_sentences_in_proportion(says, fails):
    def of(n):
        named = ["".join(letters) for letters in islice(product("abcdefgh", repeat=6), n)]
        facts = [tool("t1", 3, dict.fromkeys(named, fails), name="get_seat")]
        failed = [tool(f"t{at}", 3, name="book_seat", seat=name, error="SeatLocked") for at, name in enumerate(named)]
        return said(f"{says} " * n, *(failed if fails else facts), *(model(f"m{at}", 9, says) for at in range(n)))

    cases = {length: of(length // 40) for length in (SHORT, LONG)}
    assert_linear(lambda length: measured("results_upheld", cases[length]))


@pytest.mark.parametrize(
    ("answer", "stated"),
    [
        ("The ticket is is now fully active.", True),
        ("The tickets are open, and the ticket was Active.", True),
        ("The ticket has been activated, is inactive, and is active_until May.", False),
        ("The ticket isn't active.", False),
    ],
)
def test_the_whole_word_is_stated_wherever_it_stands(answer, stated):
    step = tool("t1", 3, {"ticket": "Aurora", "active": False}, name="get_ticket", ticket="Aurora")
    assert named("results_upheld", said(answer, step)) == (["t1"] if stated else [])


def test_many_values_are_looked_up_among_many_in_proportion():
    def of(steps):
        asked = " ".join(f"A{at:06}" for at in range(20 * steps))
        return ordered("A000001", *(tool(f"s{at}", at, name="track", order_id=f"A{at:06}") for at in range(1, steps)),
                       asked=asked)  # fmt: skip

    cases = {length: of(length // 20) for length in (SHORT, LONG)}
    assert_linear(lambda length: measured("values_founded", cases[length]))


def test_reasons_hold_no_values():
    found = judged(ordered("ORD-9321"))
    assert "9321" not in json.dumps(found.to_json(), default=str)
