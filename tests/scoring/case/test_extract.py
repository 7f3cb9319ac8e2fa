"""From a trace to its case: what is counted once, what is flagged, what stays unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sidejudge.scoring.case.case import Utterance
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.agent_runs import NAMED_BY_SPAN
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, ToolCall, Unread, Usage
from sidejudge.scoring.trace.tool_calls import asks_for_tools
from sidejudge.scoring.trace.trace import Trace
from tests.spans import span, trace

A, L, T, C, R, O = SpanKind.AGENT, SpanKind.LLM, SpanKind.TOOL, SpanKind.CHAIN, SpanKind.RETRIEVER, SpanKind.OTHER  # noqa: E741  # kinds


def _span(span_id: str, parent: str | None, kind: SpanKind, start: int, end: int, **fields: Any) -> Span:
    return Span(
        trace_id="t", span_id=span_id, parent_id=parent, name=fields.pop("name", span_id), kind=kind, dialect="test",
        start_ns=start * 1_000_000, end_ns=end * 1_000_000, **fields,
    )  # fmt: skip


def _case(*spans: Span, completion: Any = "batch", **options: Any) -> Any:
    return extract(Trace.of("t", spans, completion), **options)


def _asks(*calls: ToolCall) -> tuple[Message, ...]:
    return (Message(role="assistant", tool_calls=calls),)


def _call(name: str, arguments: Any = None, call_id: str | None = None) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, call_id=call_id)


def test_an_agent_called_twice_stands_twice_and_its_own_steps_do_not() -> None:
    case = _case(
        _span("root", None, A, 0, 99, agent="boss"),
        _span("llm", "root", L, 1, 2, agent="boss"),
        _span("one", "root", A, 3, 10, agent="research"),
        _span("wrapper", "one", C, 4, 9, agent="research"),
        _span("two", "root", A, 11, 20, agent="research"),
    )
    assert case.agents_called == ("boss", "research", "research")


def test_an_agent_that_calls_itself_through_a_tool_runs_again_but_a_wrapper_of_it_does_not() -> None:
    case = _case(
        _span("a", None, A, 0, 99, agent="a"),
        _span("same", "a", A, 1, 98, agent="a"),
        _span("tool", "same", T, 2, 50, agent="a", tool=_call("again")),
        _span("inner", "tool", A, 3, 40, agent="a"),
    )
    assert case.agents_called == ("a", "a")


def test_steps_that_name_their_agent_stand_for_its_run() -> None:
    steps = [("s1", "boss"), ("s2", "research"), ("s3", "research"), ("s4", "boss")]
    case = _case(
        _span("root", None, C, 0, 99),
        *(_span(name, "root", C, i * 10, i * 10 + 5, agent=agent) for i, (name, agent) in enumerate(steps)),
    )
    assert case.agents_called == ("boss", "research", "boss")


@pytest.mark.parametrize("top", [C, O])
def test_a_plain_span_around_one_step_of_an_agent_begins_no_run_but_one_around_several_may(top: SpanKind) -> None:
    root = _span("root", None, top, 0, 99)
    first = _span("s1", "root", C, 1, 9, agent="desk")
    once = (_span("request", "root", O, 10, 19), _span("retry", "request", O, 11, 18))
    wrapped = _span("s2", "retry", C, 12, 17, agent="desk")
    beside = _span("s3", "retry", C, 14, 16, agent="desk")
    assert _case(root, first, *once, wrapped).agents_called == (("desk",) if top is C else ("desk", "desk"))
    assert _case(root, first, *once, wrapped, beside).agents_called == ("desk", "desk")


@pytest.mark.parametrize(("kind", "runs", "handoff"), [("agent.name (by shape)", 1, False), ("agent.kind", 3, True)])
def test_spans_that_are_agents_only_by_naming_one_are_its_steps(kind: str, runs: int, handoff: bool) -> None:  # noqa: FBT001  # expected
    named = {"agent": "desk", "provenance": {"agent": "agent.name", "kind": kind}}
    case = _case(
        _span("root", None, C, 0, 99),
        _span("list_tools", "root", A, 1, 2, **named),
        _span("generate", "root", A, 3, 90, **named),
        _span("tool", "generate", T, 4, 80, tool=_call("look_up")),
        _span("call_tool", "tool", A, 5, 70, **named),
    )
    assert case.agents_called == ("desk",) * runs
    assert [call.handoff for call in case.tools_used] == [handoff]


def test_a_trace_without_agents_and_tools_has_none_rather_than_unknown_ones() -> None:
    case = _case(_span("llm", None, L, 0, 1, output="Hi"))
    assert (case.agents_called, case.tools_used) == ((), ())


def test_a_model_call_that_failed_called_no_tool() -> None:
    failed = _span("llm", "root", L, 0, 1, error="HTTP 500")
    assert _case(_span("root", None, C, 0, 9), failed).tools_used == ()
    silent = _span("later", "root", L, 2, 3)
    assert _case(_span("root", None, C, 0, 9), failed, silent).tools_used is None


def test_tools_are_unknown_where_models_answered_without_contents() -> None:
    case = _case(_span("llm", None, L, 0, 1, capture_switch="SWITCH=on"))
    assert case.tools_used is None
    assert (case.content_captured, case.capture_switch, case.model_output) == (False, "SWITCH=on", None)


def test_tools_are_unknown_where_one_answer_was_not_captured_that_may_hold_a_call() -> None:
    asked, made = Message(role="user", text="Where?"), Message(role="assistant", tool_calls=(_call("find", {}, "c1"),))
    last = _span("m2", "root", L, 2, 3, output="Here.", input_messages=(asked, made))
    root = _span("root", None, C, 0, 9)

    def used(*steps: Span) -> object:
        return _case(root, *steps).tools_used

    other = replace(last, input_messages=(Message(role="user", text="Who?"), made))
    assert used(_span("m1", "root", L, 0, 1, input_messages=(asked,)), other) is None
    assert used(_span("m1", "root", L, 0, 1, tool_definitions=("{}",)), replace(last, input_messages=())) is None
    assert used(_span("m1", "root", L, 0, 1, input_messages=(asked, made)), last) == (), "of an earlier turn"
    assert used(_span("m1", "root", L, 0, 1, input_messages=(asked,), output="Hm."), last) == ()
    assert used(_span("m1", "root", L, 0, 1, input_messages=(asked,), error="HTTP 500"), last) == ()


@pytest.mark.parametrize(("said", "shown"), [("", None), ("", ""), ("Wait.", "Wait.")])
def test_calls_that_an_answer_leaves_out_are_those_that_the_next_call_shows_for_it(
    said: str, shown: str | None
) -> None:
    """Ollama, by OpenLLMetry, and Pipecat."""
    calls = (_call("find", {}, None), _call("sort", {}, None))
    asked, made = Message(role="user", text="Where?"), Message(role="assistant", text=said, tool_calls=calls)
    results = Message(role="tool", text='"There."'), Message(role="tool", text="Done.")
    answer = () if shown is None else (Message(role="assistant", text=shown),)
    first = _span("m1", "root", L, 0, 1, input_messages=(asked,), output=shown, output_messages=answer)
    last = _span("m2", "root", L, 2, 3, input_messages=(asked, made, *results), output="Here.")
    case = _case(_span("root", None, C, 0, 9), last, first)
    assert [(call.name, call.result) for call in case.tools_used or ()] == [("find", "There."), ("sort", "Done.")]


def test_tools_are_unknown_where_a_model_stopped_for_calls_that_nothing_shows() -> None:
    """LlamaIndex in TypeScript, by OpenLLMetry."""
    asks = _span("llm1", "root", L, 0, 1, finish_reason="tool_calls", output_messages=(Message(role="assistant"),))
    answers = _span("llm2", "root", L, 2, 3, finish_reason="stop", output="Hi.")
    assert _case(_span("root", None, A, 0, 9), asks, answers).tools_used is None
    assert _case(_span("root", None, A, 0, 9), answers).tools_used == ()


def test_calls_and_results_without_ids_in_one_answer_belong_together_by_name_and_order() -> None:
    def held(*results: tuple[str, str]) -> Any:
        answers = tuple(Message(role="tool", name=name, text=text) for name, text in results)
        calls = _asks(_call("find", {"q": 1}), _call("add", {"n": 1}), _call("find", {"q": 2}))
        messages = (*calls, *answers, Message(role="assistant", text="Both."))
        return _case(
            _span("turn", None, C, 0, 9), _span("llm", "turn", L, 1, 8, output="Both.", output_messages=messages)
        )

    case = held(("find", "one"), ("add", "two"), ("find", "three"))
    assert [(call.name, call.result) for call in case.tools_used] == [
        ("find", "one"),
        ("add", "two"),
        ("find", "three"),
    ]
    assert not asks_for_tools(case.trace.models[0])
    assert asks_for_tools(held(("find", "one"), ("add", "two")).trace.models[0])


def test_a_span_without_contents_hides_no_call_where_another_has_the_answer_of_the_same_response() -> None:
    made = _asks(_call("find", {}, "c1"))
    turn = _span("turn", None, C, 0, 9)
    instrumented = _span("m1", "turn", L, 1, 4, output="Ann.", input_messages=made, response_id="msg-1")
    of_the_sdk = _span("m2", "m1", L, 2, 3, response_id="msg-1", tool_definitions=("{}",))
    assert _case(turn, instrumented, of_the_sdk).tools_used == (), "calls of an earlier turn"
    assert _case(turn, instrumented, replace(of_the_sdk, response_id="msg-2")).tools_used is None
    assert _case(turn, instrumented, replace(of_the_sdk, response_id=None)).tools_used is None


def test_a_span_without_contents_hides_no_call_where_the_one_above_it_has_the_answer_to_the_same_question() -> None:
    asked = (Message(role="user", text="Where?"),)
    whole = _span("m1", None, L, 1, 9, output="Here.", input_messages=asked, tool_definitions=("{}",))
    raw = _span("m2", "m1", L, 2, 4, input_messages=asked, tool_definitions=("{}",))
    assert _case(whole, raw).tools_used == ()
    assert _case(whole, raw, replace(raw, span_id="m3")).tools_used is None, "two calls"
    assert _case(whole, replace(raw, input_messages=(*asked, *asked))).tools_used is None, "another call"
    assert _case(replace(whole, input_messages=()), replace(raw, input_messages=())).tools_used is None, "not known"
    assert _case(replace(whole, output=None), raw).tools_used is None


def test_a_tool_span_and_the_call_in_the_message_are_one_call() -> None:
    requested = _call("find", {"q": "x"}, "c1")
    for spanned in (
        _call("find", {"q": "x"}, "c1"),  # by id
        _call("plugin-find", {"q": "x"}, "c1"),  # by id, under another name
        _call("find", {"q": "x"}, "other"),  # by name and arguments
        _call("find", "x"),  # by name and the only argument, sent bare
        _call("find"),  # by name, in order
    ):
        case = _case(
            _span("root", None, A, 0, 9, agent="a"),
            _span("llm", "root", L, 1, 2, output_messages=_asks(requested)),
            _span("tool", "root", T, 3, 4, tool=spanned),
            _span("next", "root", L, 5, 6, input_messages=(Message(role="tool", text="found", tool_call_id="c1"),)),
        )
        assert case.tools_used == (
            ToolCall(name=spanned.name, arguments={"q": "x"}, result="found", call_id="c1"),
        ), spanned  # fmt: skip


@pytest.mark.parametrize(("bare", "arguments"), [("x", {"q": "x"}), ("y", "y")])
def test_an_attempt_whose_only_argument_is_sent_bare_is_of_the_call_that_a_message_shows(
    bare: str, arguments: Json
) -> None:
    """A framework calls a tool that failed once more; of the attempts only the last one bears the call's id."""
    case = _case(
        _span("root", None, A, 0, 9, agent="a"),
        _span("llm", "root", L, 1, 2, output_messages=_asks(_call("find", {"q": "x"}, "c1"))),
        _span("first", "root", T, 3, 4, tool=replace(_call("find", bare), error="down"), error="down"),
        _span("again", "root", T, 5, 6, tool=replace(_call("find", "x", "c1"), result="found")),
    )
    assert case.tools_used == (
        ToolCall(name="find", arguments=arguments, error="down"),
        ToolCall(name="find", arguments={"q": "x"}, result="found", call_id="c1"),
    )


