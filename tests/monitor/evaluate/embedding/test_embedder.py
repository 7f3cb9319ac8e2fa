"""Texts to vectors: each text once, in as few calls as can be, from the store where it was embedded before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from sidejudge.integrations.embed import EmbeddingError
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.evaluate.embedding import Embedder
from tests.waiting import until


@dataclass
class Letters:
    """A model that counts letters, call by call, and does what a test tells it to."""

    name: str = "letters"
    calls: list[list[str]] = field(default_factory=list)
    gate: asyncio.Event | None = None
    errors: dict[str, Exception] = field(default_factory=dict)
    dimensions: int = 2
    odd: set[str] = field(default_factory=set)

    async def start(self): ...

    async def embed(self, texts):
        self.calls.append(list(texts))
        if self.gate is not None:
            await self.gate.wait()
        for text, error in self.errors.items():
            if text in texts:
                raise error
        sizes = [self.dimensions + (text in self.odd) for text in texts]
        return [[float(text.count(letter)) for letter in "abc"[:n]] for text, n in zip(texts, sizes, strict=True)]

    async def close(self): ...


@dataclass
class Watched:
    hits: int = 0
    misses: int = 0
    calls: list[tuple[int, bool]] = field(default_factory=list)

    def looked_up(self, *, hits, misses):
        self.hits += hits
        self.misses += misses

    def embedded(self, *, texts, duration_s, failed):
        assert duration_s >= 0
        self.calls.append((texts, failed))


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path / "s.sqlite")
    yield opened
    opened.close()


def embedder(model, shelf, *, entries=100, watched=None):
    return Embedder(model, shelf, entries=entries, clock_ns=lambda: 1, observer=watched)


async def test_vectors_are_of_length_one_and_a_text_without_direction_has_none(store):
    found = await embedder(Letters(), store.vectors).vectors(["aaaabbb", "b", "xyz"])
    assert {text: tuple(vector) for text, vector in found.items()} == {
        "aaaabbb": pytest.approx((0.8, 0.6)),
        "b": (0.0, 1.0),
    }


async def test_a_text_is_embedded_once_even_across_a_restart_and_to_the_same_numbers(store, tmp_path):
    watched = Watched()
    first = await embedder(Letters(), store.vectors, watched=watched).vectors(["aab", "b"])
    store.close()
    again, model = Store(tmp_path / "s.sqlite"), Letters()
    second = await embedder(model, again.vectors, watched=watched).vectors(["b", "aab"])
    again.close()
    assert model.calls == []
    assert second == first
    assert (watched.hits, watched.misses, watched.calls) == (2, 2, [(2, False)])


async def test_another_model_has_vectors_of_its_own(store):
    await embedder(Letters(), store.vectors).vectors(["a"])
    other = Letters("others")
    await embedder(other, store.vectors).vectors(["a"])
    assert other.calls == [["a"]]


async def test_vectors_of_another_model_behind_the_same_name_are_made_anew(store):
    await embedder(Letters(), store.vectors).vectors(["a", "b"])
    other = Letters(dimensions=3)
    made = embedder(other, store.vectors)
    found = await made.vectors(["a", "b", "abc"])
    assert {len(vector) for vector in found.values()} == {3}
    assert other.calls == [["abc"], ["a", "b"]]
    assert await made.vectors(["a", "abc"]) == {text: found[text] for text in ("a", "abc")}
    assert len(other.calls) == 2


async def test_an_answer_with_vectors_of_two_lengths_is_not_kept(store):
    model = Letters()
    made = embedder(model, store.vectors)
    await made.vectors(["a"])
    model.odd = {"b"}
    found = await made.vectors(["a", "b", "ab"])
    assert {text: len(vector) for text, vector in found.items()} == {"a": 2, "b": 3, "ab": 2}
    model.odd = set()
    assert {len(vector) for vector in (await made.vectors(["a", "b", "ab"])).values()} == {2}
    assert model.calls == [["a"], ["b", "ab"], ["b", "ab"]]


async def test_a_model_of_one_name_at_another_address_has_vectors_of_its_own(store):
    first, other = Letters(), Letters()
    await embedder(first, store.vectors).vectors(["a"])
    elsewhere = Embedder(other, store.vectors, entries=100, clock_ns=lambda: 1, address="http://localhost:8080/v1")
    await elsewhere.vectors(["a"])
    await elsewhere.vectors(["a"])
    assert (first.calls, other.calls) == ([["a"]], [["a"]])


async def test_without_room_for_vectors_every_call_embeds_anew(store):
    model = Letters()
    made = embedder(model, store.vectors, entries=0)
    assert await made.vectors(["a"]) == await made.vectors(["a"])
    assert model.calls == [["a"], ["a"]]


async def test_what_several_cases_ask_while_the_model_works_travels_in_one_call_and_each_text_once(store):
    model = Letters(gate=asyncio.Event())
    made = embedder(model, store.vectors)
    first = asyncio.create_task(made.vectors(["a"]))
    await until(lambda: model.calls)
    others = [asyncio.create_task(made.vectors(texts)) for texts in (["b", "ab"], ["ab", "a"], ["b"])]
    await until(lambda: len(made._requested) == 3)
    model.gate.set()
    await first
    found = await asyncio.gather(*others)
    assert model.calls == [["a"], ["b", "ab"]]
    assert [sorted(each) for each in found] == [["ab", "b"], ["a", "ab"], ["b"]]


async def gathered(model, store, *requested):
    """What comes of requests that arrive while the model is busy with another."""
    model.gate = asyncio.Event()
    made = embedder(model, store.vectors)
    busy = asyncio.create_task(made.vectors(["busy a"]))
    await until(lambda: model.calls)
    tasks = [asyncio.create_task(made.vectors(texts)) for texts in requested]
    await until(lambda: len(made._requested) == len(requested))
    model.gate.set()
    await busy
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_text_that_the_model_cannot_take_costs_no_other_case_its_vectors(store):
    model = Letters(errors={"bad": EmbeddingError("too long", of_texts=True)})
    good, bad, also_good = await gathered(model, store, ["a"], ["bad"], ["b"])
    assert isinstance(bad, EmbeddingError)
    assert list(good) == ["a"]
    assert list(also_good) == ["b"]


async def test_a_model_that_is_out_is_asked_once_for_all_who_wait(store):
    model = Letters(errors={"b": EmbeddingError("unreachable")})
    reported = await gathered(model, store, ["a"], ["b"])
    assert [str(each) for each in reported] == ["unreachable", "unreachable"]
    assert len(model.calls) == 2


async def test_a_bug_of_a_model_is_told_without_what_the_texts_say_and_the_next_call_goes_on(store):
    model = Letters(errors={"secret": KeyError("secret")})
    made = embedder(model, store.vectors)
    with pytest.raises(EmbeddingError, match=r"^embedding failed: KeyError$"):
        await made.vectors(["secret"])
    assert list(await made.vectors(["a"])) == ["a"]


async def test_who_waits_when_embedding_ends_is_told_so(store):
    model = Letters(gate=asyncio.Event())
    made = embedder(model, store.vectors)
    tasks = [asyncio.create_task(made.vectors(["a"]))]
    await until(lambda: model.calls)
    tasks.append(asyncio.create_task(made.vectors(["b"])))
    await until(lambda: len(made._requested) == 1)
    await made.close()
    for task in tasks:
        with pytest.raises(EmbeddingError, match="shutting down"):
            await task


async def test_a_case_that_is_given_up_while_it_waits_disturbs_nobody(store):
    model = Letters(gate=asyncio.Event())
    made = embedder(model, store.vectors)
    first = asyncio.create_task(made.vectors(["a"]))
    await until(lambda: model.calls)
    given_up, waits = (asyncio.create_task(made.vectors([text])) for text in ("b", "ab"))
    await until(lambda: len(made._requested) == 2)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    model.gate.set()
    assert list(await first) == ["a"]
    assert list(await waits) == ["ab"]
    assert model.calls == [["a"], ["ab"]]


async def test_a_store_that_is_closed_costs_time_and_not_the_answer(store):
    made = embedder(Letters(), store.vectors)
    store.close()
    assert list(await made.vectors(["a"])) == ["a"]
