"""An endpoint that fails in passing is asked again; one that will not change its mind is not."""

from __future__ import annotations

import pytest

from sidejudge.integrations.embed import EmbeddingError, RemoteModel
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.monitor.evaluate.embedding import RETRIES, Retrying
from tests.fakes import openai
from tests.needs import LITELLM
from tests.waiting import until

pytestmark = LITELLM.mark


@pytest.fixture
def provider():
    with openai.Provider(openai.embeds(lambda text: (float(len(text)), 1.0))) as running:
        yield running


@pytest.fixture
async def model(provider):
    library = LiteLLM()
    remote = RemoteModel("openai/m", library, api_base=provider.url, api_key="sk-very-secret", timeout_s=5.0)
    yield Retrying(remote, jitter=lambda: 0.0)
    await library.close()


async def test_what_fails_in_passing_is_asked_again(model, provider):
    provider.will(openai.too_many("0"), openai.page(503), openai.resets())
    assert [list(vector) for vector in await model.embed(["aa"])] == [[2.0, 1.0]]
    assert len(provider.seen) == 4


async def test_it_is_not_asked_for_ever(model, provider):
    provider.standing = openai.page(503)
    with pytest.raises(EmbeddingError, match="embeddings of openai/m: overloaded") as reported:
        await model.embed(["aa"])
    assert len(provider.seen) == RETRIES + 1 + 1, "and once with a text of our own"
    assert (reported.value.of_texts, reported.value.outage, reported.value.lasting) == (False, True, False)


async def test_an_endpoint_that_is_out_is_asked_with_a_text_of_our_own_until_it_answers(provider):
    now, library = [1_000.0], LiteLLM()
    remote = RemoteModel("openai/m", library, api_base=provider.url, api_key="sk-very-secret")
    made = Retrying(remote, jitter=lambda: 0.0, clock=lambda: now[0])
    assert made.outage is None
    provider.will(openai.too_many("120"), openai.page(503))
    with pytest.raises(EmbeddingError, match="rate limited"):
        await made.embed(["aa"])
    assert len(provider.seen) == 1, "a longer wait than any pause ends the attempts"
    now[0] += 119
    assert (str(made.outage).partition(":")[0], len(provider.seen)) == ("embeddings of openai/m", 1)
    now[0] += 2
    await until(lambda: made.outage is not None and len(provider.seen) == 2 and "overloaded" in str(made.outage))
    now[0] += 11  # the second wait is of ten seconds
    await until(lambda: made.outage is None)
    assert [seen.body["input"] for seen in provider.seen] == [["aa"], ["Where is my parcel?"], ["Where is my parcel?"]]
    await made.close()
    await library.close()


def unless(text, does, otherwise):
    """A behaviour for the requests that hold this text, and one for all others."""
    return lambda seen: (does if text in seen.raw else otherwise)(seen)


@pytest.mark.parametrize(
    ("fault", "requests"),
    [(openai.page(500), 3 * (RETRIES + 1 + 1)), (openai.resets(), 3 * (RETRIES + 1 + 1)),
     (openai.hangs(), 2 * (RETRIES + 1)), (openai.body(b"<html>"), RETRIES + 1 + 1)],
)  # fmt: skip
async def test_texts_that_fail_while_others_are_answered_are_at_fault(provider, fault, requests):
    library = LiteLLM()
    remote = RemoteModel("openai/m", library, api_base=provider.url, api_key="sk-very-secret", timeout_s=0.5)
    made = Retrying(remote, jitter=lambda: 0.0)
    provider.standing = unless(b"poison", fault, provider.standing)
    with pytest.raises(EmbeddingError) as reported:
        await made.embed(["poison"])
    assert (reported.value.of_texts, reported.value.outage, made.outage) == (True, False, None)
    assert len(provider.seen) == requests
    await library.close()


async def test_what_is_above_a_limit_that_leaves_room_for_others_waits_and_is_no_outage(model, provider):
    provider.standing = unless(b"poison", openai.too_many("0"), provider.standing)
    with pytest.raises(EmbeddingError, match="rate limited") as reported:
        await model.embed(["poison"])
    assert (reported.value.of_texts, reported.value.outage, model.outage) == (True, True, None)
    assert len(await model.embed(["aa"])) == 1


async def test_an_endpoint_that_hangs_is_out_after_one_text_of_our_own(provider):
    library = LiteLLM()
    made = Retrying(RemoteModel("openai/m", library, api_base=provider.url, api_key="sk", timeout_s=0.3))
    provider.standing = openai.hangs()
    with pytest.raises(EmbeddingError, match="timeout") as reported:
        await made.embed(["aa"])
    assert (reported.value.outage, len(provider.seen)) == (True, 2)
    await made.close()
    await library.close()


async def test_a_key_that_is_refused_is_refused_at_once(model, provider):
    provider.standing = openai.unauthorised()
    with pytest.raises(EmbeddingError, match="authentication failed") as reported:
        await model.embed(["aa"])
    assert len(provider.seen) == 1
    assert not reported.value.of_texts
    assert "sk-very-secret" not in str(reported.value)


async def test_texts_that_are_too_long_are_known_to_be_at_fault(model, provider):
    provider.standing = openai.too_long()
    with pytest.raises(EmbeddingError, match="context overflow") as reported:
        await model.embed(["aa"])
    assert reported.value.of_texts


@pytest.mark.parametrize("refusal", [openai.page(403), openai.page(404)])
async def test_texts_that_a_firewall_refuses_are_at_fault(model, provider, refusal):
    embeds = provider.standing
    provider.standing = lambda seen: (refusal if b"aa" in seen.raw else embeds)(seen)
    with pytest.raises(EmbeddingError, match="content refused") as reported:
        await model.embed(["aa"])
    assert (reported.value.of_texts, reported.value.lasting, len(provider.seen)) == (True, False, 2)


@pytest.mark.parametrize(
    ("refusal", "stated"),
    [
        (openai.error(404, "The model does not exist.", code="model_not_found"), "model not found"),
        (openai.forbidden(), "authentication failed"),
    ],
)
async def test_a_model_that_is_not_there_is_at_fault_and_no_text(model, provider, refusal, stated):
    provider.standing = refusal
    with pytest.raises(EmbeddingError, match=stated) as reported:
        await model.embed(["aa"])
    assert (reported.value.of_texts, reported.value.lasting, len(provider.seen)) == (False, True, 2)


async def test_what_a_firewall_refuses_in_an_outage_says_nothing_of_the_model(model, provider):
    provider.will(openai.page(403), openai.page(503))
    with pytest.raises(EmbeddingError, match="overloaded") as reported:
        await model.embed(["aa"])
    assert (reported.value.of_texts, reported.value.lasting) == (False, False)
