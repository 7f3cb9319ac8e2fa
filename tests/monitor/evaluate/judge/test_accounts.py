"""Accounts and identities: what a judge costs where nobody says so, and which judge an answer in the cache is of."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from sidejudge.integrations.judge.client import JudgeModel, TokenPrice
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.questions.kinds import GradeAnswer, SameHighlight, Supported
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.review_reason import COST_ESTIMATED, LEFT_OUT
from tests.fakes import openai as fake
from tests.fakes.judge import judgement, judges
from tests.needs import LITELLM

pytestmark = LITELLM.mark
CASE = Case(case_id="c", model_output="Your refund of $49 is booked.", transcript="I want a refund.", input="Refund?")
ASKED = Supported("The caller wants a refund")
PRICE = TokenPrice(input_usd_per_million=1000.0, output_usd_per_million=100.0)


def changed(body):
    """A judge's behaviour whose answers are changed before they are sent."""

    def act(seen):
        whole = fake.completion(seen, {"content": json.dumps(judgement(seen))})
        return fake.Act(body=json.dumps(body(whole)).encode())

    return act


def no_usage(whole):
    return {key: value for key, value in whole.items() if key != "usage"}


def half_usage(whole):
    return {**whole, "usage": {"prompt_tokens": 500, "completion_tokens": 0, "total_tokens": 500}}


def no_model_reads_so_many(whole):
    return {**whole, "usage": {"prompt_tokens": 2**32 - 1, "completion_tokens": 3, "total_tokens": 2**32 + 2}}


@pytest.mark.parametrize("body", [no_usage, half_usage, lambda whole: {**whole, "usage": None}, no_model_reads_so_many])
async def test_a_call_without_an_account_is_estimated_flagged_and_counted_by_the_budget(made, provider, body):
    provider.standing = changed(body)
    judge = made(model={"price": PRICE}, budget_usd_per_hour=6.0, cache_entries=0)
    reply = (await judge.answer(CASE, [ASKED]))[ASKED]
    assert COST_ESTIMATED in reply.judgement.flags
    assert reply.judgement.cost_usd > 0.2
    assert reply.judgement.input_tokens >= 500
    assert judge.estimating == {"openai/gpt-4o-mini"}
    while isinstance(reply, Answer):
        reply = (await judge.answer(CASE, [ASKED]))[ASKED]
    assert reply.reason.startswith("over budget")
    assert 3.0 < judge.budget.spent(3600, judge._clock()) <= 6.0
    assert len(provider.seen) < 15


def refused_without_usage(whole):
    return no_usage({**whole, "choices": [{**whole["choices"][0], "finish_reason": "content_filter"}]})


def in_parts(whole):
    message = {"role": "assistant", "content": [{"type": "text", "text": "{}"}]}
    return {**whole, "choices": [{**whole["choices"][0], "message": message}]}


@pytest.mark.parametrize("body", [refused_without_usage, in_parts])
async def test_what_was_written_and_cannot_be_used_is_charged_all_the_same(made, provider, body, recwarn):
    provider.standing = changed(body)
    judge = made(model={"price": PRICE}, budget_usd_per_hour=6.0, retries=0, cache_entries=0)
    for count in range(1, 3):
        await judge.answer(CASE, [ASKED])
        assert judge.budget.spent(3600, judge._clock()) > 0.2 * count
    assert not [each for each in recwarn if "refund" in str(each.message)]


async def test_an_account_that_is_given_is_not_replaced(made, provider):
    judge = made(model={"price": PRICE})
    reply = (await judge.answer(CASE, [ASKED]))[ASKED]
    assert (reply.judgement.flags, judge.estimating) == ((), frozenset())


OTHER = {"api_base": None, "temperature": 0.7, "top_p": 0.5, "max_tokens": 99, "seed": None, "structured": "never",
         "logprobs": True, "name": "openai/gpt-4o"}  # fmt: skip
SAME_ANSWER = {"api_key": "sk-other", "timeout_s": 3.0, "price": PRICE}
"""Whoever pays and however long one waits, the answer is the same."""


