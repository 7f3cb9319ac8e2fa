"""Recent ids: nothing that is fresh is missed, and memory is bounded whatever comes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidejudge.monitor.ingest.outcomes import RecentIds

SEEN = st.lists(st.sets(st.integers(0, 30).map(lambda n: n.to_bytes(16, "big"))), max_size=30)


@given(seen=SEEN, remembered=st.integers(1, 10))
def test_what_is_fresh_is_told_once_while_it_is_remembered_and_memory_is_two_generations(seen, remembered):
    recent = RecentIds(remembered)
    for ids in seen:
        known = {each for each in ids if each in recent}
        assert recent.learn(ids) == ids - known
        assert len(recent) <= 2 * remembered


def test_an_id_outlives_as_many_others_as_are_remembered():
    recent = RecentIds(3)
    recent.learn({b"first"})
    for n in range(3):
        recent.learn({bytes([n])})
    assert b"first" in recent
