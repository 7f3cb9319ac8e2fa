"""The live judge through real litellm against a provider that misbehaves: each failure has its reply, none a number."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest

from sidejudge.integrations.judge.batch import BatchJudgeClient
from sidejudge.integrations.judge.client import JudgeClient, JudgeModel, TokenPrice
from sidejudge.monitor.evaluate.backends import OUTAGE, OVER_BUDGET, Addressed, JudgeAccount
from sidejudge.monitor.evaluate.judge import panel_member
from sidejudge.monitor.evaluate.judge.judge_backend import JudgeBackend
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.kinds import (
    GradeAnswer,
    ReachedGoal,
    SameHighlight,
    SameIntent,
    SentenceSimilarity,
    SummaryClaims,
    Supported,
)
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Method
from tests.fakes import openai as fake
from tests.fakes.batches import Batches
from tests.fakes.judge import judgement, judges
from tests.monitor.evaluate.judge.conftest import KEY, judge_of

CASE = Case(case_id="c", model_output="Your refund of $49 is booked.", transcript="I want a refund.", input="Refund?")
INTENT = SameIntent("get a refund", "get money back")
HIGHLIGHT = SameHighlight("Refund booked", "Refund was booked")
SUPPORTED = Supported("The caller wants a refund")
GRADE = GradeAnswer()
ONLY_EMBEDDINGS = SentenceSimilarity((("a", "b"),))
FILTERED = "filtered: content refused: "
"""Nothing failed: the provider does not let the judge see it, neither both questions nor each by itself."""

FAULTS = {
    "a wrong key": (fake.unauthorised(), f"{OUTAGE}: authentication failed", 1, "open"),
    "no access": (fake.forbidden(), f"{OUTAGE}: authentication failed", 2, "open"),  # the health probe is the second
    "no such model": (fake.no_model(), f"{OUTAGE}: model not found", 2, "open"),
    "no credit": (fake.no_credit(), f"{OUTAGE}: credit exhausted", 1, "open"),
    "payment required": (fake.error(402, "pay"), f"{OUTAGE}: credit exhausted", 1, "open"),
    "too many requests": (fake.too_many(), f"{OUTAGE}: rate limited", 3, "closed"),
    "too many requests, come again": (fake.too_many("0.01"), f"{OUTAGE}: rate limited", 3, "closed"),
    "too many requests, come next day": (fake.too_many("86400"), f"{OUTAGE}: rate limited", 1, "open"),
    "too many requests, until a date": (
        fake.too_many("Fri, 31 Dec 2100 23:59:59 GMT"), f"{OUTAGE}: rate limited", 1, "open",
    ),
    "too many requests, until a date gone by": (
        fake.too_many("Fri, 31 Dec 1999 23:59:59 GMT"), f"{OUTAGE}: rate limited", 3, "closed",
    ),
    "an error of theirs": (fake.error(500, "oops"), f"{OUTAGE}: overloaded", 3, "closed"),
    "a proxy with nobody behind it": (fake.page(), f"{OUTAGE}: overloaded", 3, "closed"),
    "a page in place of an answer": (fake.page(200), f"{OUTAGE}: bad answer", 4, "closed"),
    "a lock that is held": (fake.error(409, "busy"), f"{OUTAGE}: overloaded", 3, "closed"),
    "too early": (fake.error(425, "later"), f"{OUTAGE}: overloaded", 3, "closed"),
    "a request that took too long": (fake.error(408, "slow"), f"{OUTAGE}: timeout", 3, "closed"),
    "too many requests, come again in milliseconds": (
        fake.error(429, "slow down", retry_after_ms="10", retry_after="86400"), f"{OUTAGE}: rate limited", 3, "closed",
    ),
    "overloaded": (fake.error(503, "busy", retry_after="0"), f"{OUTAGE}: overloaded", 3, "closed"),
    "a body that breaks off": (fake.raw(b'{"id": "x", "choi'), f"{OUTAGE}: bad answer", 4, "closed"),
    "an empty body": (fake.raw(b""), f"{OUTAGE}: bad answer", 4, "closed"),
    "a reset before the answer": (fake.resets(), f"{OUTAGE}: unreachable", 3, "closed"),
    "a reset within the answer": (fake.resets(40), f"{OUTAGE}: unreachable", 3, "closed"),
    "no choices": (fake.no_choices(), "parse_error: empty", 2, "closed"),
    "an empty text": (fake.states(""), "parse_error: empty", 2, "closed"),
    "a bad request": (fake.error(400, "bad"), "bad request", 1, "closed"),
    "too long for it": (fake.too_long(), "context overflow: ", 1, "closed"),
    "too long for llama.cpp": (
        fake.error(400, "the request exceeds the available context size, try increasing it"), "context overflow: ", 1,
        "closed",
    ),
    "too long for a proxy": (fake.error(413, "Payload Too Large"), "context overflow: ", 1, "closed"),
    "a refusal": (fake.refuses(), FILTERED, 3, "closed"),
    "a filter": (fake.filtered(), FILTERED, 3, "closed"),
    "prose": (fake.states("The answer is good, I would say."), "parse_error: not JSON", 2, "closed"),
    "prose around JSON": (fake.states('Here you are: {"answers": []}'), "parse_error: q", 2, "closed"),
    "another schema": (fake.states('{"verdict": "good"}'), "parse_error: ", 2, "closed"),
    "another language": (fake.states("उत्तर अच्छा है"), "parse_error: not JSON", 2, "closed"),
    "an answer that is cut off": (
        fake.states('{"answers": [{"id": "q1", ', finish_reason="length"), "parse_error: not JSON, cut off", 2,
        "closed",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "reason", "calls", "circuit"), FAULTS.values(), ids=FAULTS)
async def test_each_failure_ends_in_its_reason_and_in_no_number(made, provider, watched, fault, reason, calls, circuit):
    judge, provider.standing = made(), fault
    replies = await judge.answer(CASE, [INTENT, HIGHLIGHT])
    assert set(replies) == {INTENT, HIGHLIGHT}
    for reply in replies.values():
        assert isinstance(reply, NoAnswer)
        assert reply.failed is not reply.reason.startswith(FILTERED)
        assert reply.reason.startswith(reason)
        assert "very-secret" not in reply.reason
    assert len(provider.seen) == len(watched.attempts) == calls
    assert None not in watched.attempts
    (state,) = judge.states().values()
    assert state.circuit == circuit
    assert (judge.outage is not None) == (circuit == "open")


async def test_questions_that_an_outage_leaves_unsent_use_nothing_of_the_providers_limits(made, provider):
    judge, provider.standing = made(tokens_per_minute=12_000), fake.error(401, "no")
    await judge.answer(CASE, [INTENT])
    (limits,) = judge._limits.values()
    before = limits._tokens._free_at
    async with asyncio.timeout(4):  # with what each of them was to take the third would wait for fourteen seconds
        for _ in range(4):
            assert (await judge.answer(CASE, [INTENT]))[INTENT].reason.startswith(OUTAGE)
    assert limits._tokens._free_at - before < 4


@pytest.mark.parametrize("refusal", [fake.page(403), fake.page(404), fake.error(403, "Forbidden")])
async def test_a_case_that_a_firewall_refuses_is_filtered_and_delays_no_other(made, provider, watched, refusal):
    judging = provider.standing
    provider.standing = lambda seen: refusal(seen) if b"UNION SELECT" in seen.raw else judging(seen)
    judge = made()
    for question in (INTENT, SUPPORTED):
        reply = (await judge.answer(replace(CASE, transcript="UNION SELECT", input="UNION SELECT"), [SUPPORTED]))[
            SUPPORTED
        ]
        assert isinstance(reply, NoAnswer)
        assert reply.reason.startswith(FILTERED)
        assert not reply.failed
        assert judge.outage is None
        assert isinstance((await judge.answer(CASE, [question]))[question], Answer)
    assert watched.attempts.count("content refused") == 2
    assert watched.cost_usd > 0, "the health probes are paid for"


@pytest.mark.parametrize(
    ("field", "value"), [("score", 7.5), ("score", True), ("score", "one"), ("score", None), ("reason", "")]
)
async def test_an_answer_that_breaks_its_form_is_an_error(made, provider, field, value):
    def spoilt(seen):
        body = judgement(seen)
        body["answers"][0][field] = value
        return fake.states(json.dumps(body))(seen)

    provider.standing = spoilt
    reply = (await made().answer(CASE, [INTENT]))[INTENT]
    assert isinstance(reply, NoAnswer)
    assert reply.failed
    assert reply.reason.startswith("parse_error: ")
    assert len(provider.seen) == 2


async def test_a_hanging_provider_is_a_timeout(made, provider, watched):
    provider.standing = fake.hangs()
    judge = made(retries=1, model={"timeout_s": 0.3})
    reply = (await judge.answer(CASE, [INTENT]))[INTENT]
    assert reply.failed
    assert (reply.judgement.requests, reply.judgement.cost_usd) == (2, 0.0)
    assert reply.judgement.flags == ("cost not known",), "given up, they may have been paid for all the same"
    assert reply.reason.startswith(OUTAGE)
    assert set(watched.attempts) == {"timeout"}


async def test_what_fails_in_passing_is_answered_after_a_retry(made, provider, watched):
    provider.will(fake.error(503, "busy"), fake.resets())
    reply = (await made().answer(CASE, [INTENT]))[INTENT]
    assert isinstance(reply, Answer)
    assert watched.attempts == ["overloaded", "unreachable", None]


async def test_seed_002s_answer_that_does_not_parse_is_asked_for_once_more_with_the_identical_bytes(
    made, provider, watched
):
    provider.will(fake.states("not JSON"))
    reply = (await made().answer(CASE, [GRADE]))[GRADE]
    assert isinstance(reply, Answer)
    first, second = provider.seen
    assert first.raw == second.raw
    assert watched.attempts == ["parse_error", None]
    assert watched.cost_usd == pytest.approx(reply.judgement.cost_usd)  # both were paid for


def spoilt(at, **changed):
    """Answers as asked, but for one answer of the list."""

    def act(seen):
        body = judgement(seen)
        body["answers"][at] |= changed
        return fake.states(json.dumps(body))(seen)

    return act


async def test_one_bad_answer_costs_no_other_and_is_asked_for_again_with_the_complaint(made, provider, watched):
    provider.will(spoilt(1, score=7))
    replies = await made().answer(CASE, [INTENT, HIGHLIGHT, SUPPORTED])
    assert all(isinstance(reply, Answer) for reply in replies.values())
    first, second = (seen.messages[1]["content"] for seen in provider.seen)
    assert second.startswith(first)
    complaint = second[len(first) :]
    assert "score is not one of 0, 1" in complaint
    assert "q2-" in complaint
    assert "q1-" not in complaint
    assert (watched.attempts, watched.repairs) == ([None, None], [(1, 1)])


async def test_what_is_bad_twice_has_no_answer_and_the_others_keep_theirs(made, provider, watched):
    provider.standing = spoilt(1, score=7)
    replies = await made().answer(CASE, [INTENT, HIGHLIGHT, SUPPORTED])
    bad = [reply for reply in replies.values() if isinstance(reply, NoAnswer)]
    assert [reply.reason.partition(":")[0] for reply in bad] == ["parse_error"]
    assert (len(provider.seen), watched.repairs) == (2, [(1, 0)])


async def test_an_outage_while_asking_again_keeps_what_was_answered(made, provider, watched):
    provider.will(spoilt(0, score=7))
    judge = made(retries=0)
    provider.standing = fake.error(503, "busy")
    provider.will()
    replies = await judge.answer(CASE, [INTENT, HIGHLIGHT])
    kinds = sorted(type(reply).__name__ for reply in replies.values())
    assert kinds == ["Answer", "NoAnswer"]
    assert next(r for r in replies.values() if isinstance(r, NoAnswer)).reason.startswith(OUTAGE)


async def test_a_wait_for_our_own_limits_is_no_failure_and_costs_no_answer(made, provider, watched, monkeypatch):
    monkeypatch.setattr(panel_member, "_GRACE_S", 0.0)
    provider.will(spoilt(0, score=7))
    judge = made(
        retries=0, requests_per_minute=30, model={"timeout_s": 0.5}
    )  # from the second request on a wait of 1 s
    replies = await judge.answer(CASE, [INTENT, HIGHLIGHT])
    assert all(isinstance(reply, Answer) for reply in replies.values())
    assert (len(provider.seen), watched.repairs) == (2, [(1, 1)])


async def test_a_member_that_answers_a_part_votes_on_that_part(made, provider):
    def act(seen):
        one = seen.body["model"] == "gpt-4o-mini"
        return (spoilt(0, score=7) if one else judges())(seen)

    provider.standing = act
    judge = made(names=["openai/gpt-4o-mini", "openai/gpt-4o", "openai/gpt-4.1"])
    replies = await judge.answer(CASE, [INTENT, HIGHLIGHT])
    assert all(isinstance(reply, Answer) for reply in replies.values())
    assert sorted(len(reply.judgement.votes) for reply in replies.values()) == [2, 3]


async def test_equal_questions_about_equal_cases_at_one_time_are_asked_once(made, provider):
    provider.standing = judges(delay_s=0.2)
    judge = made()
    twins = [replace(CASE, case_id=f"c{n}") for n in range(4)]
    answers = await asyncio.gather(*(judge.answer(case, [INTENT]) for case in twins))
    assert len(provider.seen) == 1
    assert all(isinstance(each[INTENT], Answer) for each in answers)
    assert sorted(each[INTENT].judgement.cost_usd > 0 for each in answers) == [False, False, False, True]


async def test_a_case_that_waits_for_anothers_failed_answer_asks_itself(made, provider):
    provider.will(lambda seen: replace(fake.error(401, "no")(seen), delay_s=0.2))
    judge = made()
    first = asyncio.create_task(judge.answer(CASE, [INTENT]))
    await asyncio.sleep(0.05)
    second = await judge.answer(CASE, [INTENT])
    assert isinstance((await first)[INTENT], NoAnswer)
    assert isinstance(second[INTENT], NoAnswer), "the breaker is open, and that is said"


STRONG = Addressed(INTENT, "strong")


async def test_a_question_goes_to_the_judge_that_it_is_addressed_to(made, provider):
    judge = made(others={"strong": "openai/gpt-4o-2024-08-06"})
    replies = await judge.answer(CASE, [INTENT, STRONG, HIGHLIGHT])
    requested = {seen.body["model"]: seen.messages[1]["content"].count("\nid: ") for seen in provider.seen}
    assert requested == {"gpt-4o-mini": 2, "gpt-4o-2024-08-06": 1}
    assert replies[STRONG].judgement.model == "openai/gpt-4o-2024-08-06"
    assert replies[INTENT].judgement.model == "openai/gpt-4o-mini"
    assert set(judge.states()) == {"openai/gpt-4o-mini", "openai/gpt-4o-2024-08-06"}
    again = await judge.answer(CASE, [STRONG])
    assert (len(provider.seen), again[STRONG].value) == (2, replies[STRONG].value), "each judge has answers of its own"


@pytest.mark.parametrize("out", ["default", "strong"])
async def test_of_two_judges_under_one_name_the_one_that_is_unreachable_is_shown(library, store, provider, out):
    with fake.Provider(fake.error(401, "no")) as shut:
        urls = {"default": provider.url, "strong": provider.url, out: shut.url}
        models = {name: JudgeModel(name="openai/m", api_base=url, api_key=KEY) for name, url in urls.items()}
        judge = JudgeBackend(
            judge_of(models["default"], others={"strong": judge_of(models["strong"])}),
            client=JudgeClient(library), memory=store.judged, jitter=lambda: 0.0,
        )  # fmt: skip
        await judge.answer(CASE, [STRONG if out == "strong" else INTENT])
        assert (judge.outage is not None, judge.states()["openai/m"].circuit) == (True, "open")


async def test_a_model_that_is_part_of_two_judges_has_one_circuit_breaker(made, provider):
    provider.standing = fake.error(401, "no")
    judge = made(others={"same": "openai/gpt-4o-mini"})
    await judge.answer(CASE, [Addressed(INTENT, "same")])
    assert judge.outage is not None
    await judge.answer(CASE, [INTENT])
    assert len(provider.seen) == 1


async def test_what_came_to_nothing_tells_what_it_cost(made, provider, watched):
    provider.standing = fake.states("not JSON")
    replies = await made().answer(CASE, [INTENT, HIGHLIGHT])
    (paid,) = {reply.judgement for reply in replies.values()}
    assert (paid.requests, paid.model, bool(paid.prompt_version)) == (2, "openai/gpt-4o-mini", True)
    requested = sum(sum(len(each["content"]) for each in seen.messages) // 4 for seen in provider.seen)
    assert (paid.input_tokens, paid.output_tokens) == (requested, 2 * (len("not JSON") // 4))
    assert paid.cost_usd == pytest.approx(watched.cost_usd)
    assert paid.cost_usd > 0


async def test_what_was_asked_again_is_part_of_what_the_answer_cost(made, provider, watched):
    provider.will(fake.states("not JSON"), fake.error(503, "busy"))
    reply = (await made().answer(CASE, [INTENT]))[INTENT]
    assert reply.judgement.requests == len(provider.seen) == 3
    assert reply.judgement.cost_usd == pytest.approx(watched.cost_usd)


async def test_where_nothing_was_sent_nothing_was_paid(made, provider):
    judge, provider.standing = made(), fake.unauthorised()
    assert (await judge.answer(CASE, [INTENT]))[INTENT].judgement.requests == 1
    assert (await judge.answer(CASE, [INTENT]))[INTENT].judgement is None


async def test_a_split_panel_tells_what_it_cost(made, provider, watched):
    split = iter([0, 1])
    provider.standing = judges(lambda _, field: next(split) if field == "score" else None)
    reply = (await made(names=["openai/gpt-4o", "openai/gpt-4.1"]).answer(CASE, [SUPPORTED]))[SUPPORTED]
    assert reply.failed
    assert reply.judgement.requests == 2
    assert reply.judgement.cost_usd == pytest.approx(watched.cost_usd)


async def test_many_cases_without_an_answer_in_them_are_no_outage(made, provider):
    judge, provider.standing = made(cache_entries=0), fake.no_choices()
    for _ in range(10):
        await judge.answer(CASE, [INTENT])
    assert judge.outage is None


async def test_all_open_questions_travel_in_one_call_and_share_its_price(made, provider):
    replies = await made().answer(CASE, [INTENT, HIGHLIGHT, SUPPORTED, INTENT, ONLY_EMBEDDINGS])
    assert set(replies) == {INTENT, HIGHLIGHT, SUPPORTED}  # embeddings are another answerer's
    assert len(provider.seen) == 1
    assert {reply.method for reply in replies.values()} == {Method.JUDGE}
    judgements = [reply.judgement for reply in replies.values()]
    assert len({(each.call, each.cost_usd) for each in judgements}) == 1
    assert judgements[0].call
    assert judgements[0].cost_usd > 0
    assert judgements[0].model == "openai/gpt-4o-mini"


async def test_nobody_is_asked_where_no_question_is_for_a_judge(made, provider):
    assert await made().answer(CASE, [ONLY_EMBEDDINGS, ONLY_EMBEDDINGS]) == {}
    assert not provider.seen


async def test_it_is_asked_as_the_seed_says(made, provider):
    await made().answer(CASE, [GRADE])
    body = provider.seen[0].body
    assert {name: body[name] for name in ("temperature", "top_p", "max_tokens", "seed")} == {
        "temperature": 0, "top_p": 1, "max_tokens": 1024, "seed": 42,
    }  # fmt: skip
    assert body["response_format"]["json_schema"]["strict"] is True


async def test_a_model_of_which_nothing_is_known_is_asked_without_a_schema(made, provider):
    provider.standing = fake.states('{"accuracy_score": 2, "faithfulness_score": 1, "rationale": "it holds"}')
    reply = (await made(names=["openai/ours"]).answer(CASE, [GRADE]))[GRADE]
    assert reply.value == {"accuracy_score": 2, "faithfulness_score": 1, "rationale": "it holds"}
    assert "response_format" not in provider.seen[0].body
    assert reply.judgement.flags == ("cost not known",)


async def test_what_was_answered_once_is_not_asked_again_even_after_a_restart(made, provider, watched):
    questions = [INTENT, HIGHLIGHT, SummaryClaims(("Booked, and told.",)), GRADE]
    provider.standing = judges(lambda metric, field: ["booked", "told"] if field == "claims" else None)
    first = await made().answer(CASE, questions)
    again = await made().answer(CASE, questions)
    assert len(provider.seen) == 2  # seed 002's prompt is a call of its own
    assert (watched.hits, watched.misses) == (4, 4)
    for question, reply in first.items():
        assert again[question].value == reply.value
        assert type(again[question].value) is type(reply.value)
        assert again[question].judgement.call == ""
        assert again[question].judgement.cost_usd == 0.0
    await made(names=["openai/gpt-4o"]).answer(CASE, questions)
    assert len(provider.seen) == 4  # another model is another answer
    await made().answer(Case(case_id="d", model_output="x", transcript="y"), questions)
    assert len(provider.seen) == 5  # and so is another case, where the question shows anything of it


async def test_what_failed_is_not_kept(made, provider):
    provider.will(fake.refuses())
    judge = made()
    assert isinstance((await judge.answer(CASE, [INTENT]))[INTENT], NoAnswer)
    assert isinstance((await judge.answer(CASE, [INTENT]))[INTENT], Answer)


async def test_no_more_calls_run_at_once_than_allowed(made, provider):
    provider.standing = judges(delay_s=0.05)
    judge = made(concurrency=3)
    cases = [Case(case_id=f"{n}", model_output=f"{n}", transcript=f"call {n}") for n in range(12)]
    replies = await asyncio.gather(*(judge.answer(case, [Supported(f"claim {case.case_id}")]) for case in cases))
    assert all(isinstance(reply, Answer) for each in replies for reply in each.values())
    assert provider.most_at_once == 3


async def test_while_the_breaker_is_open_nobody_is_asked_and_the_reason_is_told(made, provider):
    judge, provider.standing = made(), fake.unauthorised()
    await judge.answer(CASE, [INTENT])
    reply = (await judge.answer(CASE, [HIGHLIGHT]))[HIGHLIGHT]
    assert len(provider.seen) == 1
    assert reply.failed
    assert reply.reason.startswith(f"{OUTAGE}: authentication failed")
    assert judge.outage.startswith("authentication failed")


async def test_several_failures_in_a_row_open_the_breaker(made, provider):
    judge, provider.standing = made(), fake.error(500, "oops")
    await judge.answer(CASE, [INTENT])
    assert judge.outage is None
    await judge.answer(CASE, [INTENT])
    assert judge.outage.startswith("overloaded")
    assert len(provider.seen) == 5


async def test_a_budget_that_is_spent_stops_judging_and_a_restart_remembers_it(made, provider, store):
    price = {"price": TokenPrice(input_usd_per_million=1000.0, output_usd_per_million=1000.0)}
    judge = made(budget_usd_per_hour=5.0, cache_entries=0, model=price)
    answers = []
    while isinstance(reply := (await judge.answer(CASE, [INTENT]))[INTENT], Answer):
        answers.append(reply)
    assert reply.failed
    assert reply.reason.startswith(OVER_BUDGET)
    spent = sum(answer.judgement.cost_usd for answer in answers)
    assert 0 < spent <= 5.0
    assert sum(store.judged.spent_since(0).values()) == pytest.approx(spent)
    again = made(budget_usd_per_hour=5.0, model=price).budget
    now = next(iter(store.judged.spent_since(0)))
    assert again.spent(3600, now) == pytest.approx(spent)


@pytest.mark.parametrize("started_s", [30 * 86_400, -30 * 86_400], ids=["ahead", "behind"])
async def test_what_was_spent_today_counts_though_the_monitor_started_under_a_wrong_clock(library, store, started_s):
    morning_s = 20_000 * 86_400 + 9 * 3600
    for hour_s in range(morning_s - 10 * 86_400, morning_s + 3600, 3600):
        await store.judged.spend(hour_s, 1.0)
    wrong_s = morning_s + started_s
    asking = judge_of(JudgeModel(name="openai/gpt-4o-mini"), budget_usd_per_day=10.5)
    budget = JudgeBackend(
        asking, client=JudgeClient(library), memory=store.judged, clock_ns=lambda: wrong_s * 10**9
    ).budget
    spent = budget.reserve(0.1, wrong_s)
    assert spent is not None
    budget.settle(spent, 0.1, wrong_s)
    assert budget.spent(86_400, morning_s) == 10.0
    assert budget.reserve(1.0, morning_s) is None


async def test_a_budget_without_a_price_judges_nothing_and_says_what_to_set(made, provider):
    judge = made(names=["openai/ours"], budget_usd_per_day=1.0)
    reply = (await judge.answer(CASE, [INTENT]))[INTENT]
    assert reply.failed
    assert "evaluators.judge.price" in reply.reason
    assert not provider.seen


async def test_a_question_that_is_too_long_for_the_model_is_not_asked(made, provider):
    case = Case(case_id="c", model_output="x", transcript="word " * 100_000)
    reply = (await made(context_tokens=4096).answer(case, [SUPPORTED]))[SUPPORTED]
    assert isinstance(reply, NoAnswer)
    assert not provider.seen


async def test_a_panel_decides_by_majority_and_says_when_it_disagrees(made, provider, watched):
    votes = {"gpt-4o-mini": 1, "gpt-4o": 0, "gpt-4.1": 1}

    def vote(seen):
        score = votes[seen.body["model"]]
        return judges(lambda _, field: score if field == "score" else None)(seen)

    provider.standing = vote
    judge = made(names=[f"openai/{name}" for name in votes])
    reply = (await judge.answer(CASE, [SUPPORTED]))[SUPPORTED]
    assert reply.value is True
    assert len(provider.seen) == 3
    assert "the judges disagree" in reply.judgement.flags
    assert dict(reply.judgement.votes) == {f"openai/{name}": str(bool(v)).lower() for name, v in votes.items()}
    assert reply.judgement.dissent == pytest.approx(1 / 3)
    assert watched.flags["disagreement"] == 1
    assert all(name in reply.judgement.model for name in votes)
    assert reply.judgement.cost_usd == pytest.approx(watched.cost_usd)


async def test_each_answer_of_a_model_that_a_panel_names_twice_is_a_vote(made, provider):
    scores = iter([1, 0, 1])
    provider.standing = judges(lambda _, field: next(scores) if field == "score" else None)
    judge = made(names=["openai/gpt-4o"] * 3)
    reply = (await judge.answer(CASE, [SUPPORTED]))[SUPPORTED]
    assert reply.value is True
    votes = dict(reply.judgement.votes)
    assert list(votes) == ["openai/gpt-4o", "openai/gpt-4o (2)", "openai/gpt-4o (3)"]
    assert sorted(votes.values()) == ["false", "true", "true"]
    assert reply.judgement.dissent == pytest.approx(1 / 3)

    provider.standing = fake.unauthorised()
    assert (await judge.answer(CASE, [INTENT]))[INTENT].failed
    assert judge.outage.startswith("authentication failed")


async def test_a_panel_goes_on_while_it_has_a_majority_and_a_split_one_has_no_answer(made, provider):
    def vote(seen):
        if seen.body["model"] == "gpt-4o-mini":
            return fake.unauthorised()(seen)
        return judges()(seen)

    provider.standing = vote
    three = made(names=["openai/gpt-4o-mini", "openai/gpt-4o", "openai/gpt-4.1"])
    assert isinstance((await three.answer(CASE, [INTENT]))[INTENT], Answer)
    assert three.outage is None
    two = made(names=["openai/gpt-4o-mini", "openai/gpt-4o"])
    reply = (await two.answer(CASE, [INTENT]))[INTENT]
    assert reply.failed
    assert two.outage.startswith("authentication failed")

    split = iter([0, 1])
    provider.standing = judges(lambda _, field: next(split) if field == "score" else None)
    pair = made(names=["openai/gpt-4o", "openai/gpt-4.1"])
    reply = (await pair.answer(CASE, [SUPPORTED]))[SUPPORTED]
    assert reply.failed
    assert reply.reason.startswith("the panel is split")


async def test_two_judges_of_an_intent_whose_middle_is_no_level_are_split(made, provider):
    scores = {"gpt-4o": 1.0, "gpt-4.1": 0.5}

    def act(seen):
        return judges(lambda _, field: scores[seen.body["model"]] if field == "score" else None)(seen)

    provider.standing = act
    pair = made(names=["openai/gpt-4o", "openai/gpt-4.1"])
    reply = (await pair.answer(CASE, [INTENT]))[INTENT]
    assert reply.failed
    assert reply.reason.startswith("the panel is split: the middle is none of 0, 0.5, 1 (openai/gpt-4o: 1.0; ")
    scores["gpt-4.1"] = 1.0
    again = made(names=["openai/gpt-4o", "openai/gpt-4.1"], cache_entries=0)
    assert (await again.answer(CASE, [INTENT]))[INTENT].value == 1.0


async def test_a_store_that_fails_costs_no_answers(made, provider, store):
    judge = made()
    store.close()
    assert isinstance((await judge.answer(CASE, [INTENT]))[INTENT], Answer)


async def test_the_share_that_may_be_judged_is_one_without_a_budget(made):
    judge = made()
    assert judge.share("low") == 1.0
    assert judge.can_answer(INTENT)
    assert not judge.can_answer(ONLY_EMBEDDINGS)


async def test_when_the_provider_is_back_one_probe_finds_out_and_the_others_wait_for_it(provider, library, store):
    now = [1_760_000_000.0]
    reported = {"api_base": provider.url, "api_key": "sk-very-secret"}
    judge = JudgeBackend(
        judge_of(JudgeModel(name="openai/gpt-4o-mini", **reported)),
        client=JudgeClient(library), memory=store.judged, clock_ns=lambda: int(now[0] * 1e9),
    )  # fmt: skip
    provider.standing = fake.unauthorised()
    await judge.answer(CASE, [INTENT])
    assert judge.outage
    now[0] += 4.0
    assert judge.outage
    now[0] += 2.0
    assert judge.outage is None  # it may be asked again
    provider.standing, provider.most_at_once = judges(delay_s=0.1), 0
    claims = [Supported(f"claim {n}") for n in range(5)]
    replies = await asyncio.gather(*(judge.answer(CASE, [claim]) for claim in claims))
    assert all(isinstance(reply, Answer) for each in replies for reply in each.values())
    assert judge.states()["openai/gpt-4o-mini"].circuit == "closed"
    assert len(provider.seen) == 7  # the one refused, a greeting, and five claims
    assert b"claim" not in provider.seen[1].raw


async def test_whether_a_provider_of_batches_is_back_is_found_out_without_a_batch(provider, library, store):
    now = [1_760_000_000.0]
    client = BatchJudgeClient(JudgeClient(library), library, store.kept.room("batches"), gather_s=0.1, poll_s=0.1)
    model = JudgeModel(name="openai/gpt-4o-mini", api_base=provider.url, api_key="sk-very-secret")
    judge = JudgeBackend(judge_of(model), client=client, memory=store.judged, clock_ns=lambda: int(now[0] * 1e9))
    provider.standing = fake.unauthorised()
    await judge.answer(CASE, [INTENT])
    assert judge.outage
    now[0] += 6.0
    batches = provider.standing = Batches(judges())
    provider.will(judges())
    (reply,) = (await judge.answer(CASE, [INTENT])).values()
    assert isinstance(reply, Answer)
    assert [seen.path for seen in provider.seen[1:3]] == ["/v1/chat/completions", "/v1/files"]
    assert len(batches.batches) == 1
    await client.close()


@pytest.mark.parametrize("fault", [fake.error(500, "oops"), fake.resets()])
async def test_a_case_that_the_provider_never_answers_keeps_no_breaker_open(provider, library, store, fault):
    now = [1_760_000_000.0]
    reported = {"api_base": provider.url, "api_key": "sk-very-secret"}
    judge = JudgeBackend(
        judge_of(JudgeModel(name="openai/gpt-4o-mini", **reported), retries=1, cache_entries=0),
        client=JudgeClient(library), memory=store.judged, clock_ns=lambda: int(now[0] * 1e9), jitter=lambda: 0.0,
    )  # fmt: skip
    poison, other = Supported("poison"), Supported("other")
    provider.standing = lambda seen: (fault if b"poison" in seen.raw else judges())(seen)
    while judge.outage is None:
        await judge.answer(CASE, [poison])
    now[0] += 6.0
    reply = (await judge.answer(CASE, [poison]))[poison]
    assert reply.failed  # it has its failure ...
    assert judge.outage is None  # ... and the others are not kept waiting
    assert isinstance((await judge.answer(CASE, [other]))[other], Answer)


async def test_an_answer_to_one_request_that_cannot_be_read_is_no_outage(made, provider):
    poison, other = Supported("poison"), Supported("other")
    provider.standing = lambda seen: (fake.page(200) if b"poison" in seen.raw else judges())(seen)
    judge = made(cache_entries=0)
    for _ in range(5):
        reply = (await judge.answer(CASE, [poison]))[poison]
        assert reply.reason.startswith("bad answer")
        assert judge.outage is None
    assert isinstance((await judge.answer(CASE, [other]))[other], Answer)


async def test_one_request_alone_is_no_outage_however_often_it_is_retried(made, provider):
    judge, provider.standing = made(retries=8), fake.error(500, "oops")
    await judge.answer(CASE, [INTENT])
    assert len(provider.seen) == 9
    assert judge.outage is None
    await judge.answer(CASE, [INTENT])
    assert judge.outage == "overloaded (HTTP 500)"


async def test_a_greeting_is_paid_for_by_the_budget_and_by_no_case(provider, library, store, watched):
    now = [1_760_000_000.0]
    price = TokenPrice(input_usd_per_million=1.0, output_usd_per_million=0.0)
    reported = {"api_base": provider.url, "api_key": "sk-very-secret", "price": price}
    judge = JudgeBackend(
        judge_of(JudgeModel(name="openai/gpt-4o-mini", **reported), budget_usd_per_day=1.0),
        client=JudgeClient(library), memory=store.judged, clock_ns=lambda: int(now[0] * 1e9), observer=watched,
    )  # fmt: skip
    provider.standing = fake.unauthorised()
    await judge.answer(CASE, [INTENT])
    now[0] += 6.0
    provider.standing = judges()
    reply = (await judge.answer(CASE, [INTENT]))[INTENT]
    _, greeting, requested = provider.seen
    assert INTENT.found.encode() not in greeting.raw
    assert INTENT.found.encode() in requested.raw
    spent = judge.budget.spent(3600, now[0])
    assert spent == pytest.approx(watched.cost_usd)
    assert 0 < reply.judgement.cost_usd < spent


async def test_what_a_case_cost_is_known_as_one_of_its_priority(made, provider):
    judge = made(budget_usd_per_hour=1.0, cache_entries=0)

    async def heard(priority, questions):
        judge.share(priority)
        account = JudgeAccount(priority)
        await judge.answer(CASE, questions, account)
        await judge.answer(CASE, questions, account)  # a second round of the same case

    await asyncio.gather(heard("high", [INTENT]), heard("low", [INTENT, HIGHLIGHT, SUPPORTED, GRADE]))
    now = judge._clock()
    assert judge.budget.forecast("low", now) > judge.budget.forecast("high", now) > 0
    assert judge.budget.forecast("normal", now) == 0
    means = {who: judge.budget._mean_usd(who) for who in ("high", "low")}
    assert sum(means.values()) == pytest.approx(judge.budget.spent(3600, now))


async def test_a_bug_costs_one_case_its_answers_and_tells_nothing_of_the_case(provider, library, store, caplog):
    class Broken:
        async def complete(self, request, model):
            raise RuntimeError(request.messages[1]["content"])

        async def context_tokens(self, model):
            return 32_000

        async def price(self, model):
            return None

    judge = JudgeBackend(
        judge_of(JudgeModel(name="openai/x")), client=Broken(), memory=store.judged
    )  # fmt: skip
    replies = await judge.answer(CASE, [INTENT, SUPPORTED])
    assert {(reply.reason, reply.failed) for reply in replies.values()} == {("judge error: RuntimeError", True)}
    assert "refund" not in caplog.text


@pytest.mark.parametrize("text", ["half a character \ud800", "\x00\x01\x1b[31m", "\u202e gnol", "😀" * 50])
async def test_whatever_a_trace_says_it_can_be_asked_about(made, provider, watched, text):
    judge = made()
    case = Case(case_id="c", model_output=text, transcript=text, input=text)
    replies = await judge.answer(case, [GRADE, Supported(text), HIGHLIGHT])
    assert all(isinstance(reply, Answer) for reply in replies.values()), replies
    assert set(watched.attempts) == {None}


async def test_what_was_too_long_after_all_is_asked_in_smaller_parts(made, provider):
    claims = [Supported(f"the caller said {n} and more of that kind") for n in range(12)]
    replies = await made().answer(CASE, claims)
    (whole,) = provider.seen

    def narrow(seen):
        return (fake.too_long() if len(seen.raw) > 0.8 * len(whole.raw) else judges())(seen)

    provider.standing = narrow
    parts = await made(names=["openai/gpt-4o"]).answer(CASE, claims)
    assert {claim: reply.value for claim, reply in parts.items()} == {
        claim: reply.value for claim, reply in replies.items()
    }
    assert len({reply.judgement.call for reply in parts.values()}) >= 2


@pytest.mark.parametrize("refusal", [fake.too_long(), fake.filtered()], ids=["too long", "filtered"])
async def test_what_is_asked_in_the_other_order_is_asked_so_in_parts_as_well(made, provider, refusal):
    claims = [Supported(f"the caller said {n} of them and more of that kind") for n in range(40)]
    provider.will(refusal)
    await made().answer(CASE, [Addressed(claim, "default", permuted=True) for claim in claims])
    asked = [re.findall(r"said (\d+) of them", each.messages[1]["content"]) for each in provider.seen]
    assert len(asked) >= 2
    assert all(numbers == sorted(numbers, key=int, reverse=True) for numbers in asked)
    ends = [each.messages[1]["content"].partition("QUESTIONS")[0] for each in provider.seen]
    assert all(end.index("I want a refund.") > end.index("is booked") for end in ends)


async def test_an_outage_says_nothing_of_what_judging_costs(made, provider):
    judge = made(budget_usd_per_hour=1.0)
    await judge.answer(CASE, [INTENT])
    mean = judge.budget._mean_usd("normal")
    assert mean > 0
    provider.standing = fake.unauthorised()
    for n in range(20):
        await judge.answer(CASE, [Supported(f"claim {n}")])
    assert judge.budget._mean_usd("normal") == mean


async def test_personal_data_leaves_for_no_judge_and_its_answers_are_flagged(provider, made):
    case = replace(CASE, transcript="I am Ann, ann@example.com, card 4111 1111 1111 1111.", input="Refund C-4711?")
    judge = made(redact=("email", "card"), redact_patterns=(r"C-\d+",))
    found = await judge.answer(case, [SUPPORTED])
    sent = json.dumps([seen.body for seen in provider.seen])
    assert "ann@example.com" not in sent
    assert "4111" not in sent
    assert "C-4711" not in sent
    assert "[email]" in sent
    assert found[SUPPORTED].judgement.flags == ("redacted",)


async def test_what_a_run_achieved_may_be_untold_and_is_no_value_then(made, provider):
    provider.will(fake.states('{"metric": "goal_reached", "reason": "Not shown.", "achieved": "cannot tell"}'))
    question = ReachedGoal("task", "1 llm m", "=== step 1", (1,), 1)
    reply = (await made().answer(Case(case_id="c", model_output="x"), [question]))[question]
    assert isinstance(reply, NoAnswer)
    assert reply.final
    assert "cannot tell: Not shown." in reply.reason
