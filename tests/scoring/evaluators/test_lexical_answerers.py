"""How often each lexical answerer is right where it decides, on texts that are in no other test: docs/lexical.md."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.lexical import answer
from sidejudge.scoring.questions.kinds import BorneOut, CitesTranscript, KeepsFact, SameHighlight, SameIntent
from sidejudge.scoring.questions.question import Answer
from tests.linear_time import assert_linear

DATA = Path(__file__).parent / "data"
LEAST = 0.98
NOTHING = Case(case_id="c", model_output={})


def reasons(at):
    for call in yaml.safe_load((DATA / "reasons.yaml").read_text(encoding="utf-8")):
        case = Case(case_id="c", model_output={}, transcript=call["transcript"])
        question = (CitesTranscript, BorneOut)[at - 1]
        yield from ((case, question(each[0]), each[at]) for each in call["reasons"])


def pairs(name, question):
    held = yaml.safe_load((DATA / "pairs.yaml").read_text(encoding="utf-8"))[name]
    return ((NOTHING, question(expected, found), truth) for expected, found, truth in held)


ANSWERERS = {
    "CitesTranscript": lambda: reasons(1),
    "BorneOut": lambda: reasons(2),
    "SameIntent": lambda: pairs("intents", SameIntent),
    "SameHighlight": lambda: pairs("highlights", SameHighlight),
    "KeepsFact": lambda: pairs("facts", lambda fact, text: KeepsFact(fact=fact, translation=text)),
}


@pytest.mark.parametrize("answerer", ANSWERERS)
def test_an_answerer_that_decides_is_right(answerer, record_property):
    decided = [(question, reply.value, truth) for case, question, truth in ANSWERERS[answerer]()
               if isinstance(reply := answer(case, question), Answer)]  # fmt: skip
    wrong = [each for each in decided if each[1] != each[2]]
    record_property("decided", len(decided))
    assert decided
    assert len(wrong) <= (1 - LEAST) * len(decided), wrong


def test_the_facts_of_a_long_translation_take_time_in_proportion():
    def work(length):
        text = " ".join(f"word {at}" for at in range(length // 10))
        for at in range(length // 50):
            answer(NOTHING, KeepsFact(fact=f"${at}", translation=text))

    assert_linear(work)
