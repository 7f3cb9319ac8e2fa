"""A run that does not fit is judged by its outline where that is configured; every reader of it learns so."""

from __future__ import annotations

import pytest

from sidejudge.scoring.declared.ask import ask
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.verdict.review_reason import OUTLINED, contradicts
from tests.fakes import openai as fake
from tests.scoring.judging.test_outlined import CASE, TOOLS


@pytest.fixture
def outlining(made):
    return made(outline=True, context_tokens=12_000)


async def test_an_answer_by_an_outline_says_so_now_and_out_of_the_cache(outlining, provider):
    for _ in range(2):
        reply = (await outlining.answer(CASE, [TOOLS]))[TOOLS]
        assert isinstance(reply, Answer)
        assert reply.reason.startswith(f"{OUTLINED}an outline of the run with ")
        assert reply.reason.split(": ")[0] in reply.judgement.flags
        assert not contradicts(reply.judgement.flags)
    assert len(provider.seen) == 1


async def test_an_answer_by_an_outline_is_no_answer_where_none_is_allowed_or_another_part_fits(
    made, outlining, provider
):
    await outlining.answer(CASE, [TOOLS])
    whole = made(context_tokens=12_000)
    assert isinstance((await whole.answer(CASE, [TOOLS]))[TOOLS], NoAnswer)
    larger = made(outline=True, context_tokens=20_000)
    reply = (await larger.answer(CASE, [TOOLS]))[TOOLS]
    assert len(provider.seen) == 2
    assert OUTLINED in reply.reason


async def test_a_run_that_the_provider_finds_too_long_is_asked_about_once_more_by_its_outline(made, provider):
    provider.will(fake.too_long())
    judge = made(outline=True, context_tokens=100_000)
    reply = (await judge.answer(CASE, [TOOLS]))[TOOLS]
    assert reply.reason.startswith(OUTLINED)
    assert len(provider.seen) == 2


async def test_one_that_is_too_long_as_an_outline_is_not_asked_for_ever(outlining, provider):
    provider.standing = fake.too_long()
    questions = [TOOLS, ask("Were the calls in {{tools}} few?")]
    replies = await outlining.answer(CASE, questions)
    assert all(isinstance(reply, NoAnswer) for reply in replies.values())
    assert len(provider.seen) < 8
