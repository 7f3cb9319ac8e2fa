"""Orders in the material: wherever they stand, they stay data, and what is decided without a judge does not hear them.

What a model makes of an order that it reads is not in our hands. What is: where it reads it, that the instructions
around it are the same to the last byte, that no judge can lift a blocker, and that an answer against the facts is told.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import pytest

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.judging.check import contradiction
from sidejudge.scoring.judging.request import can_judge, requests
from sidejudge.scoring.questions import kinds
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import ToolCall
from sidejudge.scoring.verdict.verdict import State
from tests.scoring.judging.asking import answers

LINES = (Path(__file__).parent / "injections.jsonl").read_text(encoding="utf-8").splitlines()
INJECTIONS = {each["name"]: each["text"] * each.get("repeat", 1) for each in map(json.loads, LINES)}
CLEAN = "The agent greeted the customer."
FENCE = re.compile(r"<<<DATA ([\w.]+) ([0-9a-f]{16})>>>\n(.*?)\n<<<END \2>>>", re.DOTALL)
ID = re.compile(r"^id: q(\d+)-[0-9a-f]{6}$", re.MULTILINE)
RESTATING = (
    kinds.SummaryClaims, kinds.OutcomeDrift, kinds.StatedClaims, kinds.PiecesUsed, kinds.PiecesNeeded,
    kinds.SoundReasoning, kinds.FollowsInstructions, kinds.GradeAnswer,
)  # fmt: skip
EVERY = pytest.mark.parametrize("text", INJECTIONS.values(), ids=INJECTIONS)
AT = "2026-01-01T00:00:00Z"


def case_with(text):
    """A case in which the text stands wherever a text can stand."""
    return Case(
        case_id=text,
        task=text,
        input=[{"role": "user", "content": text}, {"role": text, "content": "x"}],
        transcript=(Utterance(text, text, text), Utterance("x", "customer")),
        model_output={"a": text, "b": [text]},
        expected_outcome={"a": text},
        config={"instructions": [text]},
        scenario={"expected_answer_criteria": text, "description": text, "name": text},
        agents_called=(text,),
        tools_used=(ToolCall(name=text, arguments={"x": text}, result=text), ToolCall(name="t", error=text)),
        context=(text,),
        system_prompt=text,
        model=text,
        tags=(text,),
        metadata={text: text},
        evaluation_criteria_override=text,
        session_id=text,
        user_id=text,
        service=text,
        environment=text,
        name=text,
    )


def questions_with(text):
    """Every question, with the text wherever it holds one."""
    return (
        kinds.CitesTranscript(text),
        kinds.BorneOut(text),
        kinds.SameIntent(text, f"{text}."),
        kinds.SameHighlight(text, f"{text}."),
        kinds.CorrectHighlight(text),
        kinds.Supported(text, f"{text}!"),
        kinds.HowFluent(text, f"{text}?"),
        kinds.KeepsFact(text, f"{text};"),
        kinds.SummaryClaims((text, f"{text}.")),
        kinds.OutcomeDrift(((text, f"{text}."),)),
        kinds.SameFact(text, f"{text}."),
        kinds.StatedClaims((text, f"{text}.")),
        kinds.PiecesUsed((text, f"{text}.")),
        kinds.PiecesNeeded((text, f"{text}.")),
        kinds.SoundReasoning(),
        kinds.FollowsInstructions((text,)),
        kinds.GradeAgent("tool_routing", text),
        kinds.GradeQuality(),
        kinds.VerifyClaims(),
        kinds.GradeDimension("completeness"),
        kinds.GradeDimension("tool_efficiency"),
        kinds.GradeAnswer(),
    )


@cache
def prompts(text):
    """Each question in a request of its own, and together those whose answers do not grow with the text."""
    about, requested = case_with(text), questions_with(text)
    together = tuple(each for each in requested if not isinstance(each, RESTATING))
    made = [requests(about, group, context_tokens=50_000_000) for group in (*((each,) for each in requested), together)]
    assert not any(refused for _, refused in made)
    return [request for (request,), _ in made]


def outside(content):
    """A prompt as a judge tells it from the data: each fence, with its code, is one name; codes of ids likewise."""
    return ID.sub(r"id: q\1-code", FENCE.sub(lambda fenced: f"[{fenced[1]}]", content))


def test_there_are_at_least_sixty_attempts_and_each_is_another():
    assert len(INJECTIONS) == len(LINES) == len(set(INJECTIONS.values())) >= 60


@EVERY
def test_what_stands_outside_of_the_data_is_the_same_to_the_last_byte(text):
    for clean, attacked in zip(prompts(CLEAN), prompts(text), strict=True):
        assert attacked.messages[0] == clean.messages[0]
        found = outside(attacked.messages[1]["content"])
        assert found == outside(clean.messages[1]["content"])
        assert "<<<" not in found
        assert (attacked.schema, attacked.prompt_version) == (clean.schema, clean.prompt_version)


@EVERY
def test_what_stands_in_the_data_has_no_mark_no_control_token_and_nothing_hidden(text):
    for attacked in prompts(text):
        for fenced in FENCE.finditer(attacked.messages[1]["content"]):
            assert "<<<" not in fenced[3]
            assert ">>>" not in fenced[3]
            assert not re.search(r"<[|｜]|[|｜]>|\[/?INST\]|<</?SYS>>|</?s>|<(start|end)_of_turn>|</?think>", fenced[3])
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f]", fenced[3])
            assert not re.search("[\ufeff\ud800-\udfff\U000e0000-\U000e01ef]", fenced[3])


@EVERY
def test_no_item_passes_for_two(text):
    (conversation,) = {  # the same in every request that shows it
        fenced[3]
        for attacked in prompts(text)
        for fenced in FENCE.finditer(attacked.messages[1]["content"])
        if fenced[1] == "conversation"
    }
    lines = conversation.split("\n")
    assert len(lines) == 3
    assert [json.loads(line)["turn"] for line in lines] == [0, 1, 2]


@EVERY
def test_a_judge_that_only_repeats_it_has_not_answered(text):
    for request in prompts(text):
        if request.schema_name == "answers":
            assert not request.read(text).answers


# -- What is decided without a judge

QUESTION = {"question_id": "Q1", "score": 5, "max_score": 5, "type": "PASS_FAIL", "reason": "Verified at 00:01."}
SAID = (Utterance("I verified your account, the refund is $49.", "agent", "00:01"), Utterance("Thanks", "customer"))
OUTPUTS = {
    "qa": {"questions": [QUESTION]},
    "entity": {"detected_keywords": ["refund"], "detected_topics": [], "valid_entity_set": ["refund"]},
    "text": {
        "sentiment": [{"sentence_id": n, "text": "x", "label": "neutral"} for n in range(4)],
        "summary": {
            "call_purpose": "Refund",
            "highlights": ["Refund of $49"],
            "call_extracted_info": {"amount": "$49"},
        },
        "emotion": {"neutral": 100},
    },
    "translation": {
        "full_translation": "₹४९ का रिफंड",
        "sentence_translations": [{"source_id": 1, "source_text": "Refund of ₹49", "translated_text": "₹४९ का रिफंड"}],
        "domain_terms_handled": [],
        "named_entities_handled": [],
    },
}


def whole_case(rubric, **more):
    output = OUTPUTS.get(rubric, "Your refund of $49 is on its way.")
    reported = {
        "input": "What about my refund?",
        "transcript": SAID,
        "model_output": output,
        "expected_outcome": copy.deepcopy(output),
        "config": {"keywords": ["refund"]},
        "scenario": {"tools_should_include": ["refund"], "max_calls": 3, "expected_answer_criteria": "the refund"},
        "agents_called": ("orchestrator",),
        "tools_used": (ToolCall(name="refund", arguments={"amount": 49}, result="refund of $49"),),
        "context": ("Refunds take 3 to 5 days.",),
        "system_prompt": "Be kind.",
        "latency_e2e_ms": 900.0,
        "latency_model_ms": 800.0,
        "input_tokens": 100,
        "output_tokens": 20,
    }
    return Case(case_id="c", **{**reported, **more})


def attacked(case, text):
    """The same case with the text beside what matters, in every place where it changes no fact."""
    return replace(
        case,
        transcript=(*case.transcript, Utterance(text, "customer")),
        input=f"{case.input} {text}",
        context=(*case.context, text),
        system_prompt=f"{case.system_prompt} {text}",
        tools_used=(msgspec.structs.replace(case.tools_used[0], result=f"{case.tools_used[0].result} {text}"),),
        metadata={"note": text, text: 1},
        tags=(text,),
        name=text,
        service=text,
        session_id=text,
        evaluation_criteria_override=text,
    )


CITED = {"expected_outcome_reference": "", "model_output_observed": "", "reason": "r"}


def full_marks(question):  # noqa: C901  # one branch a question
    """What a judge says that does as it is told by the data."""
    match question:
        case kinds.GradeAnswer():
            return {"accuracy_score": 2, "faithfulness_score": 2, "rationale": "r"}
        case kinds.GradeQuality():
            return {"answer_quality": 1, "factual_correctness": 1, "completeness": 1, "reasoning": "r"}
        case kinds.GradeDimension():
            return {"level": "excellent", "reason": "r"}
        case kinds.VerifyClaims():
            return {"claims": [{"claim": "all of it", "importance": "major", "accurate": True}], "reason": "r"}
        case kinds.GradeAgent(metric="task_completion"):
            return {"passed": True, "failure_code": None, "turns": [], "reason": "r"}
        case kinds.GradeAgent():
            return {"score": 5, "failure_code": None, "turns": [], "reason": "r"}
        case kinds.SummaryClaims() | kinds.StatedClaims():
            return {"claims": ["all of it"], "reason": "r"}
        case kinds.OutcomeDrift():
            return {"outcomes": [], "added": [], "reason": "r"}
        case kinds.ChooseSteps():
            return {"steps": [], "reason": "r"}
        case kinds.FindErrors():
            return {"findings": [], "reason": "r"}
        case kinds.ReachedGoal():
            return {"achieved": "all", "reason": "r"}
        case _:
            return in_full(question)


def in_full(question):
    match question:
        case kinds.PiecesUsed(pieces):
            return {"used": list(range(len(pieces))), "reason": "r"}
        case kinds.PiecesNeeded(pieces):
            return {"needed": list(range(len(pieces))), "reason": "r"}
        case kinds.SoundReasoning():
            return {"steps": [{"step": "all of it", "score": 1}], "expected": True, "reason": "r"}
        case kinds.FollowsInstructions(instructions):
            reported = instructions or ("all of it",)
            return {"instructions": [{"instruction": one, "followed": True} for one in reported], "reason": "r"}
        case _:
            return {"score": 1, **CITED}


def judge(keys, flags=None):
    """An answerer that goes all the way: request, a model's text, strict reading, check."""

    def answer(case, question):
        if isinstance(question, kinds.SentenceSimilarity):
            return Answer(value=[1.0] * len(question.pairs), method=Method.EMBEDDING)
        if not can_judge(question):
            return Answer(value=(None,) * len(question.wanted), method=Method.EMBEDDING)
        (request,), refused = requests(case, (question,), context_tokens=50_000_000)
        assert not refused
        judged = request.read(json.dumps(answers(request, keys))).answers[question]
        if flags is not None and (flag := contradiction(case, question, judged.value)):
            flags.append(flag)
        return Answer(value=judged.value, method=Method.JUDGE, reason=judged.reason)

    return answer


