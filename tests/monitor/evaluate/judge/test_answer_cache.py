"""The cache: answers come back as they went in, and by whom they were given."""

from __future__ import annotations

import logging

import pytest

from sidejudge.integrations.store.errors import StoreUnavailable
from sidejudge.monitor.evaluate.judge.answer_cache import Cache, CachedAnswer, key

VALUES = [True, 0.75, 2, ("a claim", "another"), {"claims": [{"claim": "a", "accurate": True}]}, (), {"level": "good"}]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_an_answer_comes_back_as_it_went_in(value):
    kept = CachedAnswer(value=value, reason="so", prompt_version="v", flags=("the judges disagree",))
    again = CachedAnswer.from_json(kept.to_json())
    assert again == kept
    assert type(again.value) is type(value)


def test_another_model_and_another_question_have_another_key():
    assert len({key("a", "q"), key("b", "q"), key("a", "r"), key("aq", "")}) == 4


async def test_a_cache_of_no_entries_asks_nobody_and_one_that_fails_is_empty(store):
    answer = CachedAnswer(value=True, reason="", prompt_version="v")
    kept, named = {"k": answer.to_json()}, {"log": logging.getLogger("sidejudge.judge"), "what": "x", "again": "y"}
    none = Cache(store.judged, CachedAnswer.from_json, entries=0, clock_ns=lambda: 1, **named)
    await none.put(kept)
    assert await none.get(["k"]) == {}
    some = Cache(store.judged, CachedAnswer.from_json, entries=10, clock_ns=lambda: 1, **named)
    await some.put(kept)
    assert await some.get(["k", "l"]) == {"k": answer}
    store.close()
    with pytest.raises(StoreUnavailable):
        store.judged.get(["k"], 1)
    assert await some.get(["k"]) == {}
    await some.put(kept)
