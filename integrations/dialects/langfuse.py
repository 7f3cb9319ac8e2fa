"""Langfuse SDK, versions 3 to 5, with its OpenAI wrapper and its LangChain handler.

An observation is a span with ``langfuse.observation.*``. The agent is the span's name, or in LangGraph the
``lc_agent_name`` that travels in the metadata. Inputs and outputs are text, or JSON where they were not text.
"""

from __future__ import annotations

from sidejudge.integrations.raw import AttributeValue, RawSpan
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind

from . import langgraph_nodes, messages, unwrap
from .fields import Fields, text, value
from .model_call import from_details, real, sole_reason
from .reading import Dialect, SpanReading, failure, worded
from .span_fields import SpanFields
from .unwrap import Content, as_text

NAME = "langfuse"
SWITCH = "LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true, or capture_input and capture_output of @observe"

_KINDS = {
    "generation": SpanKind.LLM, "agent": SpanKind.AGENT, "tool": SpanKind.TOOL, "chain": SpanKind.CHAIN,
    "span": SpanKind.CHAIN, "retriever": SpanKind.RETRIEVER, "embedding": SpanKind.EMBEDDING,
    "evaluator": SpanKind.EVALUATOR, "guardrail": SpanKind.GUARDRAIL,
}  # fmt: skip
_IN, _OUT = "langfuse.observation.input", "langfuse.observation.output"
_PATH, _NODE = "langfuse.observation.metadata.langgraph_checkpoint_ns", "langfuse.observation.metadata.langgraph_node"
_OF_RESPONSES = frozenset({"instructions", "tools", "tool_choice", "parallel_tool_calls"})
"""What a request to OpenAI's Responses has beside its input."""
_BLOCKS = ("text", "tool_use", "thinking", "redacted_thinking")
"""The types of Anthropic's parts of an answer."""
_SYSTEM = ("instructions", "system")
"""Where OpenAI's Responses and Anthropic have a system prompt."""
_INSTRUCTIONS, _STATUS = "langfuse.observation.metadata.instructions", "langfuse.observation.metadata.status"
"""What the SDK for JavaScript keeps of an answer of OpenAI's Responses; of the request it keeps no instructions."""
_OTHERS = ("gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.request.model", "openinference.span.kind")
"""Other clients' attributes that name the kind of a step."""


_OF_BURR = "burr.integrations.langfuse"


def speaks(raw: RawSpan) -> bool:
    """Whether the span is an observation of Langfuse.

    Trace attributes and environments do not show it: the SDK puts them on other libraries' spans too. Nor do inputs and
    outputs beside another client's own attributes (``_OTHERS``), which describe the step better.
    """
    if "langfuse.observation.type" in raw.attributes or raw.scope_name == "langfuse-sdk":
        return True
    held = _IN in raw.attributes or _OUT in raw.attributes
    return held and not any(key in raw.attributes for key in _OTHERS)


def normalise(raw: RawSpan) -> Span:
    """An observation in normal form."""
    reading = SpanReading(raw)
    kind = _kind(reading)
    named = reading.value("agent", "langfuse.observation.metadata.lc_agent_name", "gen_ai.agent.name")
    agent = as_text(unwrap.decoded(named, scalars=True))
    if agent is None and kind is SpanKind.AGENT:
        kind, agent = _run(reading)
    elif _PATH in reading.attributes:
        agent = _graph(reading, kind, agent)
    requested, answered = _contents(reading)
    error = _error(reading)
    fields: SpanFields = {"agent": agent, "error": error}
    fields |= _FIELDS.read(reading)
    if requested is None and answered is None and kind in {SpanKind.LLM, SpanKind.TOOL, SpanKind.AGENT}:
        fields["capture_switch"] = SWITCH
    elif unwrap.without_texts(requested) or unwrap.without_texts(answered):
        fields["capture_switch"] = unwrap.LITELLM_SWITCH
    if kind is SpanKind.TOOL:
        fields |= _tool(reading, error)
    elif kind is SpanKind.LLM:
        fields |= _generation(reading)
    else:
        fields |= {
            "input": messages.stated_in(unwrap.task(_argument(requested)), "user"),
            "output": messages.stated_in(unwrap.answer(answered), "assistant"),
        }
        if kind is SpanKind.RETRIEVER and answered is not None:
            fields["documents"] = unwrap.documents(answered)
        if kind is SpanKind.CHAIN and (reason := sole_reason(reading.attributes.get(_OUT))) is not None:
            fields["finish_reason"] = reason  # of the call below, from whose span LangChain's handlers leave it out
            reading.note("finish_reason", _OUT)
    if error is not None and _raised(answered, error):
        fields |= {"output": None, "output_messages": ()}
    return reading.span(NAME, kind, **fields)