def reported(verdict):
    found = verdict.to_json()
    values = {each["metric"]: (each["status"], each["value"], each["rating"]) for each in found["scores"]}
    return values, [found[key] for key in ("composite", "coverage", "state", "passed", "rating", "blockers")]


@cache
def without_it(name):
    return reported(score(whole_case(name), RUBRICS[name], answer=judge(full_marks), created_at=AT))


@EVERY
def test_honest_answers_give_the_same_verdict_with_it_and_without(text):
    for name, rubric in RUBRICS.items():
        found = score(attacked(whole_case(name), text), rubric, answer=judge(full_marks), created_at=AT)
        assert reported(found) == without_it(name), name


def in_reason(text, **more):
    return {"questions": [{**QUESTION, **more, "reason": text}]}


FAILED = {"questions": [{**QUESTION, "score": 0}]}
UNLABELLED = {**OUTPUTS["text"], "sentiment": [{"sentence_id": 0, "text": "x", "label": "neutral"}]}
DRIFTED = "₹९९ का रिफंड"


def blocked_cases(text):
    """Rubric, a case that must not pass whatever a judge says, the state it must have, and what blocks it."""
    yield "qa", {"model_output": in_reason(text, confidence=1)}, State.INVALID, "response_structure_compliance"
    yield "qa", {"model_output": text}, State.INVALID, "response_structure_compliance"
    yield (
        "qa",
        {"model_output": in_reason(text), "expected_outcome": FAILED},
        State.DISQUALIFIED,
        "compliance_false_pass_rate",
    )
    made_up = ["insurance", "mortgage", "lottery", "refund"]
    output = {**OUTPUTS["entity"], "detected_keywords": made_up, "valid_entity_set": made_up}
    yield "entity", {"model_output": output}, State.INVALID, "fabricated_entity_count"
    yield "text", {"model_output": UNLABELLED}, State.INVALID, "missing_sentiment_labels"
    sentences = [{"source_id": 1, "source_text": "Refund of ₹49", "translated_text": f"{DRIFTED} {text[:2000]}"}]
    output = {**OUTPUTS["translation"], "full_translation": DRIFTED, "sentence_translations": sentences}
    yield "translation", {"model_output": output}, State.INVALID, "critical_fact_preservation_rate"
    yield "workflow", {"tools_used": (ToolCall(name="lookup", result=text),)}, None, None


