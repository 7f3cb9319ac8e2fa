"""The answerer: replies to what embeddings can tell, in one call, and never an exception."""

from __future__ import annotations

import asyncio
import logging

import pytest

from sidejudge.integrations.embed import EmbeddingError
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.monitor.config.evaluators import EmbeddingSection
from sidejudge.monitor.evaluate.backends import Backends, JudgeAccount
from sidejudge.monitor.evaluate.embedding import Embedder, EmbeddingBackend, embedding_backend
from sidejudge.monitor.offline.score.request import LruCache
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.embedding import MAX_TEXTS
from sidejudge.scoring.questions.kinds import BorneOut, SameEntity, SameFact, SameHighlight, SentenceSimilarity
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Method
from tests.fakes import openai as fake
from tests.needs import LITELLM
from tests.waiting import until

CASE = Case(case_id="c", model_output="x")


class Model:
    """A model by a table; what stands not in it has no direction."""

    name = "table"

    def __init__(self, *, error: Exception | None = None, **table):
        self.table, self.error, self.calls = table, error, 0

    async def start(self):
        if self.error is not None:
            raise self.error

    async def embed(self, texts):
        self.calls += 1
        if self.error is not None:
            raise self.error
        return [self.table.get(text, (0.0, 0.0)) for text in texts]

    async def close(self): ...


def answerer(model):
    return EmbeddingBackend(Embedder(model, LruCache(), entries=100, clock_ns=lambda: 1))


async def test_all_texts_of_a_round_are_embedded_in_one_call():
    model = Model(a=(1.0, 0.0), b=(0.6, 0.8), c=(0.8, 0.6))
    similar, same = SentenceSimilarity((("a", "b"),)), SameEntity(("a",), ("b", "c"))
    replies = await answerer(model).answer(CASE, [similar, same, SameHighlight("a", "c"), SameFact("a", "b")])
    assert model.calls == 1
    assert replies[similar].value == (pytest.approx(0.6),)
    assert replies[same].value == (1,)
    assert replies[SameHighlight("a", "c")].value is True
    assert replies[SameFact("a", "b")].value is False
    assert {reply.method for reply in replies.values()} == {Method.EMBEDDING}


async def test_other_questions_are_left_to_others_and_load_no_model():
    model = Model()
    assert await answerer(model).answer(CASE, [BorneOut("reason")]) == {}
    assert model.calls == 0


@pytest.mark.parametrize(
    ("error", "reason"),
    [(EmbeddingError("no such model", "install it"), "no such model; install it"), (KeyError("x"), "KeyError")],
)
async def test_a_model_that_fails_is_a_failure_with_its_reason(error, reason):
    question = SentenceSimilarity((("a", "b"),))
    reply = (await answerer(Model(error=error)).answer(CASE, [question]))[question]
    assert isinstance(reply, NoAnswer)
    assert reply.failed
    assert reason in reply.reason


async def test_a_text_without_a_vector_fails_its_question_and_no_other():
    sound, broken = SentenceSimilarity((("a", "a2"),)), SentenceSimilarity((("a", "nothing"),))
    replies = await answerer(Model(a=(1.0, 0.0), a2=(1.0, 0.0))).answer(CASE, [sound, broken])
    assert replies[sound].value == (pytest.approx(1.0),)
    assert isinstance(replies[broken], NoAnswer)
    assert replies[broken].failed


async def test_a_question_that_is_too_long_costs_the_others_nothing_and_goes_to_the_next():
    long = SentenceSimilarity(tuple((f"{n}", "x") for n in range(MAX_TEXTS)))
    sound = SentenceSimilarity((("a", "a2"),))
    replies = await answerer(Model(a=(1.0, 0.0), a2=(1.0, 0.0))).answer(CASE, [long, sound])
    assert isinstance(replies[sound], Answer)
    assert isinstance(replies[long], NoAnswer)
    assert not replies[long].failed


async def test_vectors_of_two_models_of_one_name_are_an_error_and_no_number_for_what_compares_them():
    sound, broken = SentenceSimilarity((("a", "a2"),)), SentenceSimilarity((("a", "b"),))
    model = Model(a=(1.0, 0.0), a2=(1.0, 0.0), b=(1.0, 0.0, 0.0))
    replies = await answerer(model).answer(CASE, [sound, broken])
    assert replies[sound].value == (pytest.approx(1.0),)
    assert isinstance(replies[broken], NoAnswer)
    assert replies[broken].failed
    assert replies[broken].reason == "the vectors cannot be compared: vectors of 2 and of 3 dimensions"


async def test_a_failure_is_logged_once_and_names_cause_and_remedy(caplog):
    made = answerer(Model(error=EmbeddingError("no such model", "install it")))
    with caplog.at_level(logging.ERROR, "sidejudge.embedding"):
        await made.warm()
        for n in range(3):
            await made.answer(CASE, [SentenceSimilarity((("a", f"b{n}"),))])
    (record,) = caplog.records
    assert (record.cause, record.remedy) == ("no such model", "install it")


