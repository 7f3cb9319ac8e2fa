"""An endpoint that streams, or answers in parts, unasked: one answer is lost to it, every later one is read at once."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.judge.client import TokenPrice
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.declared.ask import ask
from sidejudge.scoring.questions.question import Answer
from tests.fakes.judge import judgement
from tests.fakes.openai import Act, completion, page

CASE = Case(case_id="c", model_output="Your refund of $49 is booked.")
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def stream(seen):
    pieces = [{"content": each} for each in json.dumps(judgement(seen)).split(" ", 1)]
    pieces[1:] = [{"content": " " + each["content"]} for each in pieces[1:]]
    chunks = [{"id": "x", "model": "m", "choices": [{"index": 0, "delta": each}]} for each in pieces]
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks.append({"id": "x", "model": "m", "choices": [end], "usage": USAGE})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Act(body=body.encode(), headers={"content-type": "text/event-stream"})


def parts(seen):
    body = completion(seen, {"content": ""}) | {"usage": USAGE}
    body["choices"][0]["message"]["content"] = [{"type": "text", "text": json.dumps(judgement(seen))}]
    return Act(body=json.dumps(body).encode())


@pytest.mark.parametrize("body", [stream, parts])
async def test_an_unusual_body_costs_one_request_and_no_answer(made, provider, watched, body):
    provider.standing = body
    judge = made(model={"price": TokenPrice(input_usd_per_million=1.0, output_usd_per_million=2.0)})
    for number in range(3):
        question = ask(f"Is {{{{output}}}} polite, {number}?")
        reply = (await judge.answer(CASE, [question]))[question]
        assert isinstance(reply, Answer)
    assert len(provider.seen) == 4
    assert watched.attempts == ["bad answer", None, None, None]
    assert (reply.judgement.input_tokens, reply.judgement.output_tokens) == (100, 20)
    assert reply.judgement.cost_usd == pytest.approx(140e-6)
    assert watched.cost_usd >= 3 * 140e-6  # who counts attempts knows the price, too


CACHED = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100, "prompt_tokens_details": {
    "cached_tokens": 800}}  # fmt: skip


async def test_what_the_provider_s_cache_has_read_costs_less_whoever_reads_the_body(made, provider):
    def act(seen):
        return Act(
            body=json.dumps(completion(seen, {"content": json.dumps(judgement(seen))}) | {"usage": CACHED}).encode()
        )

    provider.standing = act
    judge = made()
    costs = []
    for number in range(2):
        question = ask(f"Is {{{{output}}}} polite, {number}?")
        costs.append((await judge.answer(CASE, [question]))[question].judgement.cost_usd)
        provider.will(page(200))  # from now on litellm does not read the bodies of this endpoint
        await judge.answer(CASE, [ask(f"Is {{{{output}}}} short, {number}?")])
    assert costs == [pytest.approx((200 * 0.15 + 800 * 0.075 + 100 * 0.6) / 1e6)] * 2
