"""What is owed to traces whose references changed late: kept, put off, given up, and begun anew by another change."""

from __future__ import annotations

import pytest

from sidejudge.integrations.store.sqlite import Store

ONE, OTHER = b"1" * 16, b"2" * 16
BEFORE, AFTER = b"b" * 16, b"a" * 16


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.sqlite"


@pytest.fixture
def store(path):
    made = Store(path)
    yield made
    made.close()


async def test_what_is_noted_is_due_until_it_is_done_and_noting_it_again_changes_nothing(store):
    await store.late_references.note({ONE: BEFORE, OTHER: BEFORE}, 100, 100)
    await store.late_references.note({ONE: BEFORE}, 200, 200)
    first, second = store.late_references.due(100, 9)
    assert {first.trace_id, second.trace_id} == {ONE, OTHER}
    assert (first.since_ns, first.attempts, first.wanted) == (100, 0, BEFORE)
    assert len(store.late_references.due(100, 1)) == 1
    assert store.late_references.due(99, 9) == []
    await store.late_references.done(first)
    assert [each.trace_id for each in store.late_references.due(200, 9)] == [second.trace_id]
    assert store.late_references.of(first.trace_id) is None


async def test_what_came_to_nothing_waits_and_what_is_over_is_not_due_again(store):
    await store.late_references.note({ONE: BEFORE, OTHER: BEFORE}, 100, 100)
    one, other = sorted(store.late_references.due(100, 9), key=lambda each: each.trace_id)
    await store.late_references.postpone(one, 500, "gone", over=False)
    await store.late_references.postpone(other, 0, "too_large", over=True)
    assert store.late_references.due(499, 9) == []
    (due,) = store.late_references.due(500, 9)
    assert (due.trace_id, due.attempts) == (ONE, 1)
    assert store.late_references.of(ONE).reason == "gone"
    assert store.late_references.of(OTHER).over
    reported = store.late_references.status()
    assert (reported.waiting, reported.oldest_ns, reported.over) == (1, 100, 1)
    await store.late_references.note({OTHER: BEFORE}, 900, 900)
    assert len(store.late_references.due(10**6, 9)) == 1, "the same change stays given up"
    await store.late_references.note({OTHER: AFTER}, 900, 900)
    assert [(each.trace_id, each.attempts) for each in store.late_references.due(900, 9)] == [(ONE, 1), (OTHER, 0)]


async def test_what_was_given_up_for_a_reason_that_holds_no_longer_is_due_again(store):
    await store.late_references.note({ONE: BEFORE, OTHER: BEFORE}, 100, 100)
    one, other = sorted(store.late_references.due(100, 9), key=lambda each: each.trace_id)
    await store.late_references.postpone(one, 0, "no_langfuse", over=True)
    await store.late_references.postpone(other, 0, "too_large", over=True)
    await store.late_references.revive("no_langfuse", 300)
    assert [(each.trace_id, each.attempts) for each in store.late_references.due(300, 9)] == [(ONE, 0)]


async def test_word_of_an_older_change_changes_nothing(store):
    await store.late_references.note({ONE: BEFORE}, 100, 100)
    (older,) = store.late_references.due(100, 9)
    await store.late_references.note({ONE: AFTER}, 200, 200)
    await store.late_references.done(older)
    await store.late_references.postpone(older, 10**6, "gone", over=True)
    (due,) = store.late_references.due(200, 9)
    assert (due.wanted, due.attempts) == (AFTER, 0)


async def test_it_goes_with_what_verdicts_were_held_against(store):
    await store.late_references.note({ONE: BEFORE}, 100, 100)
    await store.purge(10**9, chunks_before_ns=10**9, referred_before_ns=100)
    assert store.late_references.of(ONE) is not None
    await store.purge(10**9, chunks_before_ns=10**9, referred_before_ns=101)
    assert store.late_references.of(ONE) is None


def test_a_file_of_version_9_is_brought_up_to_date(path, left_by):
    left_by(path, 9)
    store = Store(path)
    assert store.late_references.status().waiting == 0
    store.close()
