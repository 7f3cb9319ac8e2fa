"""Batches: requests travel together at half the price, and a run that was killed gets what it handed in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from sidejudge.integrations.judge.batch import BatchJudgeClient
from sidejudge.integrations.judge.client import JudgeClient, JudgeModel
from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind
from sidejudge.integrations.provider.library import LiteLLM
from tests.fakes import openai as fake
from tests.fakes.batches import Batches
from tests.waiting import until


@dataclass(frozen=True)
class Request:
    text: str
    schema_name: str = "answer"
    answer_tokens: int = 100

    @property
    def messages(self):
        return ({"role": "user", "content": self.text},)

    @property
    def schema(self):
        return {"type": "object", "properties": {}}


class Notes:
    def __init__(self):
        self.held = {}

    def all(self):
        return dict(self.held)

    async def change(self, values):
        self.held = {name: text for name, text in {**self.held, **values}.items() if text is not None}


@pytest.fixture
def served():
    batches = Batches(fake.states(lambda messages: messages[0]["content"].upper()))
    with fake.Provider(batches) as provider:
        yield batches, provider


@pytest.fixture
async def library():
    loaded = LiteLLM()
    yield loaded
    await loaded.close()


def asking(library, notes):
    return BatchJudgeClient(JudgeClient(library), library, notes, gather_s=0.2, poll_s=0.1)


def model(provider):
    return JudgeModel(name="openai/gpt-4o-mini", api_base=provider.url, api_key="sk-very-secret")


async def test_requests_that_come_together_are_one_batch_at_half_the_price(served, library):
    batches, provider = served
    client = asking(library, Notes())
    texts = [f"question {number}" for number in range(20)]
    answers = await asyncio.gather(*(client.complete(Request(text), model(provider)) for text in texts))
    assert [each.text for each in answers] == [text.upper() for text in texts]
    assert (len(batches.batches), len(batches.files[0].splitlines())) == (1, 20)
    assert answers[0].usage.input_tokens == len(texts[0]) // 4
    whole, half = await JudgeClient(library).price(model(provider)), await client.price(model(provider))
    assert half.input_usd_per_million == pytest.approx(whole.input_usd_per_million / 2)
    await client.close()


async def test_a_line_separator_within_an_answer_ends_no_line(served, library):
    _, provider = served
    client = asking(library, Notes())
    texts = ["one\u2028two", "three\x85four"]
    answers = await asyncio.gather(*(client.complete(Request(text), model(provider)) for text in texts))
    assert [each.text for each in answers] == [text.upper() for text in texts]
    await client.close()


async def test_a_run_that_was_killed_gets_the_answers_of_the_batch_that_it_handed_in(served, library):
    batches, provider = served
    batches.looks, notes = 10**9, Notes()
    first = asking(library, notes)
    asked = [asyncio.create_task(first.complete(Request(text), model(provider))) for text in ("one", "two")]
    await until(lambda: bool(notes.held))
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await first.close()
    batches.looks = 0
    second = asking(library, notes)
    answers = await asyncio.gather(*(second.complete(Request(text), model(provider)) for text in ("one", "three")))
    assert [each.text for each in answers] == ["ONE", "THREE"]
    assert [len(each.splitlines()) for each in batches.files] == [2, 1], "only what is new was handed in"
    await second.close()


async def test_what_a_batch_does_not_answer_is_put_into_the_next_one(served, library):
    batches, provider = served
    batches.lost = lambda at: at == 0 and len(batches.batches) == 1
    client = asking(library, Notes())
    texts = ("one", "two", "three")
    answers = await asyncio.gather(*(client.complete(Request(text), model(provider)) for text in texts))
    assert [each.text for each in answers] == ["ONE", "TWO", "THREE"]
    assert [len(each.splitlines()) for each in batches.files] == [3, 1]
    await client.close()


async def test_what_three_batches_do_not_answer_fails(served, library):
    batches, provider = served
    batches.lost = lambda _: True
    client = asking(library, Notes())
    with pytest.raises(ProviderError, match="the batch is completed without it") as failed:
        await client.complete(Request("one"), model(provider))
    assert (failed.value.kind, len(batches.batches)) == (ProviderErrorKind.OVERLOADED, 3)
    batches.lost = lambda _: False
    assert (await client.complete(Request("one"), model(provider))).text == "ONE"
    await client.close()


async def test_what_an_expired_batch_answered_is_not_paid_for_again_after_a_restart(served, library):
    batches, provider = served
    batches.ends, batches.lost, notes = "expired", lambda at: at == 1, Notes()
    first = asking(library, notes)
    asked = [asyncio.create_task(first.complete(Request(text), model(provider))) for text in ("one", "two")]
    await until(lambda: len(batches.batches) == 2)
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await first.close()
    batches.lost = lambda _: False
    second = asking(library, notes)
    answers = await asyncio.gather(*(second.complete(Request(text), model(provider)) for text in ("one", "two")))
    assert [each.text for each in answers] == ["ONE", "TWO"]
    assert [len(each.splitlines()) for each in batches.files] == [2, 1], "nothing was submitted once more"
    await second.close()


async def test_a_file_of_a_batch_that_is_gone_costs_no_answer_of_the_other(served, library):
    batches, provider = served
    batches.lost, batches.errors = lambda at: at == 0 and len(batches.batches) == 1, "file-that-is-gone"
    client = asking(library, Notes())
    answers = await asyncio.gather(*(client.complete(Request(text), model(provider)) for text in ("one", "two")))
    assert [each.text for each in answers] == ["ONE", "TWO"]
    assert [len(each.splitlines()) for each in batches.files] == [2, 1]
    await client.close()


async def test_what_is_asked_at_once_waits_for_no_batch(served, library):
    batches, provider = served
    provider.will(fake.states("yes"))
    client = asking(library, Notes())
    assert (await client.at_once(Request("are you there?"), model(provider))).text == "yes"
    assert batches.files == []


async def test_a_run_that_is_called_off_notes_the_batch_that_it_is_submitting(served, library):
    batches, provider = served
    batches.delay_s, notes = 0.5, Notes()
    client = asking(library, notes)
    asked = asyncio.create_task(client.complete(Request("one"), model(provider)))
    await until(lambda: bool(batches.batches))
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    await client.close()
    assert list(notes.held) == ["batch-0"]


async def test_a_batch_that_a_busy_provider_does_not_take_is_submitted_later(served, library):
    batches, provider = served
    provider.will(*[fake.error(503, "busy", retry_after="0")] * 4)  # the provider's client tries four times itself
    client = asking(library, Notes())
    assert (await client.complete(Request("one"), model(provider))).text == "ONE"
    assert len(batches.files) == 1
    await client.close()


async def test_a_batch_that_a_provider_s_queue_has_no_room_for_is_submitted_in_parts_one_after_the_other(
    served, library
):
    batches, provider = served
    batches.room, batches.looks, notes = 3, 4, Notes()
    client = asking(library, notes)
    texts = [f"text {number}" for number in range(10)]
    answers = await asyncio.gather(*(client.complete(Request(text), model(provider)) for text in texts))
    assert [each.text for each in answers] == [text.upper() for text in texts]
    answered = [each["lines"] for each in batches.batches if not each["full"]]
    assert (sum(answered), max(answered) <= 3) == (10, True), "none was paid for twice"
    assert len(batches.batches) - len(answered) <= 6
    assert {name for name, text in notes.held.items() if text} == {
        f"batch-{number}" for number, each in enumerate(batches.batches) if not each["full"]
    }
    await client.close()


async def test_a_request_that_a_queue_never_has_room_for_fails_with_the_provider_s_reason(served, library):
    batches, provider = served
    batches.room = 0
    client = BatchJudgeClient(JudgeClient(library), library, Notes(), gather_s=0.02, poll_s=0.01)
    with pytest.raises(ProviderError, match="Enqueued token limit reached") as failed:
        await client.complete(Request("one"), model(provider))
    assert (failed.value.kind, len(batches.batches)) == (ProviderErrorKind.RATE_LIMITED, 7)
    await client.close()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (fake.error(400, "temperature must be below 2"), ProviderErrorKind.BAD_REQUEST),
        (fake.too_many(), ProviderErrorKind.RATE_LIMITED),
        (fake.error(408, "took too long"), ProviderErrorKind.TIMEOUT),
        (fake.error(409, "the lock is held"), ProviderErrorKind.OVERLOADED),
        (fake.too_long(), ProviderErrorKind.CONTEXT_OVERFLOW),
        (fake.refuses(), ProviderErrorKind.CONTENT_REFUSED),
        (fake.no_choices(), ProviderErrorKind.BAD_ANSWER),
        (fake.body(b'{"choices": [{"message": null}]}'), ProviderErrorKind.BAD_ANSWER),
        (fake.body(b'"no object"'), ProviderErrorKind.BAD_ANSWER),
    ],
)
async def test_a_line_that_is_no_answer_is_the_error_that_it_states(served, library, answer, kind):
    batches, provider = served
    batches.answer = answer
    client = asking(library, Notes())
    with pytest.raises(ProviderError) as failed:
        await client.complete(Request("one"), model(provider))
    assert failed.value.kind is kind
    await client.close()


async def test_a_batch_that_cannot_be_handed_in_fails_its_requests(served, library):
    _, provider = served
    provider.standing = fake.error(401, "no")
    client = asking(library, Notes())
    with pytest.raises(ProviderError) as failed:
        await client.complete(Request("one"), model(provider))
    assert failed.value.kind is ProviderErrorKind.AUTHENTICATION_FAILED
    await client.close()