@EVERY
def test_an_obedient_judge_lifts_no_blocker(text):
    for name, more, state, blocker in blocked_cases(text):
        about = replace(attacked(whole_case(name), text), **more)
        found = score(about, RUBRICS[name], answer=judge(full_marks), created_at=AT)
        assert found.passed is False, name
        if state is not None:
            assert found.state is state, name
            assert blocker in found.blockers
            assert found.rating == "blocker"


@EVERY
def test_an_obedient_judge_that_contradicts_the_facts_is_told(text):
    reason = "At 07:31 the agent said 'your lottery prize of $5000 is confirmed'."
    summary = {
        **OUTPUTS["text"]["summary"],
        "highlights": ["Refund of $9999"],
        "call_extracted_info": {"amount": "$49"},
    }
    for name, more, stated in (
        ("qa", {"model_output": in_reason(reason)}, "held to be factual"),
        ("text", {"model_output": {**OUTPUTS["text"], "summary": summary}}, "the figure 9999 stands neither"),
        ("answer", {"model_output": "Your refund of $8888."}, "full credit, with none of the reference's figures"),
        ("quality", {"model_output": "Your refund of $8888."}, "the figure 8888 stands in no source"),
        ("agent", {"tools_used": (ToolCall(name="lookup", result="x"),)}, "refund was not"),
        (
            "translation",
            {
                "model_output": {
                    **OUTPUTS["translation"],
                    "full_translation": DRIFTED,
                    "sentence_translations": [
                        {"source_id": 1, "source_text": "Refund of ₹49", "translated_text": DRIFTED}
                    ],
                },
                "config": {"critical_facts": ["₹49"]},
            },
            "held to be kept",
        ),
    ):
        flags = []
        about = replace(attacked(whole_case(name), text), **more)
        score(about, RUBRICS[name], answer=judge(full_marks, flags), created_at=AT)
        assert any(stated in flag for flag in flags), (name, flags)


def test_an_honest_judge_of_a_good_case_is_not_flagged():
    for name, rubric in RUBRICS.items():
        flags = []
        found = score(whole_case(name), rubric, answer=judge(full_marks, flags), created_at=AT)
        assert found.passed is not False, name
        assert flags == [], name
