"""The outcomes balance, whatever happens in whatever order."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.monitor.ingest.outcomes import EndReason, TraceOutcomes
from sidejudge.scoring.status.service_status import OTHER, UNKNOWN_SERVICE

REASONS = st.sampled_from(EndReason)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("seen"), st.integers(0, 5)),
        st.tuples(st.just("ended"), st.sampled_from(["a", "b", None]), REASONS, st.integers(1, 3)),
        st.tuples(st.just("sampled_out"), st.sampled_from(["a", "b"]), st.sets(st.integers(0, 30))),
    )
)


@given(events=EVENTS, remembered=st.integers(1, 10))
def test_seen_is_always_open_plus_ended_and_the_listener_hears_all_of_it(events, remembered):
    heard = []
    outcomes = TraceOutcomes(remembered=remembered, on_ended=lambda *what: heard.append(what))
    for kind, *what in events:
        if kind == "seen":
            outcomes.seen(*what)
        elif kind == "sampled_out":
            outcomes.sampled_out(what[0], {n.to_bytes(16, "big") for n in what[1]})
        elif outcomes.open:
            outcomes.ended(what[0], what[1], revision=what[2])
        balance = outcomes.balance()
        assert balance.seen == balance.open + sum(balance.ended.values())
        assert balance.open == outcomes.open >= 0
        assert sum(n for *_, n in heard) == sum(balance.ended.values())


def test_a_trace_that_is_not_open_cannot_end():
    heard = []
    outcomes = TraceOutcomes(on_ended=lambda *what: heard.append(what))
    outcomes.seen()
    outcomes.ended(None, EndReason.SCORED)
    with pytest.raises(ValueError, match="only 0 are open"):
        outcomes.ended("a", EndReason.SCORED)
    with pytest.raises(ValueError, match="negative"):
        outcomes.seen(-1)
    assert heard == [(UNKNOWN_SERVICE, EndReason.SCORED, 1)]


def test_a_revision_ends_nothing_twice():
    outcomes = TraceOutcomes()
    outcomes.seen()
    outcomes.ended("a", EndReason.SCORED)
    outcomes.ended("a", EndReason.INCOMPLETE, revision=2)
    balance = outcomes.balance()
    assert (balance.ended, balance.revisions, balance.open) == ({EndReason.SCORED: 1}, 1, 0)


def test_a_sampled_out_trace_counts_once_while_it_is_remembered():
    outcomes = TraceOutcomes(remembered=4)
    ids = [bytes([n]) * 16 for n in range(20)]
    assert len(outcomes.sampled_out("a", set(ids[:3]))) == 3
    assert len(outcomes.sampled_out("a", set(ids[:3]))) == 0
    assert len(outcomes.sampled_out("a", {ids[3], ids[4]})) == 2
    assert len(outcomes.sampled_out("a", {ids[0]})) == 0, "the old generation still knows it"
    assert len(outcomes.sampled_out("a", set(ids[5:9]))) == 4
    assert len(outcomes.sampled_out("a", {ids[0]})) == 1, "it is forgotten, and counted as a trace of its own"


def test_names_of_services_cannot_grow_without_end():
    heard = Counter()
    outcomes = TraceOutcomes(on_ended=lambda service, reason, count: heard.update({service: count}))
    for n in range(1_500):
        outcomes.seen()
        outcomes.ended(f"{n:04}" * 1_000, EndReason.SCORED)
    assert len(heard) == 1_001
    assert heard[OTHER] == 500
    assert max(map(len, heard)) == 200


def test_more_ids_at_once_than_can_be_remembered_are_all_counted():
    outcomes = TraceOutcomes(remembered=2)
    assert len(outcomes.sampled_out("a", {bytes([n]) * 16 for n in range(100)})) == 100
    assert outcomes.balance().ended == {EndReason.SAMPLED_OUT: 100}


def test_a_trace_that_is_excluded_as_it_comes_in_counts_once_and_is_not_taken_for_one_that_was_not_drawn():
    outcomes = TraceOutcomes(remembered=5)
    ids = {bytes([n]) * 16 for n in range(3)}
    assert len(outcomes.excluded("sidejudge", ids)) == 3
    assert outcomes.excluded("sidejudge", ids) == set()
    assert outcomes.balance().ended == {EndReason.EXCLUDED: 3}
    assert outcomes.has_excluded(bytes([1]) * 16)
    assert not outcomes.has_sampled_out(bytes([1]) * 16)
    assert not outcomes.has_excluded(bytes([9]) * 16)


def test_services_of_what_is_kept_are_reported_by_names_that_are_bounded():
    heard = []
    outcomes = TraceOutcomes(on_kept=heard.append)
    outcomes.kept(["shop", None, "x" * 10_000])
    assert (heard[:2], len(heard[2])) == (["shop", UNKNOWN_SERVICE], 200)
    TraceOutcomes().kept(["shop"])