def test_every_setting_of_a_model_is_known_to_change_its_answers_or_not_to():
    assert {each.name for each in fields(JudgeModel)} == {*OTHER, *SAME_ANSWER}
    plain = JudgeModel(name="openai/gpt-4o-mini", api_base="http://a")
    given = {each.name: getattr(plain, each.name) for each in fields(JudgeModel)}
    for name, value in OTHER.items():
        assert JudgeModel(**{**given, name: value}).identity != plain.identity, name
    for name, value in SAME_ANSWER.items():
        assert JudgeModel(**{**given, name: value}).identity == plain.identity, name


@pytest.mark.parametrize("name", ["temperature", "top_p", "max_tokens", "seed", "structured"])
async def test_another_setting_is_not_answered_out_of_the_cache(made, provider, watched, name):
    given = {**OTHER, "structured": "always"}
    await made().answer(CASE, [ASKED])
    await made().answer(CASE, [ASKED])
    assert (len(provider.seen), watched.hits) == (1, 1)
    await made(model={name: given[name]}).answer(CASE, [ASKED])
    assert len(provider.seen) == 2


async def test_what_was_hidden_from_the_judge_and_how_a_panel_votes_are_part_of_the_key(made, provider):
    names = ("openai/a", "openai/b", "openai/c")
    for settings in ({}, {"redact": ("email",)}, {"names": names},
                     {"names": names, "panel_rule": "median"}):  # fmt: skip
        before = len(provider.seen)
        await made(**settings).answer(CASE, [ASKED])
        assert len(provider.seen) > before, settings


async def test_a_panel_that_is_split_on_one_score_keeps_the_other(made, provider):
    accuracy = {"a": 2, "b": 1, "c": 0}

    def act(seen):
        stated = {"accuracy_score": accuracy[seen.body["model"]], "faithfulness_score": 2, "rationale": "It says so."}
        return fake.states(json.dumps(stated))(seen)

    provider.standing = act
    judge = made(names=("openai/a", "openai/b", "openai/c"))
    for _ in range(2):  # the second time out of the cache
        reply = (await judge.answer(CASE, [GradeAnswer()]))[GradeAnswer()]
        assert reply.value == {"accuracy_score": None, "faithfulness_score": 2, "rationale": "It says so."}
    results = {}
    for name in ("accuracy_score", "faithfulness_score"):
        metric = next(each.metric for each in RUBRICS["answer"].criteria if each.metric.id == name)
        steps = metric.start(CASE)
        next(steps)
        try:
            steps.send((reply,))
        except StopIteration as done:
            results[name] = done.value
    assert results["accuracy_score"].reason == "the panel is split on accuracy_score"
    assert results["faithfulness_score"].value == 2.0
    assert len(provider.seen) == 3


def stops(word, *, status=None):
    """A content filter that stops every prompt with this word in its data."""

    def act(seen):
        if word not in seen.messages[-1]["content"]:
            return judges()(seen)
        if status is None:
            return fake.filtered()(seen)
        return fake.error(status, "The response was filtered", code="content_filter")(seen)

    return act


@pytest.mark.parametrize("status", [None, 400])
async def test_what_a_filter_stops_is_asked_again_without_what_may_be_left_out(made, provider, watched, status):
    provider.standing = stops("knives", status=status)
    case = Case(case_id="c", model_output="ok", transcript="t", config={"shop": "knives"})
    reply = (await made().answer(case, [ASKED]))[ASKED]
    assert isinstance(reply, Answer)
    assert LEFT_OUT in reply.judgement.flags
    assert watched.attempts == ["content refused", None]


async def test_a_question_that_a_filter_stops_costs_those_beside_it_nothing(made, provider):
    provider.standing = stops("knives")
    bad, good = Supported("He sells knives"), SameHighlight("a", "b")
    replies = await made().answer(CASE, [bad, good])
    assert isinstance(replies[good], Answer)
    assert (replies[bad].failed, replies[bad].final) == (False, True)
    assert replies[bad].reason.startswith("filtered: ")
    assert len(provider.seen) == 3


