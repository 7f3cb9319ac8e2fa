"""The client of judges: what it sends, what it reads, and what a model costs."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import httpx
import pytest

from sidejudge.integrations.judge.client import JudgeClient, JudgeModel, TokenPrice
from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind
from sidejudge.integrations.provider.library import LiteLLM
from tests.fakes import openai as fake


@dataclass(frozen=True)
class Request:
    messages: tuple = ({"role": "user", "content": "Is it so? " * 40},)
    schema: object = None
    schema_name: str = "answer"
    answer_tokens: int = 100

    def __post_init__(self):
        object.__setattr__(self, "schema", {"type": "object", "properties": {}})


@pytest.fixture
def provider():
    with fake.Provider(fake.states('{"yes": true}')) as running:
        yield running


@pytest.fixture
async def client():
    library = LiteLLM()
    yield JudgeClient(library)
    await library.close()


def model(provider, **more):
    return JudgeModel(**{"name": "openai/gpt-4o-mini", "api_base": provider.url, "api_key": "sk-very-secret", **more})


async def test_it_asks_once_and_tells_what_was_said_and_used(client, provider):
    completion = await client.complete(Request(), model(provider))
    assert (completion.text, completion.model, completion.cut_off) == ('{"yes": true}', "gpt-4o-mini", False)
    assert completion.usage.input_tokens == 100
    assert completion.usage.output_tokens == 3
    assert completion.usage.cost_usd == pytest.approx(100 * 0.15e-6 + 3 * 0.6e-6)
    assert (completion.finish_reason, completion.response_id) == ("stop", "chatcmpl-1")
    (seen,) = provider.seen
    assert seen.headers["authorization"] == "Bearer sk-very-secret"
    assert seen.body["messages"] == [dict(each) for each in Request().messages]


async def test_equal_requests_are_equal_to_the_byte(client, provider):
    for _ in range(2):
        await client.complete(Request(), model(provider))
    assert provider.seen[0].raw == provider.seen[1].raw


async def test_an_answer_may_be_as_long_as_the_request_says_and_a_seed_is_not_needed(client, provider):
    await client.complete(Request(answer_tokens=3000), model(provider, seed=None))
    assert provider.seen[0].body["max_tokens"] == 3000
    assert "seed" not in provider.seen[0].body


async def test_a_price_is_the_configured_one_or_the_known_one_or_not_known(client, provider):
    assert await client.price(model(provider)) == TokenPrice(input_usd_per_million=0.15, output_usd_per_million=0.6)
    own = TokenPrice(input_usd_per_million=10, output_usd_per_million=100)
    assert await client.price(model(provider, price=own)) == own
    completion = await client.complete(Request(), model(provider, price=own))
    assert completion.usage.cost_usd == pytest.approx(100 * 10e-6 + 3 * 100e-6)
    assert await client.price(model(provider, name="openai/ours")) is None
    assert (await client.complete(Request(), model(provider, name="openai/ours"))).usage.cost_usd is None


async def test_the_context_is_the_known_one_or_a_cautious_one(client, provider):
    assert await client.context_tokens(model(provider)) == 128_000
    assert await client.context_tokens(model(provider, name="openai/ours")) == 32_000


async def test_a_refusal_is_paid_for(client, provider):
    provider.will(fake.refuses())
    with pytest.raises(ProviderError) as raised:
        await client.complete(Request(), model(provider))
    assert raised.value.kind is ProviderErrorKind.CONTENT_REFUSED
    assert raised.value.usage.cost_usd > 0


@pytest.mark.parametrize("stated", [{"refusal": "No."}, {"provider_specific_fields": {"refusal": "No."}}])
async def test_a_refusal_is_found_where_any_version_of_the_library_has_it(provider, stated):
    class Library:
        async def run(self, _):
            message = SimpleNamespace(content=None, **stated)
            return SimpleNamespace(model="m", choices=[SimpleNamespace(message=message, finish_reason="stop")])

    with pytest.raises(ProviderError) as raised:
        await JudgeClient(Library()).complete(Request(), model(provider))
    assert raised.value.kind is ProviderErrorKind.CONTENT_REFUSED


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"api_base": "http://127.0.0.1:9/v1"}, ProviderErrorKind.UNREACHABLE),
        ({"api_base": "http://no-such-host.invalid/v1"}, ProviderErrorKind.UNREACHABLE),
        ({"name": "nobody/anything"}, ProviderErrorKind.MODEL_NOT_FOUND),
    ],
)
async def test_what_cannot_be_reached_or_is_not_known_is_told_apart(client, provider, more, kind):
    with pytest.raises(ProviderError) as raised:
        await client.complete(Request(), model(provider, timeout_s=5.0, **more))
    assert raised.value.kind is kind


async def test_another_providers_protocol_fails_by_the_same_names(client, provider):
    other = {"name": "anthropic/claude-sonnet-4-5", "timeout_s": 5.0}
    for behaviour, kind in (
        (fake.unauthorised(), ProviderErrorKind.AUTHENTICATION_FAILED),
        (fake.too_many("5"), ProviderErrorKind.RATE_LIMITED),
        (fake.error(529, "overloaded"), ProviderErrorKind.OVERLOADED),
        (fake.error(400, "Your credit balance is too low to access the API."), ProviderErrorKind.CREDIT_EXHAUSTED),
        (fake.raw(b"<html>"), ProviderErrorKind.BAD_ANSWER),
    ):
        provider.will(behaviour)
        with pytest.raises(ProviderError) as raised:
            await client.complete(Request(), model(provider, **other))
        assert raised.value.kind is kind
        assert "very-secret" not in str(raised.value)


def redirects(to, status=307):
    return lambda seen: fake.Act(status, headers={"location": to + seen.path})


async def test_a_redirect_to_no_port_is_followed_nowhere(client, provider):
    provider.will(lambda seen: fake.Act(307, headers={"location": "http://127.0.0.1:99999/"}))
    with pytest.raises(ProviderError, match="to which nothing is sent") as raised:
        await client.complete(Request(), model(provider))
    assert raised.value.kind is ProviderErrorKind.UNREACHABLE


@pytest.mark.parametrize("status", [302, 307, 308])
@pytest.mark.parametrize("name", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5", "azure/gpt-4o", "gemini/g", "raw"])
async def test_neither_contents_nor_a_key_follow_a_redirect_to_another_host(client, provider, name, status):
    asked = model(provider, **({} if name == "raw" else {"name": name, "api_base": provider.url}))
    if name == "raw":
        provider.will(fake.raw(b"[]"))
        with pytest.raises(ProviderError):
            await client.complete(Request(), asked)
    with fake.Provider(fake.states("{}")) as another:
        provider.standing = redirects(another.url.removesuffix("/v1"), status)
        with pytest.raises(ProviderError, match="to which nothing is sent; set api_base to the final") as raised:
            await client.complete(Request(), asked)
        assert raised.value.kind is ProviderErrorKind.UNREACHABLE
        assert not another.seen


async def test_a_redirect_on_the_same_host_is_followed_a_few_times(client, provider):
    provider.will(redirects(""), redirects(""))
    assert (await client.complete(Request(), model(provider))).text == '{"yes": true}'
    assert len(provider.seen) == 3
    provider.standing = redirects("")
    with pytest.raises(ProviderError, match="over and over again"):
        await client.complete(Request(), model(provider))


async def test_a_judge_of_anthropic_has_no_other_host_asked(client, provider, monkeypatch):
    pytest.importorskip("litellm.anthropic_beta_headers_manager", reason="older ones ask nobody")
    await client.price(model(provider))  # it is loaded
    with fake.Provider(fake.raw(b"{}")) as another:
        monkeypatch.setattr("litellm.anthropic_beta_headers_url", another.url)
        monkeypatch.setattr("litellm.anthropic_beta_headers_manager._BETA_HEADERS_CONFIG", None)
        provider.will(fake.raw(b"{}"))
        with pytest.raises(ProviderError):
            await client.complete(Request(), model(provider, name="anthropic/claude-sonnet-4-5"))
        assert len(provider.seen) == 1
        assert not another.seen


async def test_a_client_that_follows_no_redirect_follows_none(provider):
    async def asked(_):
        async with httpx.AsyncClient(follow_redirects=True) as one, httpx.AsyncClient() as other:
            return [
                (await one.post(provider.url, follow_redirects=False)).status_code,
                (await other.post(provider.url)).status_code,
            ]

    library = LiteLLM()
    provider.standing = redirects("")
    assert await library.run(asked) == [307, 307]
    await library.close()


async def test_a_judge_on_this_machine_is_asked_without_a_proxy(provider, monkeypatch):
    library = LiteLLM()
    with fake.Provider() as proxy:
        monkeypatch.setenv("NO_PROXY", "corp")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        local = model(provider, api_base=provider.url.replace("127.0.0.1", "localhost"))
        for asked in (model(provider), local):
            assert (await JudgeClient(library).complete(Request(), asked)).text == '{"yes": true}'
        assert not proxy.seen
    await library.close()


def test_a_key_is_not_shown_by_accident(provider):
    assert "secret" not in repr(model(provider))


LOCAL = ("hosted_vllm/Qwen/Qwen2.5-7B-Instruct", "openai/qwen2.5:7b")


@pytest.mark.parametrize("name", LOCAL)
async def test_a_local_server_is_sent_the_schema_where_that_is_configured(client, provider, name):
    await client.complete(Request(), model(provider, name=name, structured="always"))
    await client.complete(Request(), model(provider, name=name))
    with_schema, without = (seen.body for seen in provider.seen)
    assert with_schema["response_format"]["json_schema"]["strict"] is True
    assert with_schema["model"] == name.partition("/")[2]
    assert "response_format" not in without


@pytest.mark.parametrize(
    "why",
    ["Invalid parameter: 'response_format' of type 'json_schema' is not supported", "guided decoding is not available"],
)
async def test_a_provider_that_refuses_the_schema_is_asked_without_it_from_then_on(client, provider, why):
    provider.will(fake.error(400, why))
    strict = model(provider, structured="always")
    assert (await client.complete(Request(), strict)).text == '{"yes": true}'
    await client.complete(Request(), strict)
    assert ["response_format" in seen.body for seen in provider.seen] == [True, False, False]


async def test_any_other_refusal_is_no_reason_to_ask_without_the_schema(client, provider):
    provider.will(fake.error(400, "temperature must be below 2"))
    with pytest.raises(ProviderError) as failed:
        await client.complete(Request(), model(provider))
    assert failed.value.kind is ProviderErrorKind.BAD_REQUEST
    assert len(provider.seen) == 1
    never = model(provider, structured="never")
    await client.complete(Request(), never)
    assert "response_format" not in provider.seen[-1].body
