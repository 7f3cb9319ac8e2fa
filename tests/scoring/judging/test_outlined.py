"""A run that does not fit a judge's context is asked about by its outline, where that is allowed, and says so."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.declared.ask import ask
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.questions.kinds import GradeAgent, GradeAnswer, SameFact
from sidejudge.scoring.rubrics.trajectory_signs import trajectory
from sidejudge.scoring.trace.span import ToolCall

CONTEXT = 12_000
GOLDEN = Path(__file__).with_name("outlined.txt")


def called(number: int) -> ToolCall:
    failed = number == 40
    return ToolCall(
        name="search", arguments={"page": number},
        result=None if failed else f"Page {number}. " + "Words of it. " * 120,
        error="429 Too many requests" if failed else None,
    )  # fmt: skip


CASE = Case(
    case_id="c", input="Find the refund policy.", model_output="Refunds take 9 days.", system_prompt="Be brief.",
    tools_used=tuple(map(called, range(80))),
)  # fmt: skip
TOOLS = ask("Did the calls in {{tools}} find what {{input}} asks for?")


def asked(*questions, case=CASE, outline=True, context_tokens=CONTEXT, **more):
    return requests(case, questions, context_tokens=context_tokens, outline=outline, **more)


def test_what_fits_is_asked_as_it_ever_was():
    small = dataclasses.replace(CASE, tools_used=CASE.tools_used[:3])
    assert asked(TOOLS, case=small) == asked(TOOLS, case=small, outline=False)


def test_without_leave_a_run_that_does_not_fit_is_refused():
    made, refused = asked(TOOLS, outline=False)
    assert (made, [*refused]) == ((), [TOOLS])


@pytest.mark.parametrize("context_tokens", [4_000, 12_000, 40_000])
def test_an_outline_fits_says_how_much_it_shows_and_shows_the_more_the_more_fits(context_tokens):
    ((made,), refused) = asked(TOOLS, context_tokens=context_tokens)
    assert refused == {}
    assert made.prompt_tokens + made.answer_tokens <= context_tokens
    run, found = CASE.once(trajectory), made.outline
    assert 0 < found.shown < found.steps == len(run.steps)
    assert found.share == pytest.approx(found.shown / found.steps, abs=0.1)
    prompt = made.messages[1]["content"]
    assert found.extent in prompt.partition("<<<DATA tools")[0]
    assert prompt.count("=== step ") == found.shown
    assert "429 Too many requests" in prompt  # the step with a sign stands there whatever fits


def test_questions_that_fit_stay_whole_and_all_others_share_one_outline():
    other = ask("Were the calls in {{tools}} few?")
    made, refused = asked(TOOLS, other, SameFact("a", "b"))
    assert refused == {}
    assert [len(each.questions) for each in made if each.outline] == [2]
    assert [each.questions for each in made if not each.outline] == [(SameFact("a", "b"),)]


def test_a_turn_is_not_taken_for_a_step_and_the_run_stands_once():
    turns = [
        {"role": "user", "content": "Find it."},
        *({"role": "assistant", "content": f"{n} " * 400} for n in range(90)),
    ]
    case = dataclasses.replace(CASE, model_output=turns)
    ((made,), refused) = asked(GradeAgent("tool_routing"), case=case)
    prompt = made.messages[1]["content"]
    assert refused == {}
    assert "name no turns" in prompt
    assert "tools (see conversation, which shows the whole run)" in prompt


@pytest.mark.parametrize(
    ("question", "case"),
    [
        (GradeAnswer(), dataclasses.replace(CASE, context=("word " * 40_000,))),
        (
            ask("Is {{output}} right by {{context}} and {{tools}}?"),
            dataclasses.replace(CASE, context=("word " * 40_000,)),
        ),
        (ask("Is {{transcript}} polite?"), Case(case_id="c", model_output="x", transcript="word " * 40_000)),
        (SameFact("word " * 40_000, "b"), CASE),
    ],
    ids=["a template of the seeds", "sources that do not fit", "a text without steps", "a question without a run"],
)
def test_what_no_outline_stands_for_is_refused_as_before(question, case):
    made, refused = asked(question, case=case)
    assert made == ()
    assert [*refused] == [question]


def test_another_order_shows_the_same_outline():
    ((one,), _), ((other,), _) = asked(TOOLS), asked(TOOLS, permuted=True)
    assert one.outline == other.outline


def test_the_prompt_is_the_committed_one():
    ((made,), _) = asked(TOOLS, context_tokens=4_000)
    assert made.messages[1]["content"] + "\n" == GOLDEN.read_text(encoding="utf-8")
