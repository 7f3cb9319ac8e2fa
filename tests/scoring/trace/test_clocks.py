"""The order of calls where services have clocks of their own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.span import SpanKind, ToolCall
from sidejudge.scoring.trace.trace import clock_corrections
from tests.spans import span, trace

S = 1_000_000_000


def _at(name: str, parent: str, start: float, end: float, *, service: str = "a", tool: bool = False, off: float = 0):
    call = {"tool": ToolCall(name=name, arguments={})} if tool else {}
    times = {"start_ns": int((start + off) * S), "end_ns": int((end + off) * S)}
    return span(name, parent, SpanKind.TOOL if tool else SpanKind.CHAIN, service=service, **times, **call)


def _run(off: float):
    """``find`` before ``write`` before ``publish``; ``write`` ran in another service, whose clock is off."""
    return trace(
        span("root", None, SpanKind.AGENT, agent="boss", service="a", start_ns=0, end_ns=100 * S),
        _at("find", "root", 1, 2, tool=True),
        _at("POST", "root", 3, 9),
        _at("writer", "POST", 4, 8, service="b", off=off),
        _at("write", "writer", 5, 6, service="b", off=off, tool=True),
        _at("publish", "root", 10, 11, tool=True),
    )


@pytest.mark.parametrize("off", [0, 0.5, -0.5, 4, -4, 3600, -3600])
def test_calls_are_in_the_order_in_which_they_were_made_whatever_another_service_s_clock_shows(off: float) -> None:
    assert [call.name for call in extract(_run(off)).tools_used or ()] == ["find", "write", "publish"]


def test_a_clock_is_corrected_by_the_least_and_back_in_the_first_service_not_at_all() -> None:
    assert clock_corrections(_run(0.5)) == {}, "within what waited for it"
    assert clock_corrections(_run(-4)) == {"writer": 3 * S, "write": 3 * S}
    back = trace(*_run(-4).spans, _at("ask", "writer", 5, 5.5))
    assert "ask" not in clock_corrections(back)


def test_a_step_that_took_longer_than_the_one_above_was_not_waited_for_and_may_come_later() -> None:
    queued = trace(
        span("root", None, SpanKind.AGENT, agent="boss", service="a", start_ns=0, end_ns=100 * S),
        _at("enqueue", "root", 1, 2),
        _at("work", "enqueue", 50, 60, service="b", tool=True),
        _at("publish", "root", 10, 11, tool=True),
    )
    assert clock_corrections(queued) == {}
    assert [call.name for call in extract(queued).tools_used or ()] == ["publish", "work"]


def test_what_takes_up_a_message_was_not_waited_for_however_short_it_is() -> None:
    queued = trace(
        span("root", None, SpanKind.AGENT, agent="boss", service="a", start_ns=0, end_ns=100 * S),
        _at("enqueue", "root", 1, 9),
        replace(_at("work", "enqueue", 50, 51, service="b", tool=True), from_queue=True),
        _at("publish", "root", 10, 11, tool=True),
    )
    assert [call.name for call in extract(queued).tools_used or ()] == ["publish", "work"]


def test_steps_of_one_service_are_taken_at_their_times() -> None:
    one = trace(_at("root", "", 5, 9), _at("find", "root", 1, 2, tool=True), _at("read", "root", 12, 13, tool=True))
    assert clock_corrections(one) == {}