@pytest.mark.parametrize("whole", [False, True], ids=["the result alone", "the whole history"])
def test_a_span_below_a_model_that_shows_no_run_is_what_the_model_requested(whole: bool) -> None:  # noqa: FBT001  # a parameter of the test
    ran = _call("find", {"q": "x"})
    question = (Message(role="user", text="Where?"),) if whole else ()
    asked = _asks(replace(ran, call_id="c1")) if whole else ()
    answer = Message(role="tool", text="found", tool_call_id="c1")
    for tools, result, error in (
        ((), "found", None),
        ((ran,), "found", None),
        ((replace(ran, error="gone"),), None, "gone"),
    ):
        case = _case(
            _span("root", None, A, 0, 9, agent="a"),
            _span("llm", "root", L, 1, 2, output=None if whole else "Wait.", input_messages=question),
            _span("asked", "llm", T, 1, 2, tool=replace(ran, call_id="c1")),
            *(_span("ran", "root", T, 3, 4, tool=tool) for tool in tools),
            _span("next", "root", L, 5, 6, input_messages=(*question, *asked, answer)),
        )
        assert case.tools_used == (replace(ran, result=result, error=error, call_id="c1"),), tools


@pytest.mark.parametrize(("below", "above"), [({"sum": 3}, None), (None, {"sum": 3})])
def test_a_call_that_a_span_below_a_model_shows_and_the_agent_repeats_is_one(below: Json, above: Json) -> None:
    case = _case(
        _span("root", None, A, 0, 9, agent="a", output_messages=_asks(_call("pay", above, "c1"))),
        _span("llm", "root", L, 1, 2, output="Wait."),
        _span("asked", "llm", T, 1, 2, tool=_call("pay", below, "c1")),
    )
    assert case.tools_used == (_call("pay", {"sum": 3}, "c1"),)


