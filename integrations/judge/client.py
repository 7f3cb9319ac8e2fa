"""Judge client: one request to one model in, its text with tokens and cost out, through litellm.

It sends once. Retries, limits, budget and parsing belong to ``monitor.evaluate.judge``; litellm's own retries are off.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import Final, Literal, Protocol, TypeAlias

from sidejudge.integrations.provider.attempt import Completion
from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind, ProviderUsage, read_error
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.scoring.judging.request import JudgeRequest
from sidejudge.scoring.trace.span import JsonRecord

from .raw_body import error_in, read_body, text_of

log = logging.getLogger("sidejudge.judge")

Structured: TypeAlias = Literal["auto", "always", "never"]
_UNKNOWN_CONTEXT: Final = 32_000
_OF_SCHEMA: Final = ("response_format", "json_schema", "structured output", "guided", "grammar", "'format'")
"""Words of providers and local servers that refuse a schema."""


_OF_LOGPROBS: Final = ("logprob", "log prob")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """US dollars for a million tokens, where the operator knows better than litellm's map."""

    input_usd_per_million: float
    output_usd_per_million: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input_usd_per_million + output_tokens * self.output_usd_per_million) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeModel:
    """A model and how it is asked (seed 002 §2.1: temperature 0, top_p 1, 1024 tokens, seed 42).

    ``name`` is ``provider/model`` as litellm writes it. ``max_tokens`` bounds the answer, unless the request states
    that its answers need more. ``timeout_s`` is that of one attempt. ``structured``: whether the schema of the answer
    is sent, which the provider then holds the model to; ``auto``: where litellm knows that the model takes one.
    ``logprobs``: whether the probabilities of the answer's tokens are asked for.
    """

    name: str
    api_base: str | None = None
    api_key: str | None = None
    timeout_s: float = 60.0
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int | None = 42
    price: TokenPrice | None = None
    structured: Structured = "auto"
    logprobs: bool = False

    def __repr__(self) -> str:
        return f"Model({self.name!r})"  # a key must not be shown by accident

    @property
    def identity(self) -> str:
        """All settings that change the model's answer to a prompt, as JSON: another temperature is another judge."""
        return json.dumps({
            "name": self.name, "api_base": self.api_base, "temperature": self.temperature, "top_p": self.top_p,
            "max_tokens": self.max_tokens, "seed": self.seed, "structured": self.structured,
            **({"logprobs": True} if self.logprobs else {}),  # an answer without them says less
        })  # fmt: skip

    @property
    def provider(self) -> str:
        """The key of limits: the part before the slash."""
        return self.name.partition("/")[0]


class _Message(Protocol):
    content: object


class _Choice(Protocol):
    message: _Message
    finish_reason: str | None


class _Response(Protocol):
    """The fields of every answer; others exist only with some providers."""

    model: object
    choices: Sequence[_Choice]


