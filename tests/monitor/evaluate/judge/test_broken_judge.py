"""A judge that breaks a tenth of its answers: hardly a question stays unanswered, and the calls hardly grow."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.kinds import SameHighlight, SameIntent, Supported
from sidejudge.scoring.questions.question import NoAnswer
from tests.fakes import openai as fake
from tests.fakes.judge import judgement

CASES = 200
SHARE_BROKEN = 0.10


def wrong_level(body, at):
    body["answers"][at]["score"] = 7


def missing(body, at):
    del body["answers"][at]


def doubled(body, at):
    body["answers"].append({**body["answers"][at], "reason": "On second thoughts."})


def invented(body, at):
    body["answers"].append({**body["answers"][at], "id": "q99-000000"})


def too_long(body, at):
    body["answers"][at]["reason"] = "so " * 81


def blank(body, at):
    body["answers"][at]["reason"] = " "


BREAKS = (wrong_level, missing, doubled, invented, too_long, blank)
"""What was seen of small models, within JSON; prose and a list that breaks off are beside them."""


async def test_a_tenth_of_broken_answers_costs_next_to_nothing(made, provider, watched):
    chance = random.Random(19)  # the same breaks in every run

    def act(seen):
        body = judgement(seen)
        if chance.random() >= SHARE_BROKEN:
            return fake.states(json.dumps(body))(seen)
        kind = chance.randrange(len(BREAKS) + 2)
        if kind == len(BREAKS):
            return fake.states("Here is what I think of it.")(seen)
        if kind > len(BREAKS):
            text = json.dumps(body)
            return fake.states(text[: len(text) // 2], finish_reason="length")(seen)
        BREAKS[kind](body, chance.randrange(len(body["answers"])))
        return fake.states(json.dumps(body))(seen)

    provider.standing = act
    judge = made(cache_entries=0)
    case = Case(case_id="c", model_output="A refund of $49.", transcript="I want a refund.")
    unanswered = requested = 0
    for start in range(0, CASES, 8):
        batch = []
        for n in range(start, start + 8):
            questions = [SameIntent("refund", f"money back {n}"), SameHighlight("Refund", f"Refund {n}")]
            questions += [Supported(f"claim {at} of {n}") for at in range(4)]
            batch.append(judge.answer(replace(case, case_id=f"c{n}"), questions))
            requested += len(questions)
        for replies in await asyncio.gather(*batch):
            unanswered += sum(isinstance(reply, NoAnswer) for reply in replies.values())
    calls = len(provider.seen)
    assert unanswered <= 0.01 * requested
    assert calls <= 1.15 * CASES
    assert watched.repairs, "some answers were broken"