@LITELLM.mark
async def test_what_an_endpoint_answers_is_in_no_log_and_an_outage_is_logged_each_time(caplog):
    def quotes(seen):
        return fake.error(400, f"invalid input {seen.body['input']}")(seen)

    library, now_s = LiteLLM(), [1]
    with fake.Provider() as provider, caplog.at_level(logging.ERROR, "sidejudge.embedding"):
        section = EmbeddingSection(model="openai/m", remote=True, api_base=provider.url, api_key="sk-none-12345")
        made = embedding_backend(section, library=library, storage=LruCache(), clock_ns=lambda: now_s[0] * 10**9)
        works = fake.embeds(lambda _: (1.0, 0.5))
        for number, does in enumerate((quotes, quotes, works, fake.no_credit(), works, fake.no_credit())):
            provider.standing, now_s[0] = does, now_s[0] + 10
            if number == 4:  # it is tried again
                await until(lambda: made.outage is None)
            (reply,) = (await made.answer(CASE, [SentenceSimilarity(((f"secret {number}", "a"),))])).values()
            assert ("secret" in str(reply.reason)) == (does is quotes), "whoever may see contents sees it"
        await made.close()
    await library.close()
    refused, *outages = [record.cause for record in caplog.records]
    assert refused == "embeddings of openai/m: bad request (HTTP 400)"
    assert [each.partition(" - ")[0] for each in outages] == [
        "embeddings of openai/m: credit exhausted: Error code: 429"
    ] * 2


async def test_what_embeddings_leave_open_a_judge_is_asked():
    open_one = SameFact("Refund initiated", "A repayment of $49")

    class Judge:
        async def answer(self, case, questions, account=None):
            return {question: Answer(value=True, method=Method.JUDGE) for question in questions}

    model = Model(**dict.fromkeys((open_one.expected, open_one.found), (1.0, 0.0)))
    chain = Backends(order=(answerer(model), Judge()))
    reported = await chain.ask(CASE, [open_one], lambda: None, JudgeAccount())
    assert reported[open_one].method is Method.JUDGE


@LITELLM.mark
async def test_a_case_that_an_endpoint_cannot_take_costs_those_that_asked_with_it_nothing(caplog):
    library = LiteLLM()
    works = fake.embeds(lambda _: (1.0, 0.5))
    with fake.Provider(lambda seen: (fake.error(500, "broken") if b"poison" in seen.raw else works)(seen)) as provider:
        section = EmbeddingSection(model="openai/m", remote=True, api_base=provider.url, api_key="sk-none-12345")
        made = embedding_backend(section, library=library, storage=LruCache(), clock_ns=lambda: 1)
        cases = [SentenceSimilarity(((name, "b"),)) for name in ("first", "poison", "c", "d")]
        replies = await asyncio.gather(*(made.answer(CASE, [each]) for each in cases))
        failed = [reply for each in replies for reply in each.values() if isinstance(reply, NoAnswer)]
        (why,) = [str(reply.reason) for reply in failed]
        assert why.startswith("embeddings of openai/m: overloaded")
        assert made.outage is None
        provider.standing = fake.error(500, "broken")
        await made.answer(CASE, [SentenceSimilarity((("e", "b"),))])
        out = "embeddings are unreachable; traces that need them wait"
        assert [record.message for record in caplog.records] == ["could not embed", out], "though for the same cause"
        await made.close()
    await library.close()


@LITELLM.mark
async def test_what_a_batch_has_got_is_not_asked_for_again_though_another_is_refused():
    library, now_s = LiteLLM(), [1]
    works = fake.embeds(lambda _: (1.0, 0.5))
    with fake.Provider(works) as provider:
        section = EmbeddingSection(
            model="openai/m", remote=True, api_base=provider.url, api_key="sk-none-12345", batch_size=2
        )
        made = embedding_backend(section, library=library, storage=LruCache(), clock_ns=lambda: now_s[0] * 10**9)
        question = SentenceSimilarity((("a", "b"), ("c", "d"), ("e", "f")))
        provider.will(works, fake.too_many("0"), works, fake.too_many("100"))
        (reply,) = (await made.answer(CASE, [question])).values()
        assert str(reply.reason).startswith("embeddings unavailable: embeddings of openai/m: rate limited")
        now_s[0] += 101
        await until(lambda: made.outage is None)
        (reply,) = (await made.answer(CASE, [question])).values()
        assert isinstance(reply, Answer)
        sent = [tuple(seen.body["input"]) for seen in provider.seen]
        assert sent == [("a", "b"), ("c", "d"), ("c", "d"), ("e", "f"), ("Where is my parcel?",), ("e", "f")]
        await made.close()
    await library.close()
