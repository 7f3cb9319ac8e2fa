"""Log records on their way: committed with their trace, before or after its spans, across restarts, and purged."""

from __future__ import annotations

import pytest

from sidejudge.integrations.otlp.wire.kept import decode_kept
from sidejudge.integrations.otlp.wire.receipt import Overloaded, Undecodable
from sidejudge.integrations.store.sqlite import StoreUnavailable
from sidejudge.monitor.ingest.trace_limits import TraceLimits
from tests.integrations.otlp.wire.test_request_logs import logs
from tests.otlp_requests import HIGH, LOW, S, request, span, trace


def event(number=1, text="hello", tail=HIGH):
    return (trace(number, tail), span(1), "gen_ai.user.message", text, {})


def spans(number=1, *more) -> bytes:
    return request([S(trace_id=trace(number), span_id=span(1)), *more])


def stated(m, number=1) -> list[list[str]]:
    return [[e.attributes["body"] for e in s.events] for s in decode_kept(m.store.chunks(trace(number))).spans]


async def test_records_that_come_first_wait_for_their_spans_and_are_no_trace(monitor):
    m = monitor()
    receipt = await m.intake.consume_logs(logs(event(), event(2, tail=LOW)))
    assert (receipt.rejected, m.woken, m.outcomes.balance().seen, m.assembler.open_traces) == (0, 0, 0, 0)
    assert (m.intake.counts.logs, m.intake.counts.untraced_logs, m.intake.counts.plain_logs) == (2, 0, 0)
    await m.intake.consume(spans())
    assert (m.outcomes.balance().seen, stated(m)) == (1, [["hello"]])


async def test_records_that_do_not_fit_are_counted_whether_they_wait_for_their_spans_or_not(monitor):
    m = monitor(limits=TraceLimits(100, 60_000))
    await m.intake.consume_logs(logs(event(text="x" * 6_000)))
    await m.intake.consume_logs(logs(event(text="y" * 6_000)))
    assert m.intake.counts.too_large_logs == 1
    await m.intake.consume(spans())
    await m.intake.consume_logs(logs(event(text="z" * 6_000), event()))
    assert (m.intake.counts.too_large_logs, stated(m)) == (3, [["x" * 6_000]])


async def test_records_that_come_after_their_spans_extend_the_open_trace(monitor):
    m = monitor()
    await m.intake.consume(spans())
    m.now += 1
    await m.intake.consume_logs(logs(event()))
    assert m.assembler.due(m.now + 1) == []  # the grace begins anew
    (closing,) = m.assembler.due(m.now + 2)
    assert (closing.completion, stated(m)) == ("root_ended", [["hello"]])


async def test_records_that_come_late_make_a_revision_and_far_too_late_ones_are_counted(monitor):
    m = monitor()
    await m.intake.consume(spans())
    m.now += 5
    (closing,) = m.assembler.due(m.now)
    await m.finish(closing)
    await m.intake.consume_logs(logs(event()))
    m.now += 5
    (again,) = m.assembler.due(m.now)
    assert (again.revision, stated(m)) == (2, [["hello"]])
    await m.finish(again)
    m.now += 1000
    m.assembler.due(m.now)
    await m.intake.consume_logs(logs(event(), event()))
    assert m.intake.counts.late_logs == 2


@pytest.mark.parametrize("order", ["logs first", "spans first", "late"])
async def test_a_restart_resumes_them(monitor, order):
    m = monitor()
    if order == "logs first":
        await m.intake.consume_logs(logs(event()))
    await m.intake.consume(spans())
    if order == "late":
        (closing,) = m.assembler.due(m.now + 5)
        await m.finish(closing)
    if order != "logs first":
        await m.intake.consume_logs(logs(event()))
    m.store.close()
    again = monitor()
    again.intake.restore()
    assert again.assembler.open_traces == 1
    (closing,) = again.assembler.due(again.now + 100)
    assert (closing.revision, stated(again)) == (2 if order == "late" else 1, [["hello"]])


async def test_a_restart_with_records_alone_opens_nothing_and_they_still_find_their_spans(monitor):
    m = monitor()
    await m.intake.consume_logs(logs(event()))
    m.store.close()
    again = monitor()
    assert (again.intake.restore(), again.outcomes.balance().seen) == (0, 0)
    await again.intake.consume(spans())
    assert stated(again) == [["hello"]]


async def test_a_finished_trace_whose_records_came_first_stays_finished_over_a_restart(monitor):
    m = monitor()
    await m.intake.consume_logs(logs(event()))
    await m.intake.consume(spans())
    (closing,) = m.assembler.due(m.now + 5)
    await m.finish(closing)
    m.store.close()
    again = monitor()
    assert again.intake.restore() == 0
    assert again.assembler.knows(trace(1))


async def test_records_whose_spans_never_come_are_purged_and_those_of_an_open_trace_are_not(monitor):
    m = monitor()
    await m.intake.consume_logs(logs(event(1), event(2)))
    await m.intake.consume(spans(2))
    await m.store.purge(m.now + 1)
    assert (m.store.chunks(trace(1)), len(m.store.chunks(trace(2)))) == ([], 2)


async def test_lines_of_a_log_and_records_of_no_trace_are_counted_and_cost_no_commit(monitor):
    m = monitor()
    size = m.store.size
    line = (trace(1), span(1), "", "a line", {})
    assert (await m.intake.consume_logs(logs(line, (b"", b"", "gen_ai.choice", "?", {})))).rejected == 0
    counts = m.intake.counts
    assert (counts.logs, counts.plain_logs, counts.untraced_logs, m.store.size) == (2, 1, 1, size)


async def test_what_is_no_log_request_is_no_trace_either(monitor):
    m = monitor()
    with pytest.raises(Undecodable):
        await m.intake.consume_logs(b"\xff")
    assert (m.intake.counts.requests, m.intake.counts.logs, m.outcomes.balance().seen) == (1, 0, 0)


async def test_a_store_that_cannot_write_is_overload(monitor):
    m = monitor()

    async def full(chunks, received_ns):
        raise StoreUnavailable("the disk is full")

    m.store.hold = full
    with pytest.raises(Overloaded, match="the disk is full"):
        await m.intake.consume_logs(logs(event()))
    assert m.intake._waiting == 0
