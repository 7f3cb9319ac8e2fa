"""Metrics of ragas as functions of a case. Those that need no model of their own answer here."""

from ragas.messages import AIMessage, ToolCall
from ragas.metrics.collections import NonLLMStringSimilarity, ToolCallF1

from sidejudge import Case, NotApplicable, Unavailable

SIMILARITY, TOOLS = NonLLMStringSimilarity(), ToolCallF1()


def similarity(case: Case):
    """How alike answer and reference are, letter by letter."""
    if not isinstance(case.model_output, str) or not isinstance(case.expected_outcome, str):
        return Unavailable("answer or reference is no text")
    return SIMILARITY.score(reference=case.expected_outcome, response=case.model_output).value


def tool_call_f1(case: Case):
    """F1 of the calls that were made against those that `metadata.expected_tools` names, arguments included."""
    expected = case.metadata.get("expected_tools")
    if not isinstance(expected, list):
        return NotApplicable("the trace names no expected_tools")
    made = [ToolCall(name=call.name, args=call.arguments or {}) for call in case.tools_used or ()]
    wanted = [ToolCall(name=call["name"], args=call.get("arguments", {})) for call in expected]
    return TOOLS.score(user_input=[AIMessage(content="", tool_calls=made)], reference_tool_calls=wanted).value