def _kind(reading: SpanReading) -> SpanKind:
    """The kind by the type of the observation; a step of Burr's has none, which Langfuse calls a span."""
    stated = reading.text("kind", "langfuse.observation.type")
    if stated is None and reading.raw.scope_name == _OF_BURR:
        reading.note("kind", "scope")
        return SpanKind.CHAIN
    return _KINDS.get((stated or "").lower(), SpanKind.OTHER)


def _contents(reading: SpanReading) -> tuple[Content, Content]:
    """What a step was given and returned; an action of Burr's beside the state of the application, or as a part of it.

    A run of Burr's is given the state alone, which ends with the answer to an earlier request.
    """
    given: Content = reading.value("input", _IN)
    returned: Content = reading.value("output", _OUT)
    if reading.raw.scope_name != _OF_BURR:
        return given, returned
    held, made = unwrap.entries(given), unwrap.entries(returned)
    asked: Json = (held["inputs"] or None) if held.keys() == {"inputs", "state"} else None
    stated: Json = (made["result"] or made["state"] or None) if made.keys() == {"result", "state"} else made or None
    for field, found in (("input", asked), ("output", stated)):
        if found is None:
            reading.provenance.pop(field, None)
    return asked, stated


def _run(reading: SpanReading) -> tuple[SpanKind, str | None]:
    """An agent by its span's name, unless that is a step of LangGraph: all with *agent* in their names are typed so."""
    name, path = reading.raw.name, reading.attributes.get(_PATH)
    if path is None or name not in {langgraph_nodes.NODE, *langgraph_nodes.OWN_STEPS}:
        return SpanKind.AGENT, reading.span_name("agent")
    if name in langgraph_nodes.OWN_STEPS:
        return SpanKind.CHAIN, None
    graph = langgraph_nodes.graph(unwrap.decoded(path, scalars=True))
    reading.note("agent", "langfuse.observation.output: name, or the checkpoint namespace")
    return SpanKind.CHAIN, langgraph_nodes.speaker(reading.attributes.get(_OUT)) or graph or name


def _graph(reading: SpanReading, kind: SpanKind, named: str | None) -> str | None:
    path, node = (unwrap.decoded(reading.attributes.get(key), scalars=True) for key in (_PATH, _NODE))
    state = reading.attributes.get(_IN) if kind is not SpanKind.TOOL else None
    agent = langgraph_nodes.own_name(named, reading.raw.name, node, path, state)
    if agent is None and reading.raw.name == node == langgraph_nodes.NODE:
        agent = langgraph_nodes.graph(path)  # the SDK for JavaScript types no node as an agent
    if agent != named:
        reading.note("agent", "span name") if agent else reading.provenance.pop("agent", None)
    return agent