@pytest.mark.parametrize(("below", "above"), [('{"sum": ', None), (None, '{"sum": ')])
def test_a_call_without_arguments_is_the_one_under_its_id_that_has_them(below: Json, above: Json) -> None:
    case = _case(
        _span("root", None, A, 0, 9, agent="a"),
        _span("call", "root", L, 1, 4, output_messages=_asks(_call("pay", above, "c1"))),
        _span("chat", "call", L, 2, 3, output_messages=_asks(_call("pay", below, "c1"))),
    )
    assert case.tools_used == (_call("pay", '{"sum": ', "c1"),)


def test_a_tool_that_ran_with_its_defaults_beside_the_requested_arguments_ran_once() -> None:
    def used(requested: ToolCall, *ran: ToolCall) -> int:
        tools = [_span(f"tool{at}", "root", T, 3 + at, 4 + at, tool=call) for at, call in enumerate(ran)]
        asked = _span("llm", "root", L, 1, 2, output_messages=_asks(requested))
        return len(_case(_span("root", None, A, 0, 99, agent="a"), asked, *tools).tools_used)

    requested = _call("find", {"q": "x", "n": "3"}, "c1")
    assert used(requested, _call("find", {"q": "x", "n": 3, "sort": "asc"})) == 1
    assert used(requested, _call("find", {"q": "x", "n": 3}), _call("find", {"q": "x", "n": 3})) == 2, "ran again"
    assert used(requested, _call("find", {"q": "y", "n": 3, "sort": "asc"})) == 2
    assert used(requested, _call("find", {"q": "x", "sort": "asc"})) == 2
    assert used(requested, _call("find", {"q": "x", "n": 3, "sort": "asc"}, "c2")) == 2, "another call by its id"
    cut = _call("find", '{"q": ', "c1")
    assert used(cut, _call("find", {"q": None})) == 1, "what is no JSON was mended"
    assert used(cut, _call("seek", {"q": None})) == 2


def test_arguments_that_a_span_leaves_out_are_those_of_the_call_that_it_carried_out() -> None:
    requested = {"q": "x", "options": {"n": [1]}}
    for reported, call_id, wanted in (
        ({"q": "x"}, "c", requested), ({}, "c", requested), ({"q": "y"}, "c", {"q": "y"}),
        ({"q": "x"}, None, {"q": "x"}),
        ({**requested, "more": 1}, "c", {**requested, "more": 1}),
    ):  # fmt: skip
        case = _case(
            _span("llm", None, L, 0, 1, output_messages=_asks(_call("find", requested, "c"))),
            _span("tool", None, T, 2, 3, tool=_call("find", reported, call_id)),
        )
        assert case.tools_used[-1].arguments == wanted, reported


def test_a_call_that_a_person_consented_to_has_the_arguments_of_the_run_before() -> None:
    asked = (Message(role="user", text="Where?"), *_asks(_call("find", {"q": "x"}, "c")))
    case = _case(
        _span("tool", None, T, 0, 1, tool=_call("find", "x", "c")),
        _span("llm", None, L, 2, 3, input_messages=asked, output_messages=(Message(role="assistant", text="There."),)),
    )
    assert [call.arguments for call in case.tools_used] == [{"q": "x"}]


def test_equal_calls_are_paired_in_order_and_each_counts() -> None:
    calls = [_call("find", {"q": "x"}, f"c{n}") for n in range(3)]
    case = _case(
        _span("llm", None, L, 0, 1, output_messages=_asks(*calls)),
        *(_span(f"t{n}", "llm", T, n + 2, n + 3, tool=_call("find", {"q": "x"})) for n in range(3)),
    )
    assert [call.call_id for call in case.tools_used] == ["c0", "c1", "c2"]


def test_calls_that_one_answer_asks_for_side_by_side_stand_as_it_asked_whichever_began_first() -> None:
    for first, second in ((2, 3), (3, 2), (2, 2)):
        case = _case(
            _span("llm", None, L, 0, 1, output_messages=_asks(_call("find", {}, "c0"), _call("weigh", {}, "c1"))),
            _span("weighing", None, T, second, 9, tool=_call("weigh", {})),
            _span("finding", None, T, first, 8, tool=_call("find", {})),
            _span("next", None, L, 10, 11, output_messages=_asks(_call("add", {}, "c2"))),
            _span("adding", None, T, 12, 13, tool=_call("add", {})),
        )
        assert [call.name for call in case.tools_used] == ["find", "weigh", "add"]


def test_a_call_without_a_tool_span_gets_its_result_from_the_message_that_answers_it() -> None:
    answer = Message(role="tool", text='{"rows": 3}', tool_call_id="c1")
    failed = Message(role="tool", text="no such table", tool_call_id="c2", error=True)
    case = _case(
        _span("root", None, C, 0, 9),
        _span(
            "llm", "root", L, 1, 2, output_messages=_asks(_call("sql", {"q": 1}, "c1"), _call("sql", {"q": 2}, "c2"))
        ),
        _span("next", "root", L, 3, 4, input_messages=(answer, failed), output="Done"),
    )
    assert [(call.result, call.error) for call in case.tools_used] == [({"rows": 3}, None), (None, "no such table")]


def test_an_answer_is_found_though_the_history_calls_the_call_by_another_id() -> None:
    case = _case(
        _span("one", None, L, 0, 1, output_messages=_asks(_call("find", {"n": 1}, "item_1"))),
        _span("two", None, L, 2, 3, input_messages=(
            *_asks(_call("find", {"n": 1}, "call_1")), Message(role="tool", text="here", tool_call_id="call_1"),
        )),
    )  # fmt: skip
    (call,) = case.tools_used
    assert (call.result, call.call_id) == ("here", "item_1")


