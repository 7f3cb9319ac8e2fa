"""Baselines: what they learn, what they forget, and what a restart finds."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sidejudge.integrations.store.sqlite import Store, StoreError
from sidejudge.monitor.evaluate.baselines import ENOUGH, REMEMBERED, SERVICES, Baselines


class Memory:
    def __init__(self, held=()):
        self.held, self.broken = dict(held), False

    def all(self):
        return dict(self.held)

    async def change(self, values):
        if self.broken:
            raise StoreError("full")
        for name, text in values.items():
            self.held.pop(name, None) if text is None else self.held.__setitem__(name, text)


def judged(tokens, *, service="shop", revision=1, probability=1.0, effort=True):
    return SimpleNamespace(
        service=service, revision=revision, verdicts=(SimpleNamespace(sampling_probability=probability),),
        details={"environment": "prod", **({"effort": {"tokens": tokens}} if effort else {})},
    )  # fmt: skip


def learned(results, memory=None):
    found = Baselines(memory or Memory())
    for each in results:
        found.committed(each)
    return found


def test_nothing_is_usual_before_enough_runs_are_known():
    found = learned(judged(100.0) for _ in range(ENOUGH - 2))
    assert found.usual("shop", "prod").limits == {}
    for _ in range(10):
        found.committed(judged(100.0))
    assert found.usual("shop", "prod").limits["tokens"] == pytest.approx(163.4, abs=0.1)
    assert found.usual("shop", "dev").limits == {}


def test_it_follows_the_latest_runs_and_holds_no_more():
    found = learned([*[judged(100.0)] * REMEMBERED, *[judged(1000.0)] * REMEMBERED])
    assert found.usual("shop", "prod").medians["tokens"] == 1000.0
    assert found.usual("shop", "prod").runs == REMEMBERED


def test_runs_count_by_their_weight():
    found = learned([*[judged(100.0, probability=0.01)] * 30, *[judged(1000.0)] * 50])
    assert found.usual("shop", "prod").medians["tokens"] == 100.0


def test_a_run_whose_judged_rubric_the_budget_drew_weighs_as_one_that_needs_no_judge():
    drawn = judged(100.0)
    drawn.verdicts = (SimpleNamespace(sampling_probability=0.01), *drawn.verdicts)
    found = learned([*[drawn] * 30, *[judged(1000.0)] * 50])
    assert found.usual("shop", "prod").medians["tokens"] == 1000.0, "its effort was known whether or not it was drawn"


def test_revisions_and_incomplete_traces_teach_nothing():
    found = learned([*[judged(100.0, revision=2)] * 99, *[judged(100.0, effort=False)] * 99])
    assert found.usual("shop", "prod").runs == 0


async def test_the_service_that_is_quiet_for_longest_makes_room():
    memory = Memory()
    found = learned([judged(1.0, service="first")] * 64, memory)
    await found.remember()
    for number in range(SERVICES):
        found.committed(judged(1.0, service=f"s{number}"))
    assert found.usual("first", "prod").runs == 0
    await found.remember()
    assert len(memory.held) == SERVICES


async def test_a_restart_goes_on_where_the_last_process_ended(tmp_path):
    store = Store(tmp_path / "state.sqlite")
    await store.kept.change({"cursor": "7"})
    found = learned([judged(100.0)] * 64, store.kept.room("baselines"))
    await found.remember()
    store.close()
    store = Store(tmp_path / "state.sqlite")
    again = Baselines(store.kept.room("baselines"))
    again.restore()
    assert again.usual("shop", "prod") == found.usual("shop", "prod")
    assert store.kept.all() == {"cursor": "7"}, "the alerts' memory is apart from it"
    store.close()


async def test_what_could_not_be_stored_is_stored_the_next_time():
    memory = Memory()
    found = learned([judged(100.0)] * 64, memory)
    memory.broken = True
    with pytest.raises(StoreError):
        await found.remember()
    memory.broken = False
    await found.remember()
    assert len(memory.held) == 1


@pytest.mark.parametrize("held", [{"x": "[]"}, {'["a",null]': "{"}, {'["a",null]': "[[1]]"}, {'["a",null]': "[[1,2]]"}])
def test_a_baseline_that_cannot_be_read_is_learned_anew(held):
    found = Baselines(Memory(held))
    found.restore()
    assert found.usual("a", None).runs == 0
