"""Assembly: a trace closes once per opening, for the reason that is true."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sidejudge.integrations.otlp.wire.request import Chunk, ChunkOrigin, SpanHeader
from sidejudge.monitor.ingest.assembled_trace import AssembledTrace
from sidejudge.monitor.ingest.assembler import Arrival, Assembler, AssemblyLimits
from tests.linear_time import steps

HERE = ChunkOrigin("shop", None, 0)
LIMITS = AssemblyLimits(grace_ns=2, idle_ns=30, deadline_ns=600, late_ns=1_000)


def sid(number: int) -> bytes:
    return number.to_bytes(8, "big")


def tid(number: int) -> bytes:
    return number.to_bytes(16, "big")


def chunk(trace: int, *spans, size: int = 100, threshold: int = 0) -> Chunk:
    """Spans are ``(id, parent)``, ``id`` for a root, or ``(id, parent, True)`` for a marked topmost one."""
    full = [(s, None, False) if isinstance(s, int) else (*s, False)[:3] for s in spans]
    headers = tuple(
        SpanHeader(span_id=sid(i), parent_id=b"" if p is None else sid(p), root_hint=hint) for i, p, hint in full
    )
    return Chunk(trace_id=tid(trace), payload=bytes(size), headers=headers, origin=ChunkOrigin("shop", None, threshold))


def failing(trace: int, *spans) -> Chunk:
    """A chunk whose spans have failed."""
    made = chunk(trace, *spans)
    return replace(made, headers=tuple(replace(header, failed=True) for header in made.headers))


def closings(assembler: Assembler, now: int):
    return [(int.from_bytes(c.trace_id, "big"), c.completion, c.revision) for c in assembler.due(now)]


def test_a_root_and_all_parents_close_a_trace_after_the_grace():
    assembler = Assembler(LIMITS)
    assert assembler.add(chunk(1, (2, 1)), 0) is Arrival.OPENS
    assert assembler.add(chunk(1, 1), 10) is Arrival.EXTENDS
    assert closings(assembler, 11) == []
    assert closings(assembler, 12) == [(1, "root_ended", 1)]
    assert closings(assembler, 1_000) == []


@pytest.mark.parametrize("spans", [[(2, 1)], [1, (3, 2)], [(1, 1)], [(1, 2), (2, 1)]])
def test_without_a_root_or_with_a_parent_that_never_comes_a_trace_closes_when_idle(spans):
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, *spans), 0)
    assert closings(assembler, 29) == []
    assert closings(assembler, 30) == [(1, "idle", 1)]


def test_a_marked_topmost_span_is_a_root_although_it_names_a_parent_once_nothing_is_seen_to_come_after_such():
    assembler = Assembler(LIMITS)
    for run in range(16):
        assembler.add(chunk(run, (2, 9, True), (3, 2)), run * 100)
        assert closings(assembler, run * 100 + 29) == []
        assert closings(assembler, run * 100 + 30) == [(run, "root_ended", 1)]
    assembler.add(chunk(99, (3, 2)), 2_000)
    assembler.add(chunk(99, (2, 9, True)), 2_005)
    assert closings(assembler, 2_006) == []
    assert closings(assembler, 2_007) == [(99, "root_ended", 1)]


def test_after_a_mark_of_a_stranger_a_longer_grace_is_waited_for():
    assembler = Assembler(AssemblyLimits(grace_ns=60, idle_ns=30, deadline_ns=600, late_ns=1_000))
    assembler.add(chunk(1, (2, 9, True)), 0)
    assert closings(assembler, 59) == []
    assert closings(assembler, 60) == [(1, "root_ended", 1)]


@pytest.mark.parametrize("first", [[(3, 9, True)], [(4, 3), (3, 9, True)]], ids=["a call", "a step with a call"])
@pytest.mark.parametrize("gap", [5, 20])
def test_what_is_below_a_span_that_is_not_exported_is_no_run_by_itself(first, gap):
    assembler = Assembler(LIMITS)
    for run in range(40):
        at = run * 1_000
        assembler.add(chunk(run, *first), at)
        assert closings(assembler, at + gap - 1) == []
        assembler.add(chunk(run, (5, 9, True)), at + gap)
        assert closings(assembler, at + 2 * gap - 1) == []
        assembler.add(chunk(run, (2, 1), 1), at + 2 * gap)
        assert closings(assembler, at + 2 * gap + 1) == []
        assert closings(assembler, at + 2 * gap + 2) == [(run, "root_ended", 1)]


def test_a_trace_that_never_rests_closes_at_its_deadline():
    assembler = Assembler(LIMITS)
    for now in range(0, 600, 20):
        assembler.add(chunk(1, (now + 2, 1)), now)
    assert closings(assembler, 599) == []
    assert closings(assembler, 600) == [(1, "deadline", 1)]


def test_grace_begins_anew_with_every_span():
    assembler = Assembler(LIMITS)
    for now in (0, 1, 2, 3):
        assembler.add(chunk(1, *([1] if not now else [(now + 1, 1)])), now)
    assert closings(assembler, 4) == []
    assert closings(assembler, 5) == [(1, "root_ended", 1)]


@given(st.permutations([1, (2, 1), (3, 2), (4, 2), (5, 4)]), st.lists(st.integers(0, 10), min_size=5, max_size=5))
def test_the_order_of_arrival_does_not_matter_for_how_a_whole_trace_closes(spans, times):
    assembler = Assembler(LIMITS)
    for span, now in zip(spans, sorted(times), strict=True):
        assembler.add(chunk(1, span), now)
    last = max(times)
    assert closings(assembler, last + 1) == []
    assert closings(assembler, last + 2) == [(1, "root_ended", 1)]


def test_duplicates_change_nothing_open_or_closed():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1, (2, 1)), 0)
    assert assembler.add(chunk(1, (2, 1)), 1) is Arrival.DUPLICATE
    assert (assembler._bytes, closings(assembler, 2)) == (100, [(1, "root_ended", 1)])
    assert assembler.add(chunk(1, 1), 500) is Arrival.DUPLICATE
    assert closings(assembler, 900) == []


def test_a_late_span_makes_the_next_revision():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 0)
    assert closings(assembler, 2) == [(1, "root_ended", 1)]
    assert assembler.classify(chunk(1, 1, (2, 1))) is Arrival.REOPENS
    assert assembler.add(chunk(1, 1, (2, 1)), 800) is Arrival.REOPENS
    assert (assembler.open_traces, assembler._bytes) == (1, 200)
    assert closings(assembler, 802) == [(1, "root_ended", 2)]
    assembler.add(chunk(1, (3, 2)), 1_700)
    assert closings(assembler, 1_702) == [(1, "root_ended", 3)], "the late window runs from the last closing"


def test_after_the_late_window_a_span_is_too_late_until_its_trace_is_forgotten():
    assembler = Assembler(AssemblyLimits(grace_ns=2, late_ns=10, remembered=2))
    for n in range(1, 6):
        assembler.add(chunk(n, 1), 0)
    assembler.due(2)
    assert assembler.knows(tid(1))
    assembler.due(12)
    assert not assembler.knows(tid(1))
    assert assembler.add(chunk(5, (2, 1)), 13) is Arrival.TOO_LATE
    assert assembler.open_traces == 0
    assert assembler.add(chunk(1, (2, 1)), 13) is Arrival.OPENS


def test_pressure_closes_the_oldest_by_count_and_by_size():
    assembler = Assembler(AssemblyLimits(max_open_traces=2))
    for n in (1, 2, 3):
        assembler.add(chunk(n, 1), n)
    assert closings(assembler, 4) == [(1, "pressure", 1)]

    assembler = Assembler(AssemblyLimits(max_open_bytes=250))
    for n in (1, 2, 3):
        assembler.add(chunk(n, 1), n)
    assembler.add(chunk(1, (2, 1)), 4)
    assert closings(assembler, 5) == [(1, "pressure", 1)]
    assert assembler._bytes == 200


def test_a_turn_closes_no_more_than_it_is_asked_for_and_the_rest_is_due_at_once():
    assembler = Assembler(AssemblyLimits(grace_ns=2, idle_ns=30, deadline_ns=600, late_ns=1_000, max_open_traces=4))
    for number in range(1, 8):
        assembler.add(chunk(number, number), 0)
    turns = []
    while (due_ns := assembler.due_ns) is not None and due_ns <= 1:
        turns.append([int.from_bytes(closing.trace_id, "big") for closing in assembler.due(1, 2)])
    assert turns == [[1, 2], [3]]  # too many are open
    while (due_ns := assembler.due_ns) is not None and due_ns <= 2:
        turns.append([int.from_bytes(closing.trace_id, "big") for closing in assembler.due(2, 2)])
    assert turns[2:] == [[4, 5], [6, 7]]


def test_the_origin_is_that_of_the_lowest_threshold():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1, threshold=9), 0)
    assembler.add(chunk(1, (2, 1), threshold=5), 0)
    assembler.add(chunk(1, (3, 1), threshold=7), 0)
    assert assembler.due(2)[0].origin.threshold == 5


def test_a_restored_trace_goes_on_with_its_revision():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 0)
    assembler.restore(tid(1), 3, 100)
    assert assembler.add(chunk(1, 1), 200) is Arrival.DUPLICATE
    assert assembler.add(chunk(1, (2, 1)), 200) is Arrival.REOPENS
    assert closings(assembler, 202) == [(1, "root_ended", 4)]


def test_draining_closes_everything_once():
    assembler = Assembler(LIMITS)
    for n in (1, 2):
        assembler.add(chunk(n, (2, 1)), 0)
    assert [c.completion for c in assembler.drain(1)] == ["shutdown"] * 2
    assert (assembler.drain(1), closings(assembler, 900), assembler._bytes) == ([], [], 0)


def test_draining_closes_what_is_quiet_and_whole_traces_as_such():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 0)
    assembler.add(chunk(2, (2, 1)), 0)
    assembler.add(chunk(3, 1), 5)
    assert [(c.trace_id, c.completion) for c in assembler.drain(5, 3)] == [
        (tid(1), "root_ended"), (tid(2), "shutdown"),
    ]  # fmt: skip
    assert assembler.open_traces == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_after_a_clock_was_set_back_traces_close_in_their_usual_time(restarted):
    assembler = Assembler(LIMITS)
    assembler.add(chunk(4, 1), 6_990)
    if restarted:
        assembler.restore(tid(4), 1, 6_992)
    for number, spans in enumerate([[1], [(2, 1)], [1, (2, 9)]], 1):
        assembler.add(chunk(number, *spans), 7_000)
    if not restarted:
        assert closings(assembler, 7_001) == [(4, "root_ended", 1)]
    assert closings(assembler, 100) == []
    assembler.add(chunk(4, (5, 1)), 101)
    assert closings(assembler, 102) == [(1, "root_ended", 1)]
    assert closings(assembler, 103) == [(4, "root_ended", 2)]
    assembler.add(chunk(3, (3, 1)), 110)
    assert closings(assembler, 130) == [(2, "idle", 1)]
    assert closings(assembler, 140) == [(3, "idle", 1)]


def called(trace: int, *spans) -> Chunk:
    """Spans ``(id, parent, remote)``."""
    headers = tuple(SpanHeader(span_id=sid(i), parent_id=sid(p), remote_parent=remote) for i, p, remote in spans)
    return Chunk(trace_id=tid(trace), payload=b"x", headers=headers, origin=HERE)


def test_a_trace_that_lacks_nothing_but_its_caller_closes_as_such():
    assembler = Assembler(LIMITS)
    assembler.add(called(1, (2, 9, True), (3, 2, False)), 0)
    assembler.add(called(2, (2, 9, True), (3, 8, False)), 0)
    assembler.add(called(3, (2, 9, True), (3, 9, False)), 0)
    assert closings(assembler, 29) == []
    assert closings(assembler, 30) == [(1, "pseudo_root", 1), (2, "idle", 1), (3, "pseudo_root", 1)]


def test_callers_that_do_not_come_take_time_in_proportion_to_their_number():
    assembler = Assembler(LIMITS)
    many = called(1, *((2 * n, 2 * n + 1, True) for n in range(40_000)))
    before = time.process_time()
    assembler.add(many, 0)
    assert time.process_time() - before < 2.0  # seven seconds where each one costs as much as all before it
    assert closings(assembler, 30) == [(1, "pseudo_root", 1)]


def test_beside_a_root_a_missing_caller_is_a_gap():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 0)
    assembler.add(called(1, (2, 9, True)), 0)
    assert closings(assembler, 30) == [(1, "idle", 1)]


def test_a_closing_tells_whether_the_trace_was_whole():
    assembler = Assembler(LIMITS)
    assembler.add(chunk(1, 1), 0)
    assembler.add(chunk(2, (2, 1)), 0)
    assert [closing.whole for closing in assembler.due(30)] == [True, False]


def test_idle_grows_with_the_pauses_of_a_service_also_with_those_that_it_cut_short():
    assembler = Assembler(AssemblyLimits(grace_ns=2, idle_ns=30, idle_max_ns=500, late_ns=1_000))
    for n in range(1, 17):
        assembler.add(chunk(n, (2, 1)), 0)
    assert len(closings(assembler, 30)) == 16, "cut, for nothing is known of the service yet"
    for n in range(1, 17):
        assert assembler.add(chunk(n, 1), 100) is Arrival.REOPENS
    assert len(closings(assembler, 102)) == 16
    for n in range(20, 40):
        assembler.add(chunk(n, (2, 1)), 200)
    assert closings(assembler, 300) == []
    for n in range(20, 40):
        assembler.add(chunk(n, 1), 300)
    assert {revision for _, _, revision in closings(assembler, 302)} == {1}


def test_what_is_refused_is_too_late_but_an_open_trace_stays_open():
    assembler = Assembler(LIMITS)
    assembler.refuse(tid(1))
    assert assembler.add(chunk(1, 1), 0) is Arrival.TOO_LATE
    assembler.add(chunk(2, 1), 0)
    assembler.refuse(tid(2))
    assert closings(assembler, 2) == [(2, "root_ended", 1)]


class Assembly(RuleBasedStateMachine):
    """A model that counts: every opening and reopening is closed exactly once, never early."""

    @initialize(traces=st.integers(1, 4), size=st.integers(150, 2_000))
    def begin(self, traces, size):
        self.assembler = Assembler(
            AssemblyLimits(
                grace_ns=3, idle_ns=20, deadline_ns=60, late_ns=40, max_open_traces=traces, max_open_bytes=size
            )
        )
        self.now = 0
        self.openings: dict[bytes, int] = {}
        self.closed: dict[bytes, list[int]] = {}
        self.last: dict[bytes, int] = {}

    @rule(
        trace=st.integers(1, 6), spans=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=3)
    )
    def arrive(self, trace, spans):
        given = chunk(trace, *((i if i == p else (i, p)) for i, p in spans))
        expected = self.assembler.classify(given)
        arrival = self.assembler.add(given, self.now)
        assert arrival is expected
        if arrival in (Arrival.OPENS, Arrival.REOPENS):
            self.openings[given.trace_id] = self.openings.get(given.trace_id, 0) + 1
        if arrival in (Arrival.OPENS, Arrival.REOPENS, Arrival.EXTENDS):
            self.last[given.trace_id] = self.now
        assert self.assembler.classify(given) in (Arrival.DUPLICATE, Arrival.TOO_LATE)

    @rule(pause=st.integers(0, 25))
    def wait(self, pause):
        self.now += pause
        found = self.assembler.due(self.now)
        assert not self.assembler.due(self.now), "all that is due is closed at once"
        for closing in found:
            self.closed.setdefault(closing.trace_id, []).append(closing.revision)
            quiet = self.now - self.last[closing.trace_id]
            assert quiet >= {"root_ended": 3, "idle": 20}.get(closing.completion, 0)

    @invariant()
    def every_opening_is_open_or_was_closed_once(self):
        if not hasattr(self, "assembler"):
            return
        open_now = sum(self.openings.values()) - sum(map(len, self.closed.values()))
        assert open_now == self.assembler.open_traces
        for revisions in self.closed.values():
            assert revisions == list(range(1, len(revisions) + 1))

    def teardown(self):
        if hasattr(self, "assembler"):
            self.now += 100
            self.wait(0)
            assert self.assembler.open_traces == self.assembler._bytes == 0


Assembly.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_assembly = Assembly.TestCase


def test_a_run_that_ends_with_a_failed_step_is_not_waited_for_all_day():
    assembler = Assembler(AssemblyLimits(grace_ns=2, idle_ns=30, deadline_ns=600, late_ns=1_000, root_wait_ns=100_000))
    for run in range(10):
        assembler.add(chunk(run, 1), run)
    closings(assembler, 100)
    other, raised, came_over_it, between = 20, 21, 22, 23
    assembler.add(chunk(other, (2, 1)), 200)
    assembler.add(failing(raised, (3, 2), (2, 1)), 200)  # its client never ends the span around what raises
    assembler.add(failing(came_over_it, (2, 1)), 200)
    assembler.add(chunk(came_over_it, (3, 1)), 210)
    assembler.add(failing(between, (3, 2)), 200)
    assembler.add(chunk(between, (2, 1)), 210)
    assert closings(assembler, 799) == []
    assert closings(assembler, 800) == [(raised, "deadline", 1)]
    assembler.add(failing(other, (3, 1)), 900)  # after its root was overdue
    assert closings(assembler, 929) == []
    assert closings(assembler, 930) == [(other, "deadline", 1)]
    for poll in range(10):  # it had not ended, but waits for what is not there yet
        assembler.add(failing(raised, (10 + poll, 2)), 1_000 + 100 * poll)
        assert closings(assembler, 1_099 + 100 * poll) == []
    assembler.add(chunk(raised, 1), 5_000)
    assert closings(assembler, 5_002) == [(raised, "root_ended", 2)]


def test_of_parents_whose_steps_failed_only_those_that_have_not_come_are_held():
    entry = AssembledTrace(ChunkOrigin("shop", None, 0), 0, 0)
    entry.extend(failing(1, (3, 2)), 0)
    assert entry.may_have_raised
    entry.extend(chunk(1, (2, 1)), 1)
    assert (entry.may_have_raised, entry.broken) == (False, set())


def test_a_span_costs_the_same_however_many_callers_its_trace_waits_for(monkeypatch):
    looks, plain = [], AssembledTrace.called_by_others.fget
    monkeypatch.setattr(AssembledTrace, "called_by_others", property(lambda entry: looks.append(entry) or plain(entry)))
    assembler = Assembler(LIMITS)
    for number in range(100):
        made = chunk(1, (number, 1_000 + number))
        called = replace(made, headers=(replace(made.headers[0], remote_parent=True),))
        assembler.add(called, number // 10)
        assert closings(assembler, number // 10) == []
    assert closings(assembler, 50) == [(1, "pseudo_root", 1)]
    assert len(looks) == 1


def test_a_span_that_is_sent_again_costs_the_same_however_large_its_closed_trace_is():
    def sent_again(spans: int) -> int:
        assembler = Assembler(LIMITS)
        assembler.add(chunk(1, 0, *((number, 0) for number in range(1, spans))), 0)
        assert closings(assembler, 2) == [(1, "root_ended", 1)]
        assert assembler.classify(chunk(1, (spans, 0))) is Arrival.REOPENS
        assert assembler.classify(chunk(1, (spans - 1, 0), (spans, 0))) is Arrival.REOPENS
        return steps(lambda: [assembler.classify(chunk(1, (again, 0))) for again in (1, spans // 2, spans - 1)])

    assert sent_again(4_096) <= 2 * sent_again(256)