def test_answers_without_ids_belong_to_the_calls_of_that_name_or_of_none_in_order() -> None:
    requested = (_call("find", {"n": 1}), _call("weigh", {"n": 2}), _call("find", {"n": 3}))
    for names in (("find", "weigh", "find"), (None, None, None)):
        reported = tuple(Message(role="tool", text=f"r{n}", name=name) for n, name in enumerate(names))
        earlier = (Message(role="tool", text="of an earlier turn", name=names[0]),)
        case = _case(
            _span("one", None, L, 0, 1, input_messages=earlier, output_messages=_asks(*requested)),
            _span("two", None, L, 2, 3, input_messages=(*earlier, *reported)),
        )
        assert [call.result for call in case.tools_used] == ["r0", "r1", "r2"]


def test_an_answer_without_an_id_is_not_one_to_a_call_that_was_made_after_it() -> None:
    earlier = (Message(role="tool", text="of an earlier turn", name="find"),)
    case = _case(_span("one", None, L, 0, 1, input_messages=earlier, output_messages=_asks(_call("find", {"n": 1}))))
    (call,) = case.tools_used
    assert call.result is None


def test_a_streamed_answer_that_made_one_call_of_several_without_an_id_called_what_the_next_history_has() -> None:
    asked = (Message(role="user", text="Weather and tide?"),)
    made = (_call("weather", {"city": "Kiel"}, "c1"), _call("tide", {"port": "Husum"}, "c2"))
    results = tuple(
        Message(role="tool", text=text, tool_call_id=each) for text, each in (("7 °C", "c1"), ("noon", "c2"))
    )
    streamed = _span("llm", "root", L, 1, 2, input_messages=asked,
                     output_messages=_asks(_call("tide", '{"city": "Kiel"}{"port": "Husum"}')))  # fmt: skip
    following = _span("llm2", "root", L, 3, 4, input_messages=(*asked, *_asks(*made), *results), output="So.")
    called = _case(_span("root", None, A, 0, 9), streamed, following).tools_used
    assert [(call.name, call.arguments, call.result) for call in called] == [
        ("weather", {"city": "Kiel"}, "7 °C"), ("tide", {"port": "Husum"}, "noon"),
    ]  # fmt: skip
    early = replace(following, start_ns=streamed.end_ns - 999_999)  # begun on a whole millisecond, in JavaScript
    assert _case(_span("root", None, A, 0, 9), streamed, early).tools_used == called
    others = replace(following, input_messages=(*asked, *_asks(_call("other", None, "c1"))))
    assert [call.name for call in _case(_span("root", None, A, 0, 9), streamed, others).tools_used] == ["tide"]


def test_of_equal_calls_a_lone_span_carried_out_the_one_before_it_and_bare_calls_have_the_history_s_arguments() -> None:
    """OpenLLMetry for JavaScript sends no span of a tool that raises, and no arguments of streamed calls."""
    first, again = (_call("find", {"q": 1}, each) for each in ("c1", "c2"))
    failed = Message(role="tool", text="Error: down", tool_call_id="c1")
    spans = (
        _span("llm1", "root", L, 0, 1, output_messages=_asks(replace(first, arguments={}))),
        _span("llm2", "root", L, 2, 3, input_messages=(*_asks(first), failed), output_messages=_asks(again)),
        _span("find", "root", T, 4, 5, tool=ToolCall(name="find", arguments={"q": 1}, result="here")),
    )
    called = _case(_span("root", None, A, 0, 9), *spans).tools_used
    assert [(call.call_id, call.arguments, call.result) for call in called] == [
        ("c1", {"q": 1}, "Error: down"), ("c2", {"q": 1}, "here"),
    ]  # fmt: skip


def test_calls_of_earlier_turns_in_the_history_are_not_calls_of_this_trace() -> None:
    earlier = Message(role="assistant", tool_calls=(_call("find", {"q": "old"}, "c0"),))
    case = _case(
        _span("llm", None, L, 0, 1, input_messages=(earlier,), output_messages=(Message(role="assistant", text="Hi"),))
    )
    assert case.tools_used == ()


def test_the_same_call_told_by_two_spans_of_one_model_call_counts_once() -> None:
    requested = _asks(_call("find", {"q": "x"}, "c1"))
    case = _case(
        _span("outer", None, L, 0, 9, output_messages=requested),
        _span("inner", "outer", L, 1, 8, output_messages=requested),
    )
    assert [call.name for call in case.tools_used] == ["find"]


def test_a_call_that_two_spans_of_one_response_name_differently_counts_once_and_has_the_id_that_is_answered() -> None:
    call, other = _call("find", {"q": "x"}), _call("find", {"q": "y"})
    items, calls = (
        [replace(each, call_id=f"{of}{n}") for n, each in enumerate((call, other))] for of in ("fc", "call")
    )
    answers = tuple(Message(role="tool", text="found", tool_call_id=f"call{n}") for n in range(2))

    def ids(*responses: str, at: int = 1) -> list[str | None]:
        case = _case(
            _span("outer", None, L, 0, 9, output_messages=_asks(*calls), response_id=responses[0]),
            _span("inner", "outer", L, at, at + 7, output_messages=_asks(*items), response_id=responses[1]),
            _span("next", None, L, 30, 40, input_messages=answers, output="Here.", response_id="last"),
        )
        return [each.call_id for each in case.tools_used]

    assert ids("r", "r") == ["call0", "call1"]
    assert len(ids("r", "s")) == 4, "two responses"
    assert len(ids("r", "r", at=12)) == 4, "an id that a server gives to each of its responses"


@pytest.mark.parametrize("end", [8, 9], ids=["later", "in the same millisecond"])
def test_a_call_that_the_outer_of_two_spans_has_without_its_id_counts_once(end: int) -> None:
    call = _call("find", {"q": "x"})
    case = _case(
        _span("a", None, L, 0, 9, output_messages=_asks(call)),
        _span("b", "a", L, 0, end, output_messages=_asks(replace(call, call_id="c1"))),
    )
    assert [each.call_id for each in case.tools_used] == ["c1"]


@pytest.mark.parametrize(
    "name", ["transfer_to_billing", "handoff", "handoff_to_x", "delegate_work", "transfer-to-x", "hand_off"]
)
def test_pseudo_tools_that_pass_the_work_on_are_flagged_by_their_name(name: str) -> None:
    (call,) = _case(_span("tool", None, T, 0, 1, tool=_call(name))).tools_used
    assert call.handoff


@pytest.mark.parametrize("name", ["transfer_money", "delegates", "find_handoff_notes", "transferred", "pdf_retrieval"])
def test_tools_with_like_names_are_tools(name: str) -> None:
    (call,) = _case(_span("tool", None, T, 0, 1, tool=_call(name))).tools_used
    assert not call.handoff


