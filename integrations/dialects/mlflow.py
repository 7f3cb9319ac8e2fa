"""MLflow: every attribute is JSON, ``mlflow.spanInputs`` and ``mlflow.spanOutputs`` hold input and output.

A model call's are the request and the response as the API has them. MLflow can translate its spans to the GenAI
conventions when it exports them; then inputs and outputs of chains are lost.
"""

from __future__ import annotations

import re
from typing import Final

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Json, Span, SpanKind, Usage

from . import genai, messages, pydantic_messages, unwrap
from .model_call import from_details, real, usage, whole
from .openinference_frameworks import agent_answer
from .reading import Dialect, SpanReading
from .span_fields import SpanFields
from .unwrap import as_text

NAME = "mlflow"
SWITCH = "MLFLOW_ENABLE_OTEL_GENAI_SEMCONV=false"

_KINDS = {
    "LLM": SpanKind.LLM, "CHAT_MODEL": SpanKind.LLM, "AGENT": SpanKind.AGENT, "TOOL": SpanKind.TOOL,
    "RETRIEVER": SpanKind.RETRIEVER, "RERANKER": SpanKind.RETRIEVER, "EMBEDDING": SpanKind.EMBEDDING,
    "GUARDRAIL": SpanKind.GUARDRAIL, "EVALUATOR": SpanKind.EVALUATOR, "UNKNOWN": SpanKind.OTHER,
}  # fmt: skip
"""By span type; those that are not listed (CHAIN, WORKFLOW, TASK, PARSER, …) are steps."""
_RUNNER: Final = "mlflow.openai.agent_run_root"
"""Marks the span of the OpenAI Agents SDK's runner, which MLflow calls an agent too."""
_NAME: Final = "name"
"""What the object of an agent or a tool calls itself, where MLflow records its attributes."""
_CLASS: Final = "agent_name"
"""Where smolagents states the class of an agent."""
_CALLED: Final = {"sanitize_inputs_outputs", "kwargs"}
"""What a tool of smolagents is given: the arguments beside a switch."""
_RUN: Final = {"output", "_state"}
"""Beside these stands what else Pydantic AI knows of a run."""
_STREAMING: Final = "{'_all_messages': "
"""How a run of Pydantic AI's is printed that is not over, because its answer is streamed."""
_STEPS: Final = "trajectory"
"""Where DSPy puts the steps of an agent, beside its answers."""
_SETTING: Final = {"output_type"}
"""All that an agent of that SDK seems to return: what its answers are to be."""
_ASKED, _EVENT, _ACTING = "user_msg", "ev", "current_agent_name"
"""The question of a workflow of LlamaIndex's agents, what a step of one is given, and whose turn it is."""
_HELPER: Final = re.compile(r"\._(?!_)")
"""A private method of LlamaIndex's models, which calls none; DSPy calls its own with ``LM.__call__``."""
_CLAUDE: Final = "claude_code_conversation"
"""The span of a conversation with Claude Code or an agent of its SDK, which is no agent's name."""
_TOOL_NAME, _TOOL_ID = "tool_name", "tool_id"
"""What a tool of theirs is called, and the id of the call; the span's name has ``tool_`` before it."""
_FORMAT: Final = "mlflow.message.format"
_TYPE, _IN, _OUT = "mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"


def speaks(raw: RawSpan) -> bool:
    """Whether MLflow made the span, in its own words or translated; it adds its words to spans of others too."""
    own = _TYPE in raw.attributes or _IN in raw.attributes
    return raw.scope_name.startswith("mlflow.") or (own and "gen_ai.operation.name" not in raw.attributes)


def normalise(raw: RawSpan) -> Span:
    """An MLflow span in normal form."""
    if _TYPE not in raw.attributes and "gen_ai.operation.name" in raw.attributes:
        return genai.normalise(raw, name=NAME, switch=SWITCH)
    reading = SpanReading(raw)
    kind = _KINDS.get(str(unwrap.from_json(reading.value("kind", _TYPE)) or "UNKNOWN").upper(), SpanKind.CHAIN)
    if kind is SpanKind.LLM and _HELPER.search(raw.name):
        kind = SpanKind.CHAIN
    given, returned = unwrap.from_json(reading.value("input", _IN)), _returned(reading)
    fields: SpanFields = {
        "input": messages.last_content(_task(given), "user"),
        "output": messages.last_content(unwrap.answer(returned), "assistant"),
        "usage": _usage(reading, returned),
        "cost_usd": _cost(reading),
    }
    if kind is SpanKind.LLM:
        fields |= _call(reading, given, returned)
    elif kind is SpanKind.TOOL:
        fields |= _tool(reading, given, returned)
    elif kind is SpanKind.AGENT and _RUNNER in raw.attributes:
        kind = SpanKind.CHAIN
    elif kind is SpanKind.AGENT and not (isinstance(given, dict) and _ASKED in given) and raw.name != _CLAUDE:
        fields["agent"] = _of_autogen(reading, given) or _own_name(reading, "agent")
    elif kind is SpanKind.RETRIEVER and returned is not None:
        fields["documents"] = unwrap.documents(returned)
    for named, source in ((_of_langchain(raw), "metadata.lc_agent_name"), (_acting(given), f"{_IN}: {_ACTING}")):
        if "agent" not in fields and named is not None:
            fields["agent"] = named
            reading.note("agent", source)
    return reading.span(NAME, kind, **fields)


def _own_name(reading: SpanReading, field: str) -> str | None:
    """The object's own name, else its class as smolagents states it, else the span's; None where it has none."""
    own = reading.value(field, _NAME if _NAME in reading.attributes else _CLASS)
    return reading.span_name(field) if own is None else as_text(unwrap.from_json(own))