class JudgeClient:
    """Asks models through litellm."""

    def __init__(self, library: LiteLLM) -> None:
        self._library = library
        self._models: dict[str, Mapping[str, object]] = {}
        self._without_schema: set[tuple[str, str | None]] = set()
        self._without_logprobs: set[tuple[str, str | None]] = set()
        self._raw: set[tuple[str, str | None]] = set()

    async def complete(self, request: JudgeRequest, model: JudgeModel) -> Completion:
        """Ask once. Raises ``ProviderError`` for everything that is not a text from the model.

        A provider that refuses the schema of the answer, or the probabilities of its tokens, is asked without it, now
        and from then on. The body of an endpoint of its own that litellm cannot read is read here from then on.
        """
        place = (model.name, model.api_base)
        while True:
            without = {*self._without_logprobs}
            try:
                return await self._once(request, model)
            except ProviderError as error:
                if model.logprobs and _refuses(error, _OF_LOGPROBS) and place not in without:
                    self._without_logprobs.add(place)
                    what = "no probabilities of tokens"
                elif _refuses(error, _OF_SCHEMA) and model.structured != "never" and place not in self._without_schema:
                    self._without_schema.add(place)
                    what = "no schema"
                else:
                    if error.kind is ProviderErrorKind.BAD_ANSWER and speaks_openai(model):
                        self._raw.add(place)  # whoever asks again is answered, if there is an answer in it
                    raise
                log.info("the judge takes %s and is asked without", what, extra={"judge": model.name})

    async def _once(self, request: JudgeRequest, model: JudgeModel) -> Completion:
        arguments: dict[str, object] = {
            **arguments_of(request, model),
            "model": model.name,
            "api_base": model.api_base,
            "api_key": model.api_key,
            "timeout": model.timeout_s,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
        }
        began = time.monotonic()

        async def work(litellm: ModuleType) -> _Response | Completion:
            known = model.structured == "auto" and litellm.supports_response_schema(model=model.name)
            if (known or model.structured == "always") and (model.name, model.api_base) not in self._without_schema:
                arguments["response_format"] = response_format(request)
            if model.logprobs and (model.name, model.api_base) not in self._without_logprobs:
                arguments["logprobs"] = True
            if (model.name, model.api_base) in self._raw:
                return _of_body(await _raw_response(arguments, model), model, time.monotonic() - began, litellm)
            response: _Response = await litellm.acompletion(**arguments)
            return response

        try:
            response = await self._library.run(work)
            if isinstance(response, Completion):
                return response
            return _read(response, model, time.monotonic() - began)
        except ProviderError:
            raise
        except Exception as error:  # noqa: BLE001  # any: it raises what its many providers raise
            if model.logprobs and any(word in str(error).lower() for word in _OF_LOGPROBS):
                self._without_logprobs.add((model.name, model.api_base))  # no text is lost to them twice
            raise read_error(error, secret=model.api_key) from None  # its chain may hold the request

    async def at_once(self, request: JudgeRequest, model: JudgeModel) -> Completion:
        """As ``complete``: this client has no other way."""
        return await self.complete(request, model)

    async def context_tokens(self, model: JudgeModel) -> int:
        """Tokens that the model reads at once, as far as litellm knows it; else 32,000."""
        most = (await self._known(model)).get("max_input_tokens")
        return most if isinstance(most, int) and most > 0 else _UNKNOWN_CONTEXT

    async def price(self, model: JudgeModel) -> TokenPrice | None:
        """The model's price: the configured one, else litellm's, else None."""
        if model.price is not None:
            return model.price
        known = await self._known(model)
        read, written = known.get("input_cost_per_token"), known.get("output_cost_per_token")
        if not isinstance(read, int | float) or not isinstance(written, int | float) or not read + written:
            return None
        return TokenPrice(input_usd_per_million=read * 1e6, output_usd_per_million=written * 1e6)

    async def _known(self, model: JudgeModel) -> Mapping[str, object]:
        async def work(litellm: ModuleType) -> Mapping[str, object]:
            try:
                return dict(litellm.get_model_info(model=model.name))
            except Exception:  # noqa: BLE001  # for an unknown model it raises several types
                return {}

        if model.name not in self._models:
            self._models[model.name] = await self._library.run(work)
        return self._models[model.name]


_MOST_TOKENS: Final = 10_000_000
"""More than any model reads or writes at once. A larger number is none, and would end the budget of a day."""
_DIGITS: Final = 12
"""Digits of a number in quotes that are read."""
_OF_LITELLM: Final = ("api_base", "api_key", "timeout", "num_retries", "max_retries", "drop_params")


def speaks_openai(model: JudgeModel) -> bool:
    """Whether it is an endpoint of its own that speaks OpenAI's protocol."""
    return model.provider == "openai" and model.api_base is not None


async def _raw_response(arguments: Mapping[str, object], model: JudgeModel) -> str:
    """The body of the response, as it was sent."""
    sdk = import_module("openai")
    body = {key: value for key, value in arguments.items() if key not in _OF_LITELLM}
    body["model"] = model.name.partition("/")[2]
    async with sdk.AsyncOpenAI(
        api_key=model.api_key or "none", base_url=model.api_base, max_retries=0, timeout=model.timeout_s
    ) as client:
        response = await client.chat.completions.with_raw_response.create(**body)
        return str(response.text)


def _of_body(text: str, model: JudgeModel, duration_s: float, litellm: ModuleType) -> Completion:
    try:
        body, shapes = read_body(text)
        if (why := error_in(body)) is not None:
            raise ProviderError(ProviderErrorKind.BAD_ANSWER, why[:300])
        found = completion_of(body, model, duration_s)
        usage = replace(found.usage, cost_usd=_cost(body.get("usage"), model, _listed_usd(litellm, body, model)))
        return replace(found, usage=usage, shapes=shapes)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ProviderError(ProviderErrorKind.BAD_ANSWER, f"the body cannot be read: {error}"[:300]) from None


def arguments_of(request: JudgeRequest, model: JudgeModel) -> dict[str, object]:
    """How a model is asked, by any transport."""
    return {
        "messages": [dict(message) for message in request.messages],
        "temperature": model.temperature,
        "top_p": model.top_p,
        "max_tokens": max(model.max_tokens, request.answer_tokens),
        "seed": model.seed,
    }


def response_format(request: JudgeRequest) -> dict[str, object]:
    """The schema of the answer, as providers take it."""
    schema = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
    return {"type": "json_schema", "json_schema": schema}


def _refuses(error: ProviderError, words: Sequence[str]) -> bool:
    text = error.message.lower()
    return error.kind is ProviderErrorKind.BAD_REQUEST and any(word in text for word in words)