def test_a_tool_told_by_a_framework_and_by_an_instrumentation_of_it_is_one_call() -> None:
    case = _case(
        _span("upper", None, T, 0, 9, tool=_call("look_up", {"n": 1})),
        _span("between", "upper", C, 1, 8),
        _span("lower", "between", T, 2, 7, tool=ToolCall(name="look_up", error="KeyError: n", call_id="c")),
    )
    (call,) = case.tools_used
    assert (call.arguments, call.result, call.error, call.call_id) == ({"n": 1}, None, "KeyError: n", "c")


def test_a_tool_below_a_tool_is_another_call_where_anything_that_is_told_of_them_differs() -> None:
    for lower in (_call("other"), _call("look_up", {"n": 2}), _call("look_up", {"n": 1}, "d")):
        case = _case(
            _span("upper", None, T, 0, 9, tool=_call("look_up", {"n": 1}, "c")),
            _span("lower", "upper", T, 2, 7, tool=lower),
        )
        assert [call.name for call in case.tools_used] == ["look_up", lower.name]


@pytest.mark.parametrize(
    ("upper", "source", "calls"),
    [
        ("mcp__sky__look_up", "mcp.method.name", 1),
        ("sky_look_up", "mcp.method.name", 1),
        ("sky.look_up", "mcp.tool.name (by shape)", 1),
        ("relook_up", "mcp.method.name", 2),
        ("sky_look_up", "gen_ai.operation.name", 2),
    ],
)
def test_a_request_of_mcp_is_the_call_to_whose_name_the_framework_adds_the_server_s(
    upper: str, source: str, calls: int
) -> None:
    lower = replace(_span("lower", "upper", T, 2, 7, tool=_call("look_up")), provenance={"kind": source})
    case = _case(_span("upper", None, T, 0, 9, tool=_call(upper, {"n": 1})), lower)
    assert [call.name for call in case.tools_used] == [upper, "look_up"][:calls]


@pytest.mark.parametrize(
    ("name", "source", "at", "calls"),
    [
        ("mcp__sky__look_up", "mcp.method.name", 2, 2),
        ("look_up", "mcp.method.name", 2, 2),
        ("mcp__sky__look_up", "gen_ai.operation.name", 2, 4),
        ("mcp__sky__look_up", "mcp.method.name", 12, 4),
        ("relook_up", "mcp.method.name", 2, 4),
    ],
)
def test_requests_of_mcp_beside_the_calls_of_a_framework_are_those_calls(
    name: str, source: str, at: int, calls: int
) -> None:
    """A server in the process of an agent of Claude's SDK, whose spans stand beside the agent's."""
    asked = [_span(f"c{n}", "root", T, n, 9, tool=_call(name, {"n": n})) for n in (0, 1)]
    request = replace(_span("r", "root", T, at, at + 1, tool=ToolCall(name="look_up")), provenance={"kind": source})
    case = _case(_span("root", None, C, 0, 20), *asked, request, replace(request, span_id="s"))
    assert len(case.tools_used) == calls
    assert [call.arguments for call in case.tools_used[:2]] == [{"n": 0}, {"n": 1}]


def test_a_model_by_which_a_run_is_checked_neither_asks_nor_answers_for_it() -> None:
    calls = (
        _span("guard", "root", SpanKind.GUARDRAIL, 0, 1),
        _span("g", "guard", L, 0, 1, input="Is it safe? Where is A-1?", output="SAFE"),
        _span("llm", "root", L, 2, 3, input="Where is A-1?", output="In Riga."),
        _span("eval", "root", SpanKind.EVALUATOR, 4, 5),
        _span("e", "eval", L, 4, 5, input="Rate it.", output="0.9"),
    )
    case = _case(_span("root", None, C, 0, 9), *calls)
    assert (case.input, case.model_output) == ("Where is A-1?", "In Riga.")
    alone = _case(_span("root", None, C, 0, 9), *calls[:2])  # a service that does nothing else
    assert alone.model_output == "SAFE"


def test_of_calls_that_have_nothing_to_do_with_each_other_the_last_is_asked_what_it_answers() -> None:
    batch = [_span(f"l{n}", "root", L, n, n + 1, input=f"Sort item {n}.", output=f"bin {n}") for n in (1, 2, 3)]
    failed = _span("l4", "root", L, 4, 5, input="Sort item 4.", error="429")
    case = _case(_span("root", None, O, 0, 9), *batch, failed)
    assert (case.input, case.model_output) == ("Sort item 3.", "bin 3")
    chain = [
        _span("a", "root", L, 1, 2, input="Write on bees.", output="Bees hum."),
        _span("b", "root", L, 3, 4, input="Translate: Bees hum.", output="Bienen summen."),
    ]
    case = _case(_span("root", None, O, 0, 9), *chain)
    assert (case.input, case.model_output) == ("Write on bees.", "Bienen summen.")
    asked = _span("a", "root", L, 1, 2, input="Where is A-1?", output_messages=_asks(_call("find", {"id": "A-1"})))
    told = _span("b", "root", L, 3, 4, input="Riga", output="In Riga.")
    assert _case(_span("root", None, O, 0, 9), asked, told).input == "Where is A-1?"


def test_an_agent_below_the_lower_of_two_spans_of_one_call_makes_it_a_hand_off() -> None:
    case = _case(
        _span("upper", None, T, 0, 9, tool=_call("ask_around", {"n": 1})),
        _span("lower", "upper", T, 2, 7, tool=_call("ask_around", call_id="c")),
        _span("run", "lower", A, 3, 6, agent="scout"),
    )
    (call,) = case.tools_used
    assert call.handoff


def test_what_a_part_of_a_tool_holds_is_no_answer_that_was_not_understood() -> None:
    held = (Unread(source="output", shape="list of 1 object", field="output", client="acme", cut=False),)

    def unread(kind: SpanKind, *between: Span) -> tuple[Unread, ...]:
        above = _span("above", None, kind, 0, 9, tool=_call("find") if kind is T else None)
        below = between[-1].span_id if between else "above"
        return _case(above, *between, _span("inner", below, O, 1, 2, unread=held)).unread_answer

    step = _span("step", "above", O, 1, 2)
    assert (unread(T), unread(T, step), unread(R)) == ((), (), ())
    assert unread(A) == unread(C) == held
    assert unread(T, _span("boss", "above", A, 1, 2, agent="boss")) == held, "an agent that is used as a tool"