def _of_autogen(reading: SpanReading, given: Json) -> str | None:
    """AutoGen's agent, whose method a span is; runs of smolagents, which are given a task too, state their class."""
    named, _, method = reading.raw.name.rpartition(".")
    run = method == "run" and "task" in _map(given) and _CLASS not in reading.attributes
    if not (run or method == "on_messages") or _NAME in reading.attributes:
        return None
    reading.span_name("agent")
    return named


def _tool(reading: SpanReading, given: Json, returned: Json) -> SpanFields:
    """The fields of a tool; the one by which Claude Code runs another agent names that agent."""
    if isinstance(given, dict) and given.keys() == _CALLED:
        given = given["kwargs"]
    named = as_text(unwrap.from_json(reading.attributes.get(_TOOL_NAME)))
    if named is None or reading.raw.name != f"tool_{named}":
        return reading.tool_run(_own_name(reading, "tool.name") or reading.raw.name, given, returned)
    reading.note("tool.name", _TOOL_NAME)
    call_id = as_text(unwrap.from_json(reading.value("tool.call_id", _TOOL_ID)))
    fields = reading.tool_run(named, given, returned, call_id=call_id)
    fields["tool"], agent = messages.delegated(fields["tool"])
    if agent is not None:
        fields["agent"] = agent
        reading.note("agent", f"{_IN}: subagent_type")
    return fields


def _returned(reading: SpanReading) -> Json:
    """The output without what else a run of Pydantic AI or DSPy holds; None for the setting in place of an answer."""
    returned = unwrap.from_json(reading.value("output", _OUT))
    if isinstance(returned, dict) and _STEPS in returned:
        answers = [value for key, value in returned.items() if key not in (_STEPS, "reasoning")]
        return answers[0] if len(answers) == 1 else returned
    if isinstance(returned, dict) and returned.keys() >= _RUN:
        return returned["output"]
    match returned:
        case {"result": {"response": dict() as answer, "current_agent_name": _}}:
            return answer
        case {"messages": [*stated], "stop_reason": _}:
            return next((found for each in reversed(stated) if (found := agent_answer(each)) is not None), None)
        case {"chat_message": dict() as stated, "inner_messages": _}:
            return agent_answer(stated)
        case {"status": "completed"} if reading.raw.name == _CLAUDE:
            return _map(returned).get("response", "")  # left out where it is empty
    unknown = isinstance(returned, str) and returned.startswith(_STREAMING)
    return None if unknown or (isinstance(returned, dict) and returned.keys() == _SETTING) else returned


def _of_langchain(raw: RawSpan) -> str | None:
    """The agent of a LangChain step, from the step's metadata."""
    held = raw.attributes.get("metadata")
    return as_text(unwrap.entries(held).get("lc_agent_name")) if held and "lc_agent_name" in str(held) else None


def _acting(given: Json) -> str | None:
    """The agent whose step this is, in a workflow of LlamaIndex's."""
    return as_text(_map(_map(given).get(_EVENT)).get(_ACTING))


def _task(given: Json) -> Json:
    """The input of a function is its arguments by name: the text, where it is the only one."""
    if isinstance(given, dict) and given.get(_ASKED):
        return given[_ASKED]
    match given:
        case {"messages": [*_, {"source": str(), "content": asked}], "cancellation_token": _}:
            return asked
        case {"task": {"source": str(), "content": asked} | [*_, {"source": str(), "content": asked}]}:
            return asked
    if isinstance(given, dict) and isinstance(text := unwrap.only_text(given), str):
        return text
    return unwrap.task(given)


def _call(reading: SpanReading, given: Json, returned: Json) -> SpanFields:
    form = unwrap.from_json(reading.attributes.get(_FORMAT))
    by_pydantic = form == "pydantic_ai"
    if form == "autogen" and isinstance(returned, dict):
        returned = {**returned, "role": "assistant"}  # its replies do not name their role
    read = pydantic_messages.read if by_pydantic else messages.read
    requested, answered = read(given), read(returned)
    request, response = _map(given), _map(returned)
    if by_pydantic:
        response = {"model": response.get("model_name"), "id": response.get("provider_response_id")}
    model = as_text(response.get("model")) or as_text(unwrap.from_json(reading.value("model", "mlflow.llm.model")))
    for field, source, held in (("requested_model", _IN, request), ("model", _OUT, response)):
        if held.get("model"):
            reading.note(field, source)
    if response.get("id"):
        reading.note("response_id", _OUT)
    return {
        **(messages.asked(requested) if by_pydantic else {}),
        **(messages.answered(answered) if by_pydantic or answered else {}),
        "input_messages": requested,
        "output_messages": answered,
        "system_prompt": messages.system_text(requested) or as_text(request.get("instructions")),
        "requested_model": as_text(request.get("model")),
        "model": model,
        "response_id": as_text(response.get("id")),
    }


def _usage(reading: SpanReading, returned: Json) -> Usage | None:
    """The response's own usage, whose words are the provider's; else MLflow's, whose input includes cached tokens."""
    if (found := from_details(_map(returned).get("usage"))) is not None:
        reading.note("usage", f"{_OUT}: usage")
        return found
    counts = _map(unwrap.from_json(reading.value("usage", "mlflow.chat.tokenUsage")))
    return usage(
        whole(counts.get("input_tokens")), whole(counts.get("output_tokens")),
        whole(counts.get("cache_read_input_tokens")), None,
    )  # fmt: skip


def _cost(reading: SpanReading) -> float | None:
    return real(_map(unwrap.from_json(reading.value("cost_usd", "mlflow.llm.cost"))).get("total_cost"))


def _map(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)
