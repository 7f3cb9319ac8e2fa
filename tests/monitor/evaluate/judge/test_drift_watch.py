"""Drift watch: the sample is asked again once a day past the cache, survives a restart, and forgets what is erased."""

from __future__ import annotations

import json
import logging

import pytest

from sidejudge.integrations.store.erasure import SAMPLE, erase, held_traces
from sidejudge.integrations.store.errors import StoreError
from sidejudge.monitor.config.evaluators import DriftSection
from sidejudge.monitor.config.units import Duration
from sidejudge.monitor.evaluate.judge.drift_watch import MAX_BYTES, SPACING_NS, DriftWatch
from sidejudge.monitor.offline.forget import Selection
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.kinds import SameFact, Supported
from sidejudge.scoring.trace.time_units import DAY_NS
from tests.fakes import openai as fake
from tests.fakes.judge import judges
from tests.needs import LITELLM
from tests.waiting import until

pytestmark = LITELLM.mark
T0 = 1_790_000_000 * 10**9


class Clock:
    now_ns = T0

    def __call__(self):
        return self.now_ns


def score(value):
    return judges(lambda _metric, field: value if field == "score" else None)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watched_judge(made, store, clock):
    def make(judge=None, **settings):
        section = DriftSection(**{"prompts": 12, **settings})
        watch = DriftWatch(store.kept.room("drift"), section=section, clock_ns=clock)
        watch.restore()
        return watch, judge or made(on_answered=watch.take)

    return make


async def fill(judge, clock, count, *, text="A refund of $49."):
    for number in range(count):
        clock.now_ns += SPACING_NS
        case = Case(case_id=f"{number:032x}", trace_id=f"{number:032x}", model_output=text, transcript=f"call {number}")
        await judge.answer(case, [Supported(f"claim {number}"), SameFact("a", f"b{number}")])


async def test_a_judge_that_moved_is_found_with_what_moved_and_it_is_asked_once_a_day(
    watched_judge, provider, clock, store
):
    provider.standing = score(1)
    watch, judge = watched_judge()
    await fill(judge, clock, 14)
    assert len(provider.seen) == 14
    await watch.round(judge)
    assert len(store.kept.under(SAMPLE)) == 12
    assert len(provider.seen) == 14 + 12, "the sample is full at twelve, and asked whatever the cache holds"
    assert [each.moved for each in watch.latest] == [False, False]
    provider.standing = score(0)
    await watch.round(judge)
    assert len(provider.seen) == 26, "once a day"
    clock.now_ns += DAY_NS
    await watch.round(judge)
    assert {(each.metric, each.n, each.higher, each.lower, each.moved) for each in watch.latest} == {
        ("fabrication_free_rate", 12, 0, 12, True), ("same_fact", 12, 0, 12, True)
    }  # fmt: skip

    clock.now_ns -= 400 * DAY_NS
    await watch.round(judge)
    assert len(provider.seen) == 50, "the clock was set back: not when that time comes again"
    again, judge = watched_judge()
    assert again.latest == watch.latest
    await again.round(judge)
    assert len(provider.seen) == 50, "a restart asks nothing anew"


async def test_a_provider_that_quotes_a_prompt_is_not_quoted_in_the_log(watched_judge, provider, clock, caplog):
    provider.standing = score(1)
    watch, judge = watched_judge()
    await fill(judge, clock, 1)
    provider.standing = lambda seen: fake.error(400, f"cannot read {seen.messages[-1]['content'][:200]}")(seen)
    with caplog.at_level(logging.INFO, "sidejudge.judge"):
        await watch.round(judge)
    assert [each.cause for each in caplog.records if each.message == "a prompt was not answered again"] == [
        "bad request"
    ]