async def test_what_is_filtered_whatever_is_left_out_is_unavailable(made, provider):
    provider.standing = stops("")
    case = Case(case_id="c", model_output="ok", transcript="t", config={"shop": "knives"})
    reply = (await made().answer(case, [ASKED]))[ASKED]
    assert (reply.failed, reply.reason.partition(":")[0]) == (False, "filtered")
    assert len(provider.seen) == 2


async def test_the_arguments_of_a_tool_call_are_an_answer(made, provider):
    def called(whole):
        text = whole["choices"][0]["message"]["content"]
        call = {"id": "1", "type": "function", "function": {"name": "answer", "arguments": text}}
        whole["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
        return whole

    provider.standing = changed(called)
    assert isinstance((await made().answer(CASE, [ASKED]))[ASKED], Answer)
    assert len(provider.seen) == 1


async def test_what_a_filter_stopped_is_paid_with_what_was_asked_again(made, provider, watched):
    provider.standing = stops("knives")
    asked = [Supported("He sells knives"), SameHighlight("a", "b")]
    judge = made(model={"price": PRICE})
    replies = await judge.answer(CASE, asked)
    calls = {reply.judgement.call: reply.judgement for reply in replies.values()}
    assert sum(each.requests for each in calls.values()) == len(provider.seen) == 3
    spent = judge.budget.spent(3600, judge._clock())
    assert sum(each.cost_usd for each in calls.values()) == pytest.approx(spent) == pytest.approx(watched.cost_usd)


async def test_what_a_filter_stopped_is_paid_where_nothing_more_can_be_asked(made, provider):
    provider.standing = stops("knives")
    asked = [Supported("He sells knives"), SameHighlight("a", "b")]
    (first,), _ = requests(CASE, asked, context_tokens=32_000)
    judge = made(model={"price": PRICE}, budget_usd_per_hour=1.2 * PRICE.of(first.prompt_tokens, 1024))
    replies = await judge.answer(CASE, asked)
    assert len(provider.seen) == 1
    assert {reply.judgement.cost_usd for reply in replies.values()} == {judge.budget.spent(3600, judge._clock())}


@pytest.mark.parametrize("body", [refused_without_usage, in_parts])
async def test_who_counts_attempts_counts_what_is_charged(made, provider, watched, body):
    provider.standing = changed(body)
    judge = made(model={"price": PRICE}, retries=0)
    await judge.answer(CASE, [ASKED])
    assert watched.cost_usd == pytest.approx(judge.budget.spent(3600, judge._clock()))
    assert watched.cost_usd > 0.2


async def test_thoughts_that_only_the_total_counts_are_paid_for(made, provider):
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 3100}
    provider.standing = changed(lambda whole: {**whole, "usage": usage})
    reply = (await made(model={"price": PRICE}).answer(CASE, [ASKED]))[ASKED]
    assert (reply.judgement.input_tokens, reply.judgement.output_tokens) == (1000, 2100)
    assert reply.judgement.cost_usd == pytest.approx(PRICE.of(1000, 2100))
    listed = (await made(cache_entries=0).answer(CASE, [ASKED]))[ASKED].judgement.cost_usd
    assert listed == pytest.approx((1000 * 0.15 + 2100 * 0.6) / 1e6)


@pytest.mark.parametrize(("unknown", "calls"), [(1, 2), (2, 0)])
async def test_a_panel_that_a_budget_leaves_without_a_majority_pays_none_of_its_members(made, provider, unknown, calls):
    names = ("openai/gpt-4o-mini", "openai/gpt-4o", "openai/gpt-4.1")
    names = (*names[: 3 - unknown], *(f"openai/nobody-{n}" for n in range(unknown)))
    reply = (await made(names=names, budget_usd_per_hour=6.0).answer(CASE, [ASKED]))[ASKED]
    assert len(provider.seen) == calls
    assert isinstance(reply, Answer) == (calls > 0)
    if not calls:
        assert reply.reason.startswith("over budget: no price is known of openai/nobody-0")
