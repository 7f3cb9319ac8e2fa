"""A model at an endpoint, through the real litellm and over a real socket."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.embed import RemoteModel
from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind
from sidejudge.integrations.provider.library import LiteLLM
from tests.fakes import openai
from tests.needs import LITELLM

pytestmark = LITELLM.mark


@pytest.fixture
def provider():
    with openai.Provider(openai.embeds(lambda text: (float(len(text)), 1.0))) as running:
        yield running


@pytest.fixture
async def library():
    opened = LiteLLM()
    yield opened
    await opened.close()


@pytest.fixture
def model(provider, library):
    return RemoteModel(
        "openai/text-embedding-3-small", library, api_base=provider.url, api_key="sk-very-secret", batch_size=2,
        timeout_s=5.0,
    )  # fmt: skip


def states(*items):
    body = {"object": "list", "model": "m", "data": list(items), "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    return openai.raw(json.dumps(body).encode())


def item(vector, index):
    return {"object": "embedding", "index": index, "embedding": vector}


async def test_texts_travel_in_batches_and_their_vectors_come_in_order(model, provider):
    assert [list(v) for v in await model.embed(["a", "bb", "ccc"])] == [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
    assert [seen.body["input"] for seen in provider.seen] == [["a", "bb"], ["ccc"]]
    assert {seen.body["model"] for seen in provider.seen} == {"text-embedding-3-small"}
    assert all(seen.path == "/v1/embeddings" for seen in provider.seen)


async def test_vectors_are_told_apart_by_the_index_that_the_endpoint_gives(model, provider):
    provider.will(states(item([2.0, 0.0], 1), item([1.0, 0.0], 0)))
    assert [list(v) for v in await model.embed(["a", "b"])] == [[1.0, 0.0], [2.0, 0.0]]


@pytest.mark.parametrize(
    ("given", "read"),
    [([None, None], []), ([], []), ([1.0, 0.0, 0.0], [1.0, 0.0, 0.0])],
    ids=["null", "empty", "longer"],
)
async def test_a_text_without_a_vector_or_with_a_longer_one_costs_no_other_its_own(model, provider, given, read):
    provider.will(states(item([1.0, 0.0], 0), item(given, 1)))
    assert [list(vector) for vector in await model.embed(["a", "b"])] == [[1.0, 0.0], read]


async def test_texts_follow_no_redirect_to_another_host(model, provider):
    with openai.Provider() as another:
        provider.will(lambda _: openai.Act(307, headers={"location": f"{another.url}/embeddings"}))
        with pytest.raises(ProviderError, match="to which nothing is sent"):
            await model.embed(["a"])
        assert not another.seen


BAD = [
    states(item([1.0], 0)),
    states(item([1.0], 0), item([1.0], 0)),
    states(item([1.0], 0), item(["1"], 1)),
    states(item([1.0], 0), item(None, 1)),
]


@pytest.mark.parametrize("behaviour", BAD, ids=["too few", "twice", "text", "none"])
async def test_what_is_no_vector_for_each_text_is_a_bad_answer(model, provider, behaviour):
    provider.will(behaviour)
    with pytest.raises(ProviderError) as reported:
        await model.embed(["a", "b"])
    assert reported.value.kind is ProviderErrorKind.BAD_ANSWER


FAILURES = [
    (openai.unauthorised, ProviderErrorKind.AUTHENTICATION_FAILED),
    (openai.no_model, ProviderErrorKind.MODEL_NOT_FOUND),
    (openai.no_credit, ProviderErrorKind.CREDIT_EXHAUSTED),
    (lambda: openai.too_many("7"), ProviderErrorKind.RATE_LIMITED),
    (openai.too_long, ProviderErrorKind.CONTEXT_OVERFLOW),
    (openai.page, ProviderErrorKind.OVERLOADED),
    (openai.resets, ProviderErrorKind.UNREACHABLE),
]


@pytest.mark.parametrize(("behaviour", "kind"), FAILURES, ids=[kind.name for _, kind in FAILURES])
async def test_each_failure_has_its_name_and_is_asked_once(model, provider, behaviour, kind):
    provider.will(behaviour())
    with pytest.raises(ProviderError) as reported:
        await model.embed(["a"])
    assert reported.value.kind is kind
    assert "sk-very-secret" not in str(reported.value)
    assert len(provider.seen) == 1


def test_a_key_is_not_shown_by_accident():
    assert "secret" not in repr(RemoteModel("openai/m", LiteLLM(), api_key="sk-very-secret"))