@pytest.mark.parametrize(("span_name", "calls"), [
    ("lookup [17]", ["lookup"]), ("lookup/17", ["lookup"]), ("Tool.run(lookup)", ["lookup"]),
    ("lookup-17", ["lookup"]), ("lookup_all", ["lookup", "lookup_all"]), ("lookup-all", ["lookup", "lookup-all"]),
])  # fmt: skip
def test_a_tool_that_only_a_span_name_with_more_in_it_names_is_the_requested_one(
    span_name: str, calls: list[str]
) -> None:
    asked = _span("llm", None, L, 0, 1, output_messages=_asks(_call("lookup", {"id": 1}, "c")))
    ran = _span("tool", None, T, 2, 3, tool=_call(span_name, {"id": 1}), provenance={"tool.name": NAMED_BY_SPAN})
    assert [call.name for call in _case(asked, ran).tools_used] == calls
    assert len(_case(asked, replace(ran, provenance={})).tools_used) == 2, (
        "a name that an attribute states is the tool's"
    )


def test_a_tool_whose_name_a_model_is_told_in_another_spelling_is_one_call() -> None:
    case = _case(
        _span("llm", None, L, 0, 1, output_messages=_asks(_call("find_a_room", {"n": 1}, "c"))),
        _span("tool", None, T, 2, 3, tool=ToolCall(name="Find a room", arguments={"n": 1}, result="14")),
    )
    (call,) = case.tools_used
    assert (call.name, call.result, call.call_id) == ("Find a room", "14", "c")


def test_an_agent_as_a_tool_is_flagged_by_the_run_below_it_or_by_its_name() -> None:
    case = _case(
        _span("boss", None, A, 0, 99, agent="boss"),
        _span(
            "llm",
            "boss",
            L,
            1,
            2,
            output_messages=_asks(_call("ask_research", {"q": 1}, "c1"), _call("ask_price", {}, "c2")),
        ),
        _span("tool", "boss", T, 3, 50, tool=_call("expert")),
        _span("expert", "tool", A, 4, 40, agent="lawyer"),
        _span("inner", "expert", T, 5, 6, tool=_call("lookup")),
        _span("research", "boss", A, 60, 70, agent="research"),
    )
    assert {call.name: call.handoff for call in case.tools_used} == {
        "ask_research": True, "ask_price": False, "expert": True, "lookup": False,
    }  # fmt: skip


def test_a_call_without_a_span_is_a_hand_off_where_an_agent_right_below_the_asking_one_gave_its_answer() -> None:
    for returned, handoff in (("Part 7.", True), ("Part 8.", False)):
        case = _case(
            _span("boss", None, A, 0, 99, agent="boss", output_messages=(
                *_asks(_call("search", {"q": 1}, "c1")), Message(role="tool", text="Part 7.", tool_call_id="c1"),
            )),
            _span("clerk", "boss", A, 3, 50, agent="clerk", output=returned),
        )  # fmt: skip
        assert [call.handoff for call in case.tools_used] == [handoff]


def test_tokens_count_where_nothing_below_reports_them_and_once_a_response() -> None:
    case = _case(
        _span("agent", None, A, 0, 99, agent="a", usage=Usage(input=99, output=99), cost_usd=9.0),
        _span("one", "agent", L, 1, 5, usage=Usage(input=10, output=1), cost_usd=0.25),
        _span("sdk", "one", L, 2, 4, usage=Usage(input=10, output=1), response_id="r1"),
        _span("twin", "agent", L, 2, 4, usage=Usage(input=10, output=1), response_id="r1"),
        _span("two", "agent", L, 6, 7, usage=Usage(input=5, output=2), response_id="r2"),
    )
    assert (case.input_tokens, case.output_tokens, case.cost_usd) == (15, 3, 0.25)


@pytest.mark.parametrize(("reason", "tokens"), [("error", 10), ("stop", None)])
def test_a_call_that_ended_in_an_error_leaves_no_tokens_out(reason: str, tokens: int | None) -> None:
    case = _case(
        _span("one", None, L, 0, 1, usage=Usage(input=10, output=1), output_messages=_asks(_call("f"))),
        _span("two", None, L, 2, 3, finish_reason=reason, output_messages=(Message(role="assistant"),)),
    )
    assert case.input_tokens == tokens


def test_a_call_whose_span_holds_what_its_answer_led_to_counts_beside_the_calls_of_the_agents_it_led_to() -> None:
    used = Usage(input=5, output=2)
    case = _case(
        _span("call", None, L, 0, 99, usage=used, system_prompt="Route."),
        _span("same", "call", L, 1, 10, usage=used),
        _span("tool", "call", T, 11, 98, tool=_call("transfer_to_clerk")),
        _span("agent", "tool", A, 12, 97, agent="clerk", usage=Usage(input=7, output=3)),
        _span("inner", "agent", L, 13, 20, usage=Usage(input=7, output=3)),
    )
    assert (case.input_tokens, case.output_tokens) == (12, 5)
    assert case.latency_model_ms == 16.0
    apart = _case(
        _span("call", None, L, 0, 99, usage=used),
        _span("tool", "call", T, 11, 98, tool=_call("transfer_to_clerk")),
        _span("inner", "tool", L, 13, 20, usage=Usage(input=7, output=3)),
    )
    assert (apart.input_tokens, apart.output_tokens) == (12, 5)


def test_a_call_told_side_by_side_by_its_library_and_an_instrumentation_counts_once() -> None:
    used = Usage(input=5, output=2)

    def tokens(*second: tuple[str, int, int]) -> int | None:
        spans = [_span(f"s{n}", "root", L, start, end, usage=used) for n, (_, start, end) in enumerate(second)]
        named = [replace(span, dialect=dialect) for span, (dialect, _, _) in zip(spans, second, strict=True)]
        found: int | None = _case(_span("root", None, C, 0, 99), *named).input_tokens
        return found

    assert tokens(("a", 1, 9), ("b", 2, 8)) == 5
    assert tokens(("a", 1, 9), ("b", 2, 8), ("a", 10, 19), ("b", 11, 18)) == 10
    assert tokens(("a", 1, 9), ("a", 2, 8)) == 10  # two calls at once
    assert tokens(("a", 1, 9), ("b", 2, 12)) == 10
    assert tokens(("a", 1, 9), ("b", 2, 8), ("b", 3, 7)) == 10


def test_a_stream_that_a_library_ends_before_its_instrumentation_does_is_one_call() -> None:
    asks = _asks(_call("find", {"q": "x"}, "c1"))
    library = replace(_span("s1", "root", L, 1, 9, usage=Usage(input=5, output=2)), dialect="a")
    other = replace(_span("s2", "root", L, 2, 12, usage=Usage(input=5, output=2), response_id="r"), dialect="b")

    def tokens(said: dict[str, Any], said_too: dict[str, Any], **beside: Any) -> int | None:
        two = replace(library, **said), replace(replace(other, **said_too), **beside)
        found: int | None = _case(_span("root", None, C, 0, 99), *two).input_tokens
        return found

    assert tokens({"output": "Hi."}, {"output": "Hi."}) == 5
    assert tokens({"output_messages": asks}, {"output_messages": asks}) == 5
    assert tokens({}, {"output": "No."}, end_ns=library.end_ns - 1) == 5, "a refusal that one of them leaves out"
    assert tokens({"output": "Hi."}, {"output": "Oh."}) == 10
    assert tokens({}, {}) == 10
    assert tokens({"output": "Hi."}, {"output": "Hi."}, start_ns=library.end_ns) == 10, "one after the other"
    assert tokens({"output": "Hi."}, {"output": "Hi."}, dialect="a", response_id=None) == 10, "of one client"