def _generation(reading: SpanReading) -> SpanFields:
    requested = messages.read(_request(unwrap.decoded(_argument(reading.value("input", _IN)))))
    raw_answer = reading.value("output", _OUT)
    answered = messages.read(_answer(unwrap.decoded(raw_answer)))
    fields = messages.asked(requested) | messages.answered(answered)
    fields["input"] = fields["input"] or unwrap.task(reading.value("input", _IN))
    if fields["system_prompt"] is None and _STATUS in reading.attributes:
        fields["system_prompt"] = as_text(unwrap.decoded(reading.value("system_prompt", _INSTRUCTIONS), scalars=True))
    if not answered:  # a streamed answer is bare text
        fields["output"] = text = unwrap.answer(raw_answer)
        fields["output_messages"] = (Message(role="assistant", text=text),) if isinstance(text, str) else ()
    return fields


def _request(body: Json) -> Json:
    """A request to a model, with what is beside its messages, and with its only message where it is a text."""
    if not isinstance(body, dict):
        return body
    found: Json = body
    if isinstance(asked := body.get("input"), str) and not _OF_RESPONSES.isdisjoint(body):
        found = {**body, "input": [{"role": "user", "content": asked}]}
    system = next((body[key] for key in _SYSTEM if body.get(key)), None)
    return found if system is None else [{"role": "system", "content": system}, found]


def _answer(given: Json) -> Json:
    """An answer, whose content alone is what Anthropic's clients have at hand."""
    if not isinstance(given, list) or not given:
        return given
    blocks = all(isinstance(part, dict) and part.get("type") in _BLOCKS for part in given)
    return {"role": "assistant", "content": given} if blocks else given


def _argument(given: Content) -> Content:
    """The messages among a function's arguments, as ``@observe`` sends these; a history ends with an answer."""
    if isinstance(given, str) and '"kwargs"' not in given:
        return given
    call = unwrap.decoded(given)
    if isinstance(call, dict) and call.keys() == {"args", "kwargs"}:
        args, kwargs = call["args"], call["kwargs"]
        listed = args if isinstance(args, list) else []
        named = [*kwargs.values()] if isinstance(kwargs, dict) else []
        for each in (*listed, *named):
            if isinstance(each, list | dict) and (found := messages.read(each)) and found[-1].role != "assistant":
                return each
    return given


def _tool(reading: SpanReading, error: str | None) -> SpanFields:
    returned = reading.value("tool.result", _OUT)
    named = reading.value("tool.call_id", "langfuse.observation.metadata.tool_call_id", "gen_ai.tool.call.id")
    call_id = as_text(unwrap.decoded(named, scalars=True))
    name = reading.span_name("tool.name")
    return reading.tool_run(name, reading.value("tool.arguments", _IN), returned, error=error, call_id=call_id)


def _error(reading: SpanReading) -> str | None:
    """The status is an error, or the observation's level is ERROR."""
    if (failed := failure(reading.raw)) is not None:
        return failed
    if reading.attributes.get("langfuse.observation.level") != "ERROR":
        return None
    stated = reading.text("error", "langfuse.observation.status_message")
    return "error" if stated is None else worded(stated)


def _raised(answered: Content, error: str) -> bool:
    """Whether a failed step's output is what it raised, as ``observe`` of the SDK for JavaScript states it."""
    stated = unwrap.decoded(answered)
    return isinstance(stated, dict) and stated.keys() == {"error"} and str(stated["error"]).endswith(error)


def _cost(given: AttributeValue) -> float | None:
    details = unwrap.entries(given)
    if (total := real(details.get("total"))) is not None:
        return total
    parts = [part for value in details.values() if (part := real(value)) is not None]
    return sum(parts) if parts else None


_FIELDS = Fields(
    model=text("langfuse.observation.model.name", "gen_ai.response.model"),
    usage=value("langfuse.observation.usage_details", read=lambda details: from_details(unwrap.decoded(details))),
    cost_usd=value("langfuse.observation.cost_details", read=_cost),
    response_id=text("gen_ai.response.id"),
    trace_input=value("langfuse.trace.input", read=unwrap.task),
    trace_output=value("langfuse.trace.output", read=unwrap.answer),
)
DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)
