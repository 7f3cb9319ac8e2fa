"""Answerers: asked in order, each what the ones before left open."""

from __future__ import annotations

import pytest

from sidejudge.monitor.evaluate.backends import Backends, JudgeAccount, PostponedError, Synchronous
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.kinds import BorneOut, CitesTranscript
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Method

CASE = Case(case_id="c", model_output={})
ONE, TWO, THREE = CitesTranscript("1"), CitesTranscript("2"), BorneOut("3")


def yes(method: Method) -> Answer:
    return Answer(value=True, method=method)


class Scripted:
    """Replies what it was told to, keeps what it was asked."""

    outage = None

    def __init__(self, replies, judges=(CitesTranscript, BorneOut)):
        self.replies, self.judges, self.requested = replies, judges, []

    async def answer(self, case, questions, account=None):
        assert case is CASE
        self.requested.append(tuple(questions))
        return {q: self.replies[q] for q in questions if q in self.replies}

    def can_answer(self, question):
        return isinstance(question, self.judges)

    def share(self, _):
        return 1.0


async def ask(*order, judge=None, admit=lambda: None):
    return await Backends(order=order, judge=judge).ask(CASE, (ONE, TWO, THREE), admit, JudgeAccount())


async def test_the_first_that_answers_wins_and_the_next_is_asked_the_rest_together():
    first, second = (
        Scripted({ONE: yes(Method.EMBEDDING)}),
        Scripted(dict.fromkeys((ONE, TWO, THREE), yes(Method.JUDGE))),
    )
    replies = await ask(first, second)
    assert {q: reply.method for q, reply in replies.items()} == {
        ONE: Method.EMBEDDING, TWO: Method.JUDGE, THREE: Method.JUDGE,
    }  # fmt: skip
    assert second.requested == [(TWO, THREE)]


async def test_who_cannot_tell_passes_on_and_who_fails_ends_the_matter():
    first = Scripted({ONE: NoAnswer("too long"), TWO: NoAnswer("timed out", failed=True)})
    second = Scripted({TWO: yes(Method.JUDGE), THREE: yes(Method.JUDGE)})
    replies = await ask(first, second)
    assert second.requested == [(ONE, THREE)]
    assert replies == {ONE: NoAnswer("too long"), TWO: NoAnswer("timed out", failed=True), THREE: yes(Method.JUDGE)}


async def test_a_judge_is_asked_only_what_is_for_a_judge_and_only_when_admitted():
    judge = Scripted({ONE: yes(Method.JUDGE)}, judges=CitesTranscript)
    refusal = NoAnswer("out of reach", failed=True)
    replies = await ask(judge, judge=judge, admit=lambda: refusal)
    assert (judge.requested, replies) == ([], {ONE: refusal, TWO: refusal})
    await ask(judge, judge=judge)
    assert judge.requested == [(ONE, TWO)]


async def test_a_judge_that_is_not_needed_needs_no_admission():
    def never():
        raise PostponedError

    first = Scripted(dict.fromkeys((ONE, TWO, THREE), yes(Method.EMBEDDING)))
    judge = Scripted({})
    assert len(await ask(first, judge, judge=judge, admit=never)) == 3
    with pytest.raises(PostponedError):
        await ask(judge, judge=judge, admit=never)


async def test_a_plain_function_answers_too():
    plain = Synchronous(lambda case, question: yes(Method.LEXICAL) if question == TWO else NoAnswer("no"))
    judge = Scripted({ONE: yes(Method.JUDGE)})
    replies = await ask(judge, plain, judge=judge)
    assert (replies[ONE].method, replies[TWO].method, replies[THREE]) == (Method.JUDGE, Method.LEXICAL, NoAnswer("no"))