def _read(response: _Response, model: JudgeModel, duration_s: float) -> Completion:
    whole = Completion(text="", model=str(response.model), usage=_usage(response, model), duration_s=duration_s)
    if not response.choices:
        return whole
    choice = response.choices[0]
    # Which of the two has it depends on litellm's version.
    fields = getattr(choice.message, "provider_specific_fields", None) or {}
    refusal = _of(choice.message, "refusal") or fields.get("refusal")
    return _chosen(replace(whole, response_id=_text(_of(response, "id"))), choice, choice.message, refusal)


def _chosen(whole: Completion, choice: object, message: object, refusal: object) -> Completion:
    """The response with its first choice, in any form. Raises ``ProviderError`` for a refusal."""
    reason = _of(choice, "finish_reason")
    if refusal or reason == "content_filter":
        stated = "the model would not judge this content"
        raise ProviderError(ProviderErrorKind.CONTENT_REFUSED, stated, usage=whole.usage)
    text = _written(_of(message, "content"))
    arguments = "" if text.strip() else _arguments(message)
    return replace(
        whole, text=arguments or text, cut_off=reason == "length", tool_call=bool(arguments),
        finish_reason=_text(reason), tokens=() if arguments else _tokens(_of(choice, "logprobs")),
    )  # fmt: skip


def _tokens(stated: object) -> tuple[tuple[str, float], ...]:
    """The tokens of a response with the logarithms of their probabilities; none where one of them is not stated so."""
    listed = _of(stated, "content")
    found = [(_of(each, "token"), _of(each, "logprob")) for each in listed] if isinstance(listed, list) else []
    usable = all(isinstance(t, str) and type(at) in (int, float) and at <= 0 for t, at in found)  # type: ignore[operator]  # numbers
    return tuple((str(t), float(at)) for t, at in found) if usable else ()  # type: ignore[arg-type]  # as above


def _of(stated: object, name: str) -> object:
    return stated.get(name) if isinstance(stated, Mapping) else getattr(stated, name, None)


def _written(content: object) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        return text_of(content)
    return content if isinstance(content, str) else ""


def _arguments(message: object) -> str:
    """The arguments of the only tool call of a message without a text; some models answer a schema by one."""
    calls = _of(message, "tool_calls")
    called = [_of(each, "function") for each in calls] if isinstance(calls, list) else []
    called = called or [_of(message, "function_call")]
    found = _of(called[0], "arguments") if len(called) == 1 else None
    return json.dumps(found) if isinstance(found, dict) else found if isinstance(found, str) else ""


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _usage(response: object, model: JudgeModel) -> ProviderUsage:
    usage = getattr(response, "usage", None)
    read, written = _counts(usage)
    listed = (getattr(response, "_hidden_params", None) or {}).get("response_cost")
    return ProviderUsage(input_tokens=read, output_tokens=written, cost_usd=_cost(usage, model, listed))


def _cost(usage: object, model: JudgeModel, listed_usd: float | None) -> float | None:
    """Dollars by the configured price, else by litellm's list, which knows what a provider's cache has read.

    None where the list's cost lacks thoughts that the total alone counts: then price and tokens decide.
    """
    read, written = _counts(usage)
    if model.price is not None:
        return model.price.of(read, written)
    return listed_usd if written == _count(_of(usage, "completion_tokens")) else None


def _listed_usd(litellm: ModuleType, body: JsonRecord, model: JudgeModel) -> float | None:
    """What a response as JSON costs by litellm's list; None where it does not know."""
    try:
        usd: float = litellm.completion_cost(completion_response={"usage": body.get("usage")}, model=model.name)
    except Exception:  # noqa: BLE001  # for an unknown model or an odd account it raises several types
        return None
    return usd or None


def completion_of(body: JsonRecord, model: JudgeModel, duration_s: float) -> Completion:
    """A response as JSON. Raises ``ProviderError`` for a refusal or no choice, others where it cannot be read."""
    read, written = _counts(body.get("usage"))
    paid = ProviderUsage(input_tokens=read, output_tokens=written, cost_usd=None)
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        why = "the body cannot be read: its choices hold no answer"
        raise ProviderError(ProviderErrorKind.BAD_ANSWER, why, usage=paid)
    name, identity = str(body.get("model") or model.name), _text(body.get("id"))
    whole = Completion(text="", model=name, usage=paid, duration_s=duration_s, response_id=identity)
    message = choices[0]["message"]
    return _chosen(whole, choices[0], message, message.get("refusal"))


def _counts(usage: object) -> tuple[int, int]:
    """Tokens that were read and written. Some providers count a model's thoughts in the total alone."""
    read, written, total = (_count(_of(usage, name)) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    return read, max(written, total - read) if read else written


def _count(stated: object) -> int:
    """A number of tokens; 0 for an invalid one, so that our estimate replaces it."""
    if isinstance(stated, str) and stated.isascii() and stated.isdigit():
        stated = int(stated[:_DIGITS])
    known = isinstance(stated, int | float) and not isinstance(stated, bool) and 0 <= stated <= _MOST_TOKENS
    return int(stated) if known else 0  # type: ignore[call-overload]  # a number, by the condition