def test_usage_that_is_a_span_s_own_counts_beside_that_of_agents_below_it() -> None:
    own = [Usage(input=10, output=1, own=True), Usage(input=5, output=1, own=True)]
    outer, inner = _span("outer", None, A, 0, 9, usage=own[0]), _span("inner", "outer", A, 1, 8, usage=own[1])
    assert _case(outer, inner).input_tokens == 15
    assert _case(outer, inner, _span("llm", "inner", L, 2, 3, usage=Usage(input=5, output=1))).input_tokens == 15


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.booleans()), min_size=1, max_size=7))
def test_tokens_never_exceed_their_plain_sum_and_lack_only_roll_ups(shape: list[tuple[int, int, bool]]) -> None:
    spans = [
        _span(
            str(i),
            str(parent) if parent < i else None,
            L,
            i,
            i + 1,
            usage=Usage(input=n, output=0) if reports else None,
        )
        for i, (parent, n, reports) in enumerate(shape)
    ]
    parents = {span.parent_id for span in spans if span.usage}
    bottom = sum(
        span.usage.input
        for span in spans
        if span.usage and not Trace.of("t", spans, "batch").children.get(span.span_id)
    )
    total = sum(span.usage.input for span in spans if span.usage)
    found = _case(*spans).input_tokens
    if not any(span.usage for span in spans):
        assert found is None
    else:
        assert bottom <= found <= total
        assert parents or found == total


def test_nothing_reported_is_unknown_and_never_zero() -> None:
    case = _case(_span("x", None, O, 0, 1))
    assert (case.input_tokens, case.output_tokens, case.cost_usd, case.latency_model_ms, case.model, case.context) == (
        None,
    ) * 6


def test_latency_is_the_root_s_and_model_time_that_of_the_lowest_model_spans() -> None:
    case = _case(
        _span("root", None, C, 0, 100), _span("outer", "root", L, 10, 40), _span("inner", "outer", L, 12, 38),
        _span("other", "root", L, 30, 50, model="m2"), _span("late", "root", C, 90, 300),
    )  # fmt: skip
    assert (case.latency_e2e_ms, case.latency_model_ms, case.model) == (100.0, 46.0, "m2")


def test_without_a_root_latency_is_the_trace_s_extent() -> None:
    case = _case(_span("a", "gone", C, 10, 20), _span("b", "gone", C, 15, 70))
    assert (case.latency_e2e_ms, case.complete) == (60.0, False)


def test_what_was_asked_and_answered_is_the_root_s_before_the_agent_s_before_the_model_s() -> None:
    llms = [_span("l1", "a", L, 2, 3, input="m?", output="call"), _span("l2", "a", L, 4, 5, input="m??", output="m!")]
    agent = _span("a", "root", A, 1, 9, agent="a", input="a?", output="a!")
    assert (_case(_span("root", None, C, 0, 10, input="r?", output="r!"), agent, *llms).input) == "r?"
    bare = _span("root", None, C, 0, 10, output="")
    assert (_case(bare, agent, *llms).input, _case(bare, agent, *llms).model_output) == ("a?", "a!")
    silent = _span("a", "root", A, 1, 9, agent="a")
    assert (_case(bare, silent, *llms).input, _case(bare, silent, *llms).model_output) == ("m?", "m!")
    reported = _span("x", "root", C, 6, 7, trace_input="t?", trace_output="t!")
    assert (_case(bare, agent, reported).input, _case(bare, agent, reported).model_output) == ("t?", "t!")


def test_what_an_earlier_model_call_answered_is_no_answer_where_the_last_one_said_nothing() -> None:
    root = _span("root", None, C, 0, 30)
    rewrites = _span("rewrites", "root", L, 1, 9, input="Rewrite: Where?", output="where ship")
    answers = _span("answers", "root", L, 10, 19, input="Answer: where ship", output="")
    silent = (Message(role="assistant"),)

    def answer(last: Span) -> Json:
        return _case(root, rewrites, last).model_output

    for empty in (answers, replace(answers, output=None, output_messages=silent)):
        assert answer(empty) is None
        assert answer(replace(empty, start_ns=rewrites.start_ns)) == "where ship", "two spans may be one call"
    for unknown in (
        replace(answers, output=None), replace(answers, input=None), replace(answers, error="down"),
        replace(answers, finish_reason="tool_calls"),
        replace(answers, output=None, output_messages=(replace(silent[0], withheld=True),)),
    ):  # fmt: skip
        assert answer(unknown) == "where ship"


@pytest.mark.parametrize(("agent", "answer"), [(None, "Friday."), ("Monday.", "Monday.")])
def test_what_a_tool_for_answers_was_given_after_the_last_model_call_is_the_answer_where_no_agent_states_one(
    agent: str | None, answer: str
) -> None:
    case = _case(
        _span("root", None, A, 0, 99, agent="boss", output=agent),
        _span("llm", "root", L, 1, 2, output="Let me look it up."),
        _span("look", "root", T, 3, 4, tool=_call("lookup", {"id": 1})),
        _span("done", "root", T, 5, 6, tool=_call("final_answer", {"answer": "Friday."})),
    )
    assert case.model_output == answer
    assert _case(*case.trace.spans[:3]).model_output == (agent or "Let me look it up.")


@pytest.mark.parametrize("wrapped", ["one", "two"])
def test_after_a_hand_over_the_last_of_the_topmost_agents_gives_the_answer(wrapped: str) -> None:
    case = _case(
        _span("root", None, C, 0, 99), _span("one", "root", A, 1, 50, agent="one", input="Q", output="over to two"),
        _span("two", "root", A, 20, 60, agent="two", input="Q2", output="A"),
    )  # fmt: skip
    assert (case.input, case.model_output) == ("Q", "A")
    root, one, two = (
        replace(each, parent_id="handler") if each.span_id == wrapped else each for each in case.trace.spans
    )
    around = _case(root, _span("handler", "root", O, 1, 60), one, two)
    assert (around.input, around.model_output) == ("Q", "A"), "whichever a plain span is around"


