"""Sessions as a state machine: each opening is closed once, a session id never has two living sessions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from scipy.stats import binomtest

from sidejudge.monitor.evaluate.result import SessionIdentity
from sidejudge.monitor.sessions.windows import SessionLimits, SessionWindows, StoredTurnHead, draw, key_of
from tests.linear_time import LONG, SHORT, assert_linear

LIMITS = SessionLimits(idle_ns=10, late_ns=20, max_turns=3, max_bytes=1_000, max_sessions=100)
CHAT = SessionIdentity("shop", "prod", "chat")


def tid(number: int) -> bytes:
    return number.to_bytes(16, "big")


def closings(sessions: SessionWindows, now: int):
    return [(c.trace_id, c.completion, c.revision, c.session) for c in sessions.due(now)]


def test_a_session_is_over_when_no_turn_came_for_long_enough():
    sessions = SessionWindows(LIMITS)
    key = sessions.join(CHAT, tid(1), 10, 0)
    assert sessions.join(CHAT, tid(2), 10, 9) == key == key_of(CHAT, tid(1))
    assert (closings(sessions, 18), sessions.open_sessions, sessions.oldest_ns) == ([], 1, 9)
    assert closings(sessions, 19) == [(key, "idle", 1, True)]
    assert (sessions.due(30), sessions.open_sessions, sessions.oldest_ns) == ([], 0, None)


def test_a_turn_within_the_late_window_reopens_and_after_it_begins_anew():
    sessions = SessionWindows(LIMITS)
    key = sessions.join(CHAT, tid(1), 10, 0)
    sessions.due(10)
    assert sessions.join(CHAT, tid(2), 10, 29) == key
    assert closings(sessions, 39) == [(key, "idle", 2, True)]
    other = sessions.join(CHAT, tid(3), 10, 59)
    assert other != key
    assert closings(sessions, 69) == [(other, "idle", 1, True)]


def test_a_session_is_not_over_while_a_turn_of_it_waits_for_its_verdict():
    sessions = SessionWindows(LIMITS)
    key = sessions.join(CHAT, tid(1), 10, 0)
    sessions.expect(CHAT, tid(2))
    assert [closings(sessions, now) for now in (10, 20, 40)] == [[], [], []]
    assert sessions.due_ns > 40, "it is not looked at without an end"
    assert sessions.join(CHAT, tid(2), 10, 45) == key
    sessions.ended(tid(2))
    assert closings(sessions, 55) == [(key, "idle", 1, True)]
    sessions.expect(CHAT, tid(3))
    assert closings(sessions, 80) == [], "that one came in time"
    assert sessions.join(CHAT, tid(3), 10, 90) == key
    sessions.ended(tid(3))
    sessions.due(100)
    sessions.expect(CHAT, tid(4))
    sessions.due(130)
    assert sessions.grown_ns(130) == 100, "its turns are needed"
    sessions.ended(tid(4))  # it was none in the end
    assert (sessions.grown_ns(130), sessions.join(CHAT, tid(5), 10, 130) == key) == (110, False)


def test_a_session_of_which_a_turn_waits_is_cut_short_where_there_are_too_many():
    sessions = SessionWindows(replace(LIMITS, max_sessions=1))
    key = sessions.join(CHAT, tid(1), 10, 0)
    sessions.expect(CHAT, tid(2))
    sessions.join(SessionIdentity("shop", "prod", "other"), tid(3), 10, 11)
    assert closings(sessions, 12) == [(key, "pressure", 1, True)]


def test_a_full_session_of_which_a_turn_waits_is_forgotten_where_none_may_come_late():
    sessions = SessionWindows(replace(LIMITS, late_ns=0, max_turns=2))
    key = sessions.join(CHAT, tid(1), 10, 0)
    sessions.join(CHAT, tid(2), 10, 1)
    sessions.expect(CHAT, tid(3))
    assert closings(sessions, 2) == [(key, "pressure", 1, True)]
    assert sessions.join(CHAT, tid(3), 10, 3) != key


def test_no_session_that_a_restart_finds_is_over_before_what_waited_is_read_again():
    sessions = SessionWindows(LIMITS)
    key = key_of(CHAT, tid(1))
    sessions.restore([StoredTurnHead(tid(1), key, CHAT, 0, None, 10, None, None)], 500)
    assert [closings(sessions, now) for now in (500, 509, 510)] == [[], [], [(key, "idle", 1, True)]]


@pytest.mark.parametrize("restarted", [False, True])
def test_after_a_clock_was_set_back_sessions_are_over_in_their_usual_time(restarted):
    sessions = SessionWindows(LIMITS)
    ended = sessions.join(SessionIdentity("shop", "prod", "ended"), tid(3), 10, 7_000)
    sessions.due(7_010)
    key = sessions.join(CHAT, tid(1), 10, 7_200)
    sessions.due(7_200)
    if restarted:
        sessions = SessionWindows(LIMITS)
        before = StoredTurnHead(tid(3), ended, SessionIdentity("shop", "prod", "ended"), 7_000, 7_010, 10, 1, 7_010)
        sessions.restore([before, StoredTurnHead(tid(1), key, CHAT, 7_200, None, 10, None, None)])
    assert closings(sessions, 100) == []
    other = sessions.join(SessionIdentity("shop", "prod", "other"), tid(2), 10, 101)
    assert closings(sessions, 110) == [(key, "idle", 1, True)]
    assert closings(sessions, 111) == [(other, "idle", 1, True)]
    sessions.due(120)
    assert sessions.join(SessionIdentity("shop", "prod", "ended"), tid(4), 10, 121) != ended, "its late window is over"


def test_a_trace_that_belonged_to_a_session_joins_no_other():
    sessions = SessionWindows(LIMITS)
    key = sessions.join(CHAT, tid(1), 10, 0)
    assert sessions.join(CHAT, tid(1), 20, 5, former=key) == key
    sessions.due(15)
    assert sessions.join(CHAT, tid(1), 20, 40, former=key) is None
    other = sessions.join(CHAT, tid(2), 10, 41)
    assert sessions.join(CHAT, tid(1), 20, 42, former=key) is None
    assert closings(sessions, 60) == [(other, "idle", 1, True)]


@pytest.mark.parametrize(("size", "taken"), [(10, 3), (600, 2)])
def test_a_full_session_is_closed_at_once_and_what_goes_on_is_not_taken_for_a_new_one(size, taken):
    sessions = SessionWindows(LIMITS)
    keys = [sessions.join(CHAT, tid(n), size, n) for n in range(1, 6)]
    assert keys == [keys[0]] * taken + [None] * (5 - taken)
    assert closings(sessions, 6) == [(keys[0], "pressure", 1, True)]
    assert sessions.join(CHAT, tid(7), size, 20) is None
    assert sessions.join(CHAT, tid(8), size, 39) is None
    assert sessions.join(CHAT, tid(9), size, 59) not in (None, keys[0])


def test_too_many_sessions_are_closed_oldest_first():
    sessions = SessionWindows(SessionLimits(idle_ns=10, max_sessions=2))
    keys = [sessions.join(SessionIdentity("shop", None, f"s{n}"), tid(n), 10, n) for n in range(3)]
    assert closings(sessions, 3) == [(keys[0], "pressure", 1, True)]


def test_too_many_bytes_in_all_close_the_oldest_first():
    sessions = SessionWindows(SessionLimits(idle_ns=10, max_open_bytes=25))
    first, second = (sessions.join(SessionIdentity("shop", None, f"s{n}"), tid(n), 10, n) for n in range(2))
    assert closings(sessions, 3) == []
    sessions.join(SessionIdentity("shop", None, "s1"), tid(3), 10, 3)
    assert closings(sessions, 3) == [(first, "pressure", 1, True)]
    assert sessions.join(SessionIdentity("shop", None, "s0"), tid(4), 30, 4) == first
    assert closings(sessions, 4) == [(second, "pressure", 1, True), (first, "pressure", 2, True)]


def test_services_and_environments_have_their_own_sessions():
    keys = {key_of(SessionIdentity(s, e, "1"), tid(1)) for s in ("shop", "desk", None) for e in ("prod", None)}
    assert len(keys) == 6
    one, other = SessionIdentity("shop", None, "1"), SessionIdentity("desk", "prod", "1")
    assert draw(one, 0.3).randomness == draw(other, 0.3).randomness


@pytest.mark.parametrize("rate", [0.01, 0.25, 1.0])
def test_sessions_are_drawn_at_their_rate_and_nested(rate):
    drawn = [draw(SessionIdentity("shop", None, f"session-{n}"), rate) for n in range(20_000)]
    assert binomtest(sum(d.kept for d in drawn), 20_000, rate).pvalue > 1e-6
    assert {d.probability for d in drawn} <= {d.base_probability for d in drawn} | {None}
    more = [draw(SessionIdentity("shop", None, f"session-{n}"), min(1.0, 2 * rate)) for n in range(20_000)]
    assert all(m.kept for d, m in zip(drawn, more, strict=True) if d.kept)


@given(st.text(max_size=30), st.floats(0.001, 1))
def test_any_session_id_can_be_drawn(session_id, rate):
    identity = SessionIdentity(None, None, session_id + "\ud800")
    assert draw(identity, rate) == draw(identity, rate)
    assert len(key_of(identity, tid(1))) == 16


class Conversing(RuleBasedStateMachine):
    """A model that keeps what a store would: a restart at any moment changes nothing that is told."""

    @initialize()
    def begin(self):
        self.now = 0
        self.sessions = SessionWindows(LIMITS)
        self.stored: dict[bytes, StoredTurnHead] = {}
        self.revisions: dict[bytes, list[int]] = {}

    @rule(trace=st.integers(1, 8), session=st.integers(1, 2), size=st.integers(1, 500))
    def join(self, trace, session, size):
        identity = SessionIdentity("shop", None, f"s{trace % 2}")
        former = self.stored.get(tid(trace))
        key = self.sessions.join(identity, tid(trace), size, self.now, former=former.key if former else None)
        if former is not None:
            assert key in (former.key, None)
        if key is not None:
            self.stored[tid(trace)] = StoredTurnHead(tid(trace), key, identity, self.now, None, size, None, None)

    @rule(pause=st.integers(0, 15))
    def wait(self, pause):
        self.now += pause
        for closing in self.sessions.due(self.now):
            held = [turn for turn in self.stored.values() if turn.key == closing.trace_id]
            assert any(turn.done_ns is None for turn in held), "nothing new, and closed again"
            self.revisions.setdefault(closing.trace_id, []).append(closing.revision)
            for turn in held:
                self.stored[turn.trace_id] = turn._replace(done_ns=0)
            if closing.completion == "idle":
                assert all(turn.closed_ns + 10 <= self.now for turn in held)
            self.judged = {**getattr(self, "judged", {}), closing.trace_id: (closing.revision, self.now)}

    @rule()
    def restart(self):
        judged = getattr(self, "judged", {})
        self.sessions = SessionWindows(LIMITS)
        heads = []
        for turn in self.stored.values():
            revision, at = judged.get(turn.key, (None, None))
            heads.append(turn._replace(revision=revision, judged_ns=at))
        waiting = {turn.key for turn in heads if turn.done_ns is None}
        assert self.sessions.restore(heads) == len(waiting)

    @invariant()
    def revisions_count_up(self):
        for found in getattr(self, "revisions", {}).values():
            assert found == list(range(1, len(found) + 1))

    def teardown(self):
        if hasattr(self, "sessions"):
            self.wait(15)
            assert self.sessions.open_sessions == 0
            assert all(turn.done_ns is not None for turn in self.stored.values())


Conversing.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
test_conversing = Conversing.TestCase


def test_to_close_a_session_takes_the_same_however_many_are_closed_at_once():
    def opened(count: int) -> SessionWindows:
        sessions = SessionWindows(replace(LIMITS, max_sessions=count))
        for number in range(count):
            sessions.join(CHAT._replace(session_id=f"{number}"), tid(number), 1, 0)
        return sessions

    waiting = {count: [opened(count) for _ in range(3)] for count in (SHORT, LONG)}
    assert_linear(lambda count: waiting[count].pop().due(10))
