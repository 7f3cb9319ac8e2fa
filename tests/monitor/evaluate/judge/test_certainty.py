"""The probabilities of tokens on the wire: asked for, read, kept in the cache, and done without where refused."""

from __future__ import annotations

import json
import math

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.declared.ask import ask
from sidejudge.scoring.questions.question import Answer
from tests.fakes import openai as fake
from tests.fakes.judge import judgement
from tests.fakes.openai import Act, completion

CASE = Case(case_id="c", model_output="Your refund of $49 is booked.")
POLITE = ask("Is {{output}} polite?")


def with_tokens(probability=0.5, *, change=lambda stated: stated):
    """Answers every question, in one token."""

    def act(seen):
        text = json.dumps(judgement(seen))
        body = completion(seen, {"content": text})
        listed = [{"token": text, "logprob": math.log(probability), "bytes": None, "top_logprobs": []}]
        if seen.body.get("logprobs"):
            body["choices"][0]["logprobs"] = change({"content": listed, "refusal": None})
        return Act(body=json.dumps(body).encode())

    return act


@pytest.fixture
def judge(made):
    return made(model={"logprobs": True})


async def certainty(judge):
    reply = (await judge.answer(CASE, [POLITE]))[POLITE]
    assert isinstance(reply, Answer)
    return reply.judgement.certainty


async def test_an_answer_has_the_probability_of_its_tokens_now_and_out_of_the_cache(judge, provider):
    provider.standing = with_tokens(0.25)
    assert [await certainty(judge) for _ in range(2)] == [pytest.approx(0.25)] * 2
    assert [seen.body.get("logprobs") for seen in provider.seen] == [True]


async def test_nobody_asks_for_them_unless_they_are_wanted_and_such_an_answer_is_no_other_ones(made, judge, provider):
    provider.standing = with_tokens()
    await certainty(made())
    assert "logprobs" not in provider.seen[0].body
    assert await certainty(judge) == pytest.approx(0.5)
    assert len(provider.seen) == 2


@pytest.mark.parametrize("refusal", ["Unsupported parameter: logprobs", "log probabilities are not supported here"])
async def test_an_endpoint_that_refuses_is_asked_without_now_and_from_then_on(judge, provider, refusal):
    provider.will(fake.error(400, refusal))
    assert await certainty(judge) is None
    other = ask("Is {{output}} true?")
    assert isinstance((await judge.answer(CASE, [other]))[other], Answer)
    assert [seen.body.get("logprobs") for seen in provider.seen] == [True, None, None]


@pytest.mark.parametrize(
    "stated",
    [
        None, {}, {"content": None}, {"content": "no list"}, {"content": [{"token": "x"}]},
        {"content": [{"token": "x", "logprob": 0.7}]},
    ],
)  # fmt: skip
async def test_what_is_no_probability_is_none_and_costs_no_answer(judge, provider, stated):
    provider.standing = with_tokens(change=lambda _: stated)
    assert await certainty(judge) is None
