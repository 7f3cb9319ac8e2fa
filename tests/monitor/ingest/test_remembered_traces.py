"""What the assembler knows of a trace that is open, closed, held back or let go, and for how long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidejudge.monitor.ingest.assembler import Arrival, Assembler, AssemblyLimits
from sidejudge.monitor.ingest.trace_limits import TraceSize
from tests.monitor.ingest.test_assembler import LIMITS, chunk, closings, tid

WAITING = AssemblyLimits(grace_ns=2, idle_ns=30, deadline_ns=600, late_ns=1_000, root_wait_ns=10_000)


def test_a_trace_is_judged_once_it_was_closed_and_not_held_back():
    assembler = Assembler(LIMITS)
    assert (assembler.is_judged(tid(1)), assembler.has_root(tid(1))) == (False, None)
    assembler.add(chunk(1, (2, 1)), 0)
    assert (assembler.is_judged(tid(1)), assembler.has_root(tid(1))) == (False, False)
    assembler.due(30)
    assembler.hold_back(tid(1))
    assert not assembler.is_judged(tid(1))
    assert assembler.release(tid(1))
    assert (assembler.is_judged(tid(1)), assembler.has_root(tid(1))) == (True, False)
    assembler.add(chunk(1, 1), 40)
    assert (assembler.is_judged(tid(1)), assembler.has_root(tid(1))) == (True, True)


def test_the_threshold_that_a_trace_was_drawn_at_is_known_while_the_trace_is():
    assembler = Assembler(LIMITS)
    assert assembler.drawn_at(tid(1)) == 0
    assembler.add(chunk(1, 1, threshold=5), 0)
    assert assembler.drawn_at(tid(1)) == 5
    assembler.due(2)
    assert assembler.drawn_at(tid(1)) == 5


@pytest.mark.parametrize("revision", [1, 2, 3, 4])
def test_a_restored_trace_counts_on_from_any_revision(revision):
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 0)
    assembler.restore(tid(1), revision, 100)
    assembler.add(chunk(1, (2, 1)), 200)
    assert closings(assembler, 202) == [(1, "root_ended", revision + 1)]


def test_draining_waits_for_just_as_long_as_it_is_asked_to():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 2)
    assert assembler.drain(4, 3) == []
    assert len(assembler.drain(5, 3)) == 1
    assembler.add(chunk(2, 1), 6)
    assert len(assembler.drain(6)) == 1


def test_under_pressure_what_was_closed_up_to_a_time_is_let_go():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 0)
    assembler.due(2)
    assembler.forget(1)
    assert assembler.knows(tid(1))
    assembler.forget(2)
    assert not assembler.knows(tid(1))
    assembler.add(chunk(2, 1), 2)
    assembler.due(4)
    assembler.forget(9)
    assert not assembler.knows(tid(2))
    assert assembler.add(chunk(1, (2, 1)), 3) is Arrival.TOO_LATE


def test_a_root_is_awaited_of_what_was_closed_without_one_and_for_longer_than_late_spans():
    assembler = Assembler(WAITING)
    assembler.add(chunk(1, (2, 1)), 0)
    assembler.add(chunk(2, 1), 0)
    assert closings(assembler, 30) == [(2, "root_ended", 1), (1, "idle", 1)]
    assert (assembler.awaited(29), assembler.awaited(30)) == ([], [tid(1)])
    assembler.due(2_000)
    assert (assembler.knows(tid(1)), assembler.knows(tid(2))) == (True, False)
    no_longer = Assembler(AssemblyLimits(grace_ns=2, idle_ns=30, late_ns=1_000, root_wait_ns=1_000))
    no_longer.add(chunk(1, (2, 1)), 0)
    no_longer.due(30)
    assert no_longer.awaited(30) == []


def test_a_root_that_comes_after_all_speaks_for_its_service():
    """Five traces have roots, and five more have them late: so one that lacks its root is still waited for."""
    assembler = Assembler(WAITING)
    for number in range(1, 6):
        assembler.add(chunk(number, 1), 0)
    assert len(assembler.due(2)) == 5
    for number in range(6, 11):
        assembler.add(chunk(number, (2, 1)), 10)
    assert assembler.due(700) == [], "their roots are overdue"
    for number in range(6, 11):
        assembler.add(chunk(number, 1), 700)
    assert len(assembler.due(702)) == 5
    for number in range(11, 14):
        assembler.add(chunk(number, (2, 1)), 800)
    assert assembler.due(9_000) == []


def test_closed_traces_are_remembered_up_to_a_number_and_a_number_of_spans():
    by_number = Assembler(AssemblyLimits(grace_ns=2, late_ns=1_000, max_open_traces=1))
    for number in range(1, 6):
        by_number.add(chunk(number, 1), number * 10)
        by_number.due(number * 10 + 2)
    assert [by_number.knows(tid(number)) for number in range(1, 6)] == [False, True, True, True, True]
    by_spans = Assembler(AssemblyLimits(grace_ns=2, late_ns=1_000, max_open_spans=3))
    for number in range(1, 6):
        by_spans.add(chunk(number, 1, (2, 1), (3, 1)), number * 10)
        by_spans.due(number * 10 + 2)
    assert [by_spans.knows(tid(number)) for number in range(1, 6)] == [False, True, True, True, True]


@pytest.mark.parametrize("closed", [False, True])
def test_a_trace_that_was_cut_takes_no_more_and_what_it_has_is_a_duplicate(closed):
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 0)
    assembler.cut(tid(1), 3)
    if closed:
        (closing,) = assembler.due(0)
        assert (closing.completion, closing.left_out) == ("pressure", 3)
    assert assembler.classify(chunk(1, (2, 1))) is Arrival.TOO_LARGE
    assert assembler.classify(chunk(1, 1)) is Arrival.DUPLICATE


def test_under_pressure_the_longest_idle_fragment_closes_first_also_one_that_was_opened_again():
    assembler = Assembler(replace(WAITING, max_open_traces=1))
    for number in range(1, 6):
        assembler.add(chunk(number, 1), 0)
    assert len(assembler.due(2)) == 5
    assembler.add(chunk(9, (2, 1)), 3)
    assembler.add(chunk(6, (2, 1)), 4)
    assembler.restore(tid(6), 1, 20)
    assert assembler.reopen(tid(6), 30)
    assembler.add(chunk(9, (3, 1)), 59)
    assert closings(assembler, 60) == [(6, "pressure", 2)]


def test_a_root_is_overdue_after_twice_the_time_that_one_took():
    assembler = Assembler(replace(WAITING, idle_ns=1_400, deadline_ns=1_500))
    for number in range(1, 6):
        assembler.add(chunk(number, (2, 1)), 10)
    for number in range(1, 6):
        assembler.add(chunk(number, 1), 1_010)
    assert len(assembler.due(1_012)) == 5
    for number in range(6, 12):
        assembler.add(chunk(number, (2, 1)), 2_000)
    assert assembler.due(3_999) == []
    assert len(assembler.due(4_000)) == 6, "the service no longer sends roots"


def test_a_trace_whose_root_is_awaited_stays_open_for_as_long_as_that():
    assembler = Assembler(WAITING)
    for number in range(1, 6):
        assembler.add(chunk(number, 1), 0)
    assert len(assembler.due(2)) == 5
    assembler.add(chunk(6, (2, 1)), 10)
    assert closings(assembler, 10_009) == []
    assert closings(assembler, 10_010) == [(6, "deadline", 1)]


def test_of_what_another_monitor_may_take_over_only_whole_and_cut_traces_are_closed():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 0)
    assembler.add(chunk(2, (2, 1)), 0)
    assembler.add(chunk(3, (2, 1)), 0)
    assembler.cut(tid(3), 1)
    assert assembler.torn_traces == 1
    drained = [(closing.trace_id, closing.completion) for closing in assembler.drain(0, whole=True)]
    assert drained == [(tid(1), "root_ended"), (tid(3), "pressure")]
    assert (assembler.open_traces, assembler.torn_traces) == (1, 1)


def test_a_trace_that_another_monitor_took_over_is_forgotten_unless_it_was_judged():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 0)
    assembler.due(2)
    assembler.add(chunk(2, (2, 1)), 3)
    assert [assembler.give_away(tid(number)) for number in (1, 2, 3)] == [False, True, False]
    assert assembler.unknown({tid(1), tid(2)}) == {tid(2)}
    assert assembler.open_traces == 0


@pytest.mark.parametrize("one_open", [False, True])
@pytest.mark.parametrize("one_closed", [False, True])
def test_traces_that_are_neither_open_nor_closed_are_unknown(one_open, one_closed):
    assembler = Assembler(LIMITS)
    if one_closed:
        assembler.add(chunk(1, 1), 0)
        assembler.due(2)
    if one_open:
        assembler.add(chunk(2, 1), 3)
    known = {tid(1)} if one_closed else set()
    known |= {tid(2)} if one_open else set()
    everything = {tid(1), tid(2), tid(3)}
    assert assembler.unknown(everything) == everything - known


def test_under_pressure_a_fragment_that_still_grows_is_spared():
    assembler = Assembler(replace(LIMITS, max_open_traces=1))
    assembler.add(chunk(1, 1, (3, 2)), 0)
    assembler.add(chunk(2, (2, 1)), 1)
    assert closings(assembler, 2) == [(1, "pressure", 1)]


def test_too_many_spans_close_the_oldest_by_however_much_there_are_too_many():
    assembler = Assembler(replace(LIMITS, max_open_spans=3))
    assembler.add(chunk(1, 1, (2, 1), (3, 9)), 0)
    assert closings(assembler, 1) == []
    assembler.add(chunk(2, 1, (2, 1), (3, 9)), 1)
    assert closings(assembler, 1) == [(1, "pressure", 1)]


def test_a_trace_that_was_idle_for_long_enough_just_at_its_deadline_was_idle():
    assembler = Assembler(LIMITS)
    for now in range(0, 571, 15):
        assembler.add(chunk(1, (now + 2, 1)), now)
    assert closings(assembler, 600) == [(1, "idle", 1)]


def test_a_trace_of_which_some_spans_were_drawn_under_load_was_drawn_so():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 0, thinned=True)
    assembler.add(chunk(1, (2, 1)), 1)
    assembler.add(chunk(2, 1), 1)
    assert [closing.thinned for closing in assembler.due(3)] == [True, False]


def test_the_size_of_a_trace_is_known_while_the_trace_is_and_the_last_one_stays_however_large():
    assembler = Assembler(replace(LIMITS, max_open_spans=1))
    assembler.add(chunk(1, 1, (2, 1), (3, 1)), 0)
    assembler.add(chunk(1, (4, 1), (5, 1)), 0, decoded=70)
    assert assembler.size(tid(1)) == TraceSize(5, 70)
    assert len(assembler.due(0)) == 1
    assert assembler.size(tid(1)) == TraceSize(5, 70)
    assert assembler.size(tid(2)) == TraceSize()


def test_the_oldest_open_trace_dates_from_when_it_was_opened():
    assembler = Assembler(LIMITS)
    assert assembler.oldest_ns is None
    assembler.add(chunk(1, (2, 1)), 5)
    assembler.add(chunk(2, 1), 6)
    assembler.add(chunk(1, (3, 1)), 7)
    assert assembler.oldest_ns == 5