async def test_what_is_forgotten_shortly_after_its_answer_is_not_written_by_the_next_round(
    watched_judge, provider, clock, store
):
    provider.standing = score(1)
    watch, judge = watched_judge()
    await fill(judge, clock, 1)
    await until(lambda: len(store.kept.under(SAMPLE)) == 1, seconds=5)
    erase(store.path, [bytes(16)], scores=False, now_ns=clock())
    await watch.round(judge)
    assert store.kept.under(SAMPLE) == {}


async def test_what_is_forgotten_is_asked_no_more_and_nothing_of_it_is_left(watched_judge, provider, clock, store):
    provider.standing = score(1)
    watch, judge = watched_judge()
    await fill(judge, clock, 12)
    await watch.round(judge)
    erase(store.path, [bytes.fromhex(f"{3:032x}")], scores=False, now_ns=clock.now_ns)
    assert not any("call 3" in text for text in store.kept.room("drift").all().values())
    clock.now_ns += DAY_NS
    before = len(provider.seen)
    await watch.round(judge)
    assert len(provider.seen) == before + 11
    assert not any("call 3" in text for text in store.kept.room("drift").all().values())


async def test_a_person_is_forgotten_when_nothing_but_the_sample_is_left_of_their_trace(
    watched_judge, provider, clock, store
):
    provider.standing = score(1)
    watch, judge = watched_judge()
    for number, user in enumerate(("ann", "ben")):
        clock.now_ns += SPACING_NS
        case = Case(
            case_id="c",
            trace_id=f"{number:032x}",
            user_id=user,
            session_id=f"s-{user}",
            model_output="",
            transcript=user,
        )
        await judge.answer(case, [Supported(user)])
    await watch.round(judge)
    selection = Selection(users=frozenset({"ann"}))
    assert set(selection.selected(held_traces(store.path))) == {bytes(16)}
    assert set(Selection(sessions=frozenset({"s-ben"})).selected(held_traces(store.path))) == {b"\0" * 15 + b"\1"}
    erase(store.path, [bytes(16)], scores=False, now_ns=clock.now_ns)
    assert list(selection.selected(held_traces(store.path))) == []


async def test_what_is_too_long_or_too_old_or_of_another_judge_is_not_in_the_sample(
    watched_judge, made, provider, clock, store
):
    provider.standing = score(1)
    watch, judge = watched_judge(keep=Duration(2 * DAY_NS))
    await fill(judge, clock, 1, text="x" * MAX_BYTES)
    await fill(judge, clock, 2)
    await watch.round(judge)
    assert len(provider.seen) == 3 + 2
    clock.now_ns += 2 * DAY_NS + 1
    await watch.round(judge)
    assert [name for name in store.kept.room("drift").all() if name != "latest"] == []
    other, another = watched_judge(made(names=("openai/other",)))
    await fill(judge, clock, 1)
    await watch.round(judge)
    other.restore()
    clock.now_ns += DAY_NS
    await other.round(another)
    assert [name for name in store.kept.room("drift").all() if name != "latest"] == []
    assert another.name != judge.name


async def test_a_spent_budget_ends_in_no_conclusion(watched_judge, made, provider, clock):
    provider.standing = score(1)
    watch, judge = watched_judge()
    await fill(judge, clock, 12)
    await watch.round(judge)
    known = watch.latest
    provider.standing = fake.no_credit()
    clock.now_ns += DAY_NS
    await watch.round(judge)
    assert watch.latest == known
    assert json.loads(json.dumps([each.to_json() for each in known]))


async def test_prompts_that_the_store_could_not_take_are_written_with_the_next_round(
    watched_judge, provider, clock, store, monkeypatch
):
    provider.standing = score(1)
    watch, judge = watched_judge()
    await fill(judge, clock, 2)

    async def full(_values):
        raise StoreError("full")

    with monkeypatch.context() as broken:
        broken.setattr(watch._memory, "change", full)
        await watch.round(judge)
    await watch.round(judge)
    assert len([name for name in store.kept.room("drift").all() if name != "latest"]) == 2