def test_so_does_the_last_of_several_that_stand_below_nothing() -> None:
    first = _span("a", None, A, 0, 5, agent="triage", input="refund?", output="handing over")
    last = _span("b", None, A, 6, 9, agent="refunds", input="refund?", output="Refunded.")
    assert _case(first, last).model_output == "Refunded."
    assert _case(first, replace(last, parent_id="a")).model_output == "handing over"


def test_labels_are_those_of_the_highest_span_that_has_them_and_metadata_is_merged_from_the_top() -> None:
    case = _case(
        _span(
            "root", None, C, 0, 9, session_id="s", metadata={"a": 1}, trace_metadata={"b": 1}, tags=("x",), name="run"
        ),
        _span(
            "leaf",
            "root",
            L,
            1,
            2,
            session_id="z",
            user_id="u",
            metadata={"a": 2, "c": 3},
            tags=("x", "y"),
            service="shop",
        ),
    )
    assert (case.session_id, case.user_id, case.service, case.tags, case.name) == ("s", "u", "shop", ("x", "y"), "run")
    assert case.metadata == {"a": 1, "b": 1, "c": 3}


@pytest.mark.parametrize("key", ["expected_outcome", "expected_output", "expected", "reference", "ground_truth"])
def test_the_expected_outcome_is_found_under_its_usual_names_and_decoded(key: str) -> None:
    assert _case(_span("r", None, C, 0, 1, metadata={key: '{"a": 1}'})).expected_outcome == {"a": 1}
    assert _case(_span("r", None, C, 0, 1, metadata={key: "Paris"})).expected_outcome == "Paris"


def test_the_keys_of_the_expected_outcome_can_be_configured() -> None:
    span = _span("r", None, C, 0, 1, metadata={"gold": "G", "expected": "E"})
    assert _case(span, reference_keys=("gold",)).expected_outcome == "G"
    assert _case(span, reference_keys=()).expected_outcome is None


def test_the_case_s_settings_come_from_the_metadata() -> None:
    case = _case(
        _span(
            "r", None, C, 0, 1, input="the task",
            metadata={"task": "qa", "scenario": "qa_call", "config": '{"keywords": ["refund"]}', "topics": ["x"]},
        )
    )  # fmt: skip
    assert (case.task, case.scenario, case.config, case.transcript) == (
        "qa",
        "qa_call",
        {"keywords": ["refund"]},
        "the task",
    )
    bare = _case(
        _span("r", None, C, 0, 1, metadata={"keywords": '["refund"]', "target_language": "hi", "scenario": '{"a": 1}'})
    )
    assert (bare.config, bare.scenario) == ({"keywords": ["refund"], "target_language": "hi"}, {"a": 1})


def test_a_transcript_in_the_metadata_is_text_or_turns() -> None:
    turns = [{"speaker": "agent", "text": "Hello", "at": "00:01"}, {"text": "Hi"}, "noise"]
    assert _case(_span("r", None, C, 0, 1, metadata={"transcript": turns})).transcript == (
        Utterance("Hello", "agent", "00:01"), Utterance("Hi"),
    )  # fmt: skip
    assert _case(_span("r", None, C, 0, 1, input="Q", metadata={"transcript": "text"})).transcript == "text"


def test_context_is_what_retrievers_returned_each_text_once() -> None:
    case = _case(
        _span("r", None, C, 0, 9),
        _span("a", "r", R, 1, 2, documents=("one", "two")),
        _span("b", "r", R, 3, 4, documents=("two",)),
    )
    assert case.context == ("one", "two")
    assert _case(_span("r", None, R, 0, 1)).context == ()


def test_the_first_error_travels_with_the_case() -> None:
    case = _case(_span("r", None, C, 0, 9), _span("t", "r", T, 1, 2, error="E: no", tool=_call("f")))
    assert (case.error, case.completion) == ("E: no", "batch")


@pytest.mark.parametrize(
    "text", ["[NaN]", '["\\ud83d"]', "[" * 100 + "]" * 100, "[1" + "0" * 30 + "]", "{", "[" * 100_000, "word", "30"]
)
def test_text_that_could_not_be_written_again_stays_text(text: str) -> None:
    assert decoded(text) == text


@pytest.mark.parametrize("value", [{"q": "\U0001f600"}, ["C:\\udata"], "\U0001f600"])
def test_text_with_escaped_pairs_of_surrogates_is_decoded(value: object) -> None:
    assert decoded(json.dumps(value)) == value


def test_a_cycle_of_parents_is_extracted_like_any_trace() -> None:
    case = _case(
        _span("a", "b", A, 0, 1, agent="x", usage=Usage(input=1, output=1)),
        _span("b", "a", A, 0, 1, agent="y", input="Q"),
    )
    assert case.complete is False
    assert set(case.agents_called) == {"x", "y"}


def test_an_agents_span_alone_without_contents_or_with_tools_shows_no_call_and_none_left_out():
    agent = {"span_id": "a", "kind": SpanKind.AGENT, "agent": "desk"}
    tool = span(span_id="t", parent_id="a", kind=SpanKind.TOOL, tool=ToolCall(name="find"))
    assert extract(trace(span(**agent))).tools_used is None
    assert extract(trace(span(**agent, error="boom"))).tools_used == (), "one that failed may have called nothing"
    asked = agent | {"input": "Where is it?"}
    assert extract(trace(span(**asked))).tools_used == (), "its contents are captured"
    offered = asked | {"tool_definitions": ('[{"name": "find"}]',)}
    assert extract(trace(span(**offered))).tools_used is None, "the model that may have asked for them is not there"
    assert extract(trace(span(**offered, error="boom"))).tools_used == ()
    answers = span(span_id="m", parent_id="a", kind=SpanKind.LLM, output="Here.")
    assert extract(trace(span(**offered), answers)).tools_used == ()
    assert [call.name for call in extract(trace(span(**agent), tool)).tools_used] == ["find"]
    assert extract(trace(span(span_id="o", kind=SpanKind.OTHER))).tools_used == ()


@pytest.mark.parametrize(("steps", "errors"), [(1, ["timeout"]), (2, [None])])
def test_an_application_s_own_step_of_a_requested_tool_s_name_is_its_run(steps: int, errors: list[str | None]) -> None:
    own = [_span(f"s{n}", "root", O, 3 + n, 4 + n, name="find", error=None if n else "timeout") for n in range(steps)]
    case = _case(
        _span("root", None, O, 0, 99),
        _span("llm", "root", L, 1, 2, output_messages=_asks(_call("find", {"id": "A-1"}, "c"))),
        *own,
    )
    assert [call.error for call in case.tools_used] == errors
    assert case.tools_used[0].arguments == {"id": "A-1"}
    assert case.tool_span_ids == (("s0",) if steps == 1 else ("llm",))
