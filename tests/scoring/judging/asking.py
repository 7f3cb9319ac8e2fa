"""A case for every question, and honest answers in the form that a judge would give them."""

from __future__ import annotations

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.judging.layout import form_for
from sidejudge.scoring.questions import kinds
from sidejudge.scoring.trace.span import ToolCall

CASE = Case(
    case_id="c",
    input="What about my refund?",
    model_output="Your refund of $49 is on its way.",
    transcript=(Utterance("I verified your account", "agent", "00:01"), Utterance("Thank you", "customer", "00:09")),
    expected_outcome={"summary": "Refund of $49"},
    context=("Refunds take 3 to 5 days.",),
    tools_used=(ToolCall(name="refund", arguments={"amount": 49}, result="ok"),),
    system_prompt="Be kind.",
    config={"target_language": "hi"},
)
CITED = {"expected_outcome_reference": "", "model_output_observed": "", "reason": "Because."}
FOUND = {"category": "reasoning", "evidence": "Made up.", "quotation": "It is 40", "impact": "high"}
HONEST = {
    kinds.CitesTranscript("Agent verified at 00:01"): ({"score": 1, **CITED}, True),
    kinds.BorneOut("Agent verified at 00:01"): ({"score": 0, **CITED}, False),
    kinds.SameIntent("Refund", "Billing"): ({"score": 0.5, **CITED}, 0.5),
    kinds.SameHighlight("Refund of $49", "He gets $49 back"): ({"score": 1, **CITED}, True),
    kinds.CorrectHighlight("Refund of $49"): ({"score": 1, **CITED}, True),
    kinds.Supported("Priya", "customer_name"): ({"score": 0, **CITED}, False),
    kinds.HowFluent("एजेंट ने", "hi"): ({"score": 0.75, **CITED}, 0.75),
    kinds.KeepsFact("₹49", "₹४९ का रिफंड"): ({"score": 1, **CITED}, True),
    kinds.SummaryClaims(("Refund of $49 on Monday",)): (
        {"claims": ["Refund of $49", "It was Monday"], "reason": "Two."},
        ("Refund of $49", "It was Monday"),
    ),
    kinds.OutcomeDrift((("Escalated.", "Closed."),)): (
        {"outcomes": [{"outcome": "escalated", "kept": False}], "added": ["closed"], "reason": "Changed."},
        {"outcomes": [{"outcome": "escalated", "kept": False}], "added": ["closed"]},
    ),
    kinds.GradeAgent("tool_routing"): (
        {"score": 3, "failure_code": "wrong_tool", "turns": [1], "reason": "Wrong."},
        {"score": 3, "failure_code": "wrong_tool", "turns": [1], "reason": "Wrong."},
    ),
    kinds.GradeAgent("task_completion", "Tone"): (
        {"passed": True, "failure_code": None, "turns": [], "reason": "Done."},
        {"passed": True, "failure_code": None, "turns": [], "reason": "Done."},
    ),
    kinds.GradeQuality(): (
        {"answer_quality": 1, "factual_correctness": 0.95, "completeness": 0.0, "reasoning": "Short."},
        {"answer_quality": 1.0, "factual_correctness": 0.95, "completeness": 0.0, "reasoning": "Short."},
    ),
    kinds.VerifyClaims(): (
        {"claims": [{"claim": "$49", "importance": "major", "accurate": True}], "reason": "Right."},
        {"claims": [{"claim": "$49", "importance": "major", "accurate": True}]},
    ),
    kinds.GradeDimension("completeness"): (
        {"level": "good", "reason": "Nearly."},
        {"level": "good", "reason": "Nearly."},
    ),
    kinds.SameFact("Refund of $49", "He gets $49 back"): ({"score": 1, **CITED}, True),
    kinds.StatedClaims(("Refund of $49 on Monday",)): ({"claims": [], "reason": "None."}, ()),
    kinds.PiecesUsed(("Refunds take 3 to 5 days.", "We open at 9.", "$49 was charged twice.")): (
        {"used": [2, 0], "reason": "Two."},
        (True, False, True),
    ),
    kinds.PiecesNeeded(("Refunds take 3 to 5 days.", "We open at 9.", "$49 was charged twice.")): (
        {"needed": [], "reason": "None."},
        (False, False, False),
    ),
    kinds.SoundReasoning(): (
        {"steps": [{"step": "So it is on its way", "score": 0.5}], "expected": False, "reason": "Half."},
        {"steps": [{"step": "So it is on its way", "score": 0.5}], "expected": False},
    ),
    kinds.FollowsInstructions(("Be kind.",)): (
        {"instructions": [{"instruction": "Be kind.", "followed": True}], "reason": "Kind."},
        {"instructions": [{"instruction": "Be kind.", "followed": True}]},
    ),
    kinds.FollowsInstructions(None): ({"instructions": [], "reason": "None."}, {"instructions": []}),
    kinds.ChooseSteps("Find it", "1 llm m: -> so\n2 tool t: -> 40"): ({"steps": [2, 1, 2], "reason": "Odd."}, (2, 1)),
    kinds.FindErrors("Find it", "1 llm m: -> so", "=== step 1\nassistant: It is 40", (1,), 1): (
        {"findings": [{**FOUND, "step": 1}], "reason": "One."},
        {"findings": [{**FOUND, "step": "1", "cost": 0.5}]},
    ),
    kinds.ReachedGoal("Find it", "1 llm m: -> so", "=== step 1\nassistant: It is 40", (1,), 1): (
        {"achieved": "part", "reason": "Half."},
        "part",
    ),
    kinds.GradeAnswer(): (
        {"accuracy_score": 2, "faithfulness_score": 1, "rationale": "Close."},
        {"accuracy_score": 2, "faithfulness_score": 1, "rationale": "Close."},
    ),
}
"""What may be asked → the keys of an honest answer, and the value that it means."""


def answers(request, keys=lambda question: HONEST[question][0]):
    """The object that answers a request."""
    if isinstance(request.questions[0], kinds.GradeAnswer):
        return {**keys(request.questions[0])}
    return {
        "answers": [
            {"id": name, "metric": form_for(question).metric, **keys(question)}
            for name, question in zip(request.ids, request.questions, strict=True)
        ]
    }
