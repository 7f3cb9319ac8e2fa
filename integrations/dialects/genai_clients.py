"""Clients that keep to the GenAI conventions, and where each of them departs from these.

They send contents as their own settings say; Strands always sends them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from sidejudge.integrations.raw import AttributeValue, RawEvent, RawSpan
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, ToolCall, Usage

from . import genai, messages, pyrepr, unwrap
from .langgraph_nodes import NODE, UNNAMED
from .messages import CLAUDE_DELEGATES
from .model_call import usage
from .reading import Dialect, SpanReading
from .span_fields import SpanFields
from .unwrap import as_text


def _scope(prefix: str) -> Callable[[RawSpan], bool]:
    """Whether the name of a span's scope begins so."""
    return lambda raw: raw.scope_name.startswith(prefix)


# Semantic Kernel

_ADDED: Final = "instructions_override"
"""What Semantic Kernel adds to the arguments of an agent that is used as a function."""
_PROMPTED: Final = re.compile(r'\[(?:"\[\[Streaming)?(?:ChatMessage|Text)Content\(')
"""How what a model answered begins as what a function returned: as Python prints it."""


def _semantic_kernel(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A tool is called ``plugin-function``; the function is what the application calls it."""
    for field in ("input_messages", "output_messages"):
        fields[field] = tuple(_renamed(message) for message in fields[field])
    if (tool := fields.get("tool")) is not None:
        if tool.call_id is None and _is_prompt(tool.name, reading.attributes.get("gen_ai.tool.call.result")):
            del fields["tool"]
            fields["input"] = fields["output"] = None
            return SpanKind.CHAIN
        fields["tool"] = _own_name(tool)
        fields["input"] = fields["tool"].arguments
    if kind is SpanKind.OTHER:  # AutoFunctionInvocationLoop
        reading.note("kind", "scope")
        return SpanKind.CHAIN
    return kind


def _is_prompt(name: str, returned: AttributeValue) -> bool:
    """Whether a function that has no call's id is the application's own prompt, around the model call that answers it.

    One without a plugin is known to no model; of a plugin's, only what it returned shows it.
    """
    return "-" not in name or (isinstance(returned, str) and _PROMPTED.match(returned) is not None)


def _renamed(message: Message) -> Message:
    return replace(message, tool_calls=tuple(map(_own_name, message.tool_calls))) if message.tool_calls else message


def _own_name(call: ToolCall) -> ToolCall:
    """A plugin's name has no hyphen, so what follows the first one is the function's."""
    arguments = call.arguments
    if isinstance(arguments, dict) and arguments.get(_ADDED, ...) is None:
        arguments = {key: value for key, value in arguments.items() if key != _ADDED}
    return replace(call, name=call.name.partition("-")[2] or call.name, arguments=arguments)


SEMANTIC_KERNEL = genai.dialect(
    "semantic_kernel",
    _scope("semantic_kernel"),
    _semantic_kernel,
    switch="SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true",
    reads="Semantic Kernel: the GenAI conventions to 1.36, messages in log records with the body as JSON text.",
)


# Microsoft Agent Framework

_RESPONSE: Final = "resp_"
"""How OpenAI's ids of responses begin."""
_AGENT_FRAMEWORK, _AGENT_FRAMEWORK_SWITCH = "agent_framework", "ENABLE_SENSITIVE_DATA=true"


def _agent_framework(raw: RawSpan) -> Span:
    """Where OpenAI keeps the conversation, its id is the id of the response before, and no session's.

    An agent's span holds all messages of its run among those it put out; its answer is the last text of them.
    """
    span = genai.normalise(raw, name=_AGENT_FRAMEWORK, switch=_AGENT_FRAMEWORK_SWITCH)
    if span.session_id is not None and span.session_id.startswith(_RESPONSE):
        provenance = {field: source for field, source in span.provenance.items() if field != "session_id"}
        span = replace(span, session_id=None, provenance=provenance)
    return span


AGENT_FRAMEWORK = Dialect(
    name=_AGENT_FRAMEWORK,
    speaks=_scope("agent_framework"),
    by_names=True,
    normalise=_agent_framework,
    switch=_AGENT_FRAMEWORK_SWITCH,
    reads="Microsoft Agent Framework: the GenAI conventions on spans, and the older events in log records beside them.",
)


# OpenAI's agents


_OPENAI_AGENTS: Final = "opentelemetry.instrumentation.openai_agents"
"""The scope of OpenTelemetry's package, and of OpenLLMetry's, whose versions send one name of a provider each."""
_PROVIDER: Final = frozenset({"gen_ai.system", "gen_ai.provider.name"})
_OUT: Final = "gen_ai.output.messages"
_OBJECT: Final = re.compile(r"Response\w+\(|\{'id': '")


def _openai_agents(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Only an agent's own span names the right agent; others name one too, but the trace's, which never fails.

    What a model returned and is no text stands printed in the place of one: calls, empty messages, whole streams.
    """
    sent = reading.attributes.get(_OUT)
    if isinstance(sent, str) and _OBJECT.search(sent) and (found := messages.read(_unprinted(unwrap.decoded(sent)))):
        fields |= messages.answered(found)
    if fields["output_messages"] and not messages.hold_something(fields["output_messages"]):
        fields["output"] = ""
    if kind is SpanKind.AGENT and "gen_ai.agent.name" in reading.attributes:
        return kind
    reading.no_agent(fields)
    return SpanKind.CHAIN if kind is SpanKind.AGENT else kind


def _unprinted(stated: Json) -> list[Json]:
    """Messages with each printed object in the place of the message whose part it was; none where nothing is printed.

    A text may only begin like one.
    """
    found: list[Json] = []
    for message in stated if isinstance(stated, list) else []:
        parts = message.get("parts") if isinstance(message, dict) else None
        texts: list[Json] = []
        for part in parts if isinstance(parts, list) else []:
            text = part.get("content") if isinstance(part, dict) else None
            held = pyrepr.printed(text) if isinstance(text, str) and _OBJECT.match(text) else None
            (texts if held is None else found).append(part if held is None else held)
        if texts:
            found.append({"role": "assistant", "parts": texts})
    return found


OPENAI_AGENTS = genai.dialect(
    "openai_agents",
    lambda raw: raw.scope_name == _OPENAI_AGENTS and raw.attributes.keys() >= _PROVIDER,
    _openai_agents,
    switch=genai.SWITCH,
    reads="OpenAI's agents through OpenTelemetry's `opentelemetry-instrumentation-openai-agents-v2`: the GenAI "
    "conventions, with printed objects where an answer is no text.",
)


# W&B Weave


_WEAVE, _WEAVE_AGENTS, _OF_WEAVE = "weave", "weave.openai_agents", "weave.openai_agents."


def _adapt_weave(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Of what OpenAI's agents get through Chat Completions, calls of tools and the answers of streams are left out.

    Runs, turns and guardrails are no operations of the conventions.
    """
    answered = messages.hold_something(fields["output_messages"])
    if kind is SpanKind.LLM and not answered and "gen_ai.response.id" not in reading.attributes:
        fields |= {"output": None, "output_messages": (Message(role="assistant", withheld=True),)}
    if kind is not SpanKind.OTHER:
        return kind
    if (stated := next((step for step in _WEAVE_STEPS if f"{_OF_WEAVE}{step}" in reading.attributes), None)) is None:
        return kind
    reading.note("kind", f"{_OF_WEAVE}{stated}")
    return _WEAVE_STEPS[stated]


_WEAVE_STEPS: Final = {
    "task.workflow_name": SpanKind.CHAIN, "turn.agent_name": SpanKind.CHAIN, "guardrail.name": SpanKind.GUARDRAIL,
}  # fmt: skip


def _weave_agents(raw: RawSpan) -> Span:
    """A run without a group sends its own id as the session's."""
    span = genai.normalise(raw, name=_WEAVE, adapt=_adapt_weave)
    if span.session_id is not None and span.session_id == raw.attributes.get(f"{_OF_WEAVE}trace_id"):
        provenance = {field: source for field, source in span.provenance.items() if field != "session_id"}
        span = replace(span, session_id=None, provenance=provenance)
    return span


WEAVE = Dialect(
    name=_WEAVE,
    speaks=lambda raw: raw.scope_name == _WEAVE_AGENTS,
    by_names=True,
    normalise=_weave_agents,
    reads="OpenAI's agents through W&B Weave: the GenAI conventions, with what it leaves out of answers, and turns.",
)


# Strands Agents and AgentCore


_TEAMS: Final = ("invoke_swarm", "invoke_graph")


def _by_strands(raw: RawSpan) -> bool:
    attributes = raw.attributes
    return raw.scope_name.startswith(("strands.", "strands-agents")) or "strands-agents" in (
        attributes.get("gen_ai.system"),
        attributes.get("gen_ai.provider.name"),
    )


def _strands(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """An agent's answer is its messages printed, each with a line break behind it; a model's a list of blocks.

    A swarm and a graph are called agents, whose agents stand below them.
    """
    if reading.attributes.get("gen_ai.operation.name") in _TEAMS:
        reading.no_agent(fields)
    sent = [event.attributes.get("message") for event in reading.raw.events if event.name == "gen_ai.choice"]
    if kind is SpanKind.LLM and sent == ["[]"]:  # no block: an answer in JSON would stand in one
        fields |= {"output": "", "output_messages": ()}
    if kind is SpanKind.AGENT and isinstance(fields["output"], str):
        fields["output"] = fields["output"].rstrip("\n")
        fields["output_messages"] = tuple(replace(m, text=m.text.rstrip("\n")) for m in fields["output_messages"])
    return kind


def _strands_span(raw: RawSpan) -> Span:
    """The time to the first token is sent under the conventions' name, in ms."""
    span = genai.normalise(_put_back(raw), name="strands", switch=None, adapt=_strands)
    return span if span.first_token_s is None else replace(span, first_token_s=span.first_token_s / 1e3)


def _put_back(raw: RawSpan) -> RawSpan:
    """The span with its own events, which AWS's distribution moves into one log record: input and output messages."""
    events: list[RawEvent] = []
    for event in raw.events:
        given, returned = (genai.logged(event.attributes.get(key)) for key in ("input", "output"))
        if genai.moved(event) and raw.attributes.get("gen_ai.operation.name") != "execute_tool":
            events.append(event)
            continue
        held = [(f"gen_ai.{role}.message", body, "content") for role, body in given]
        held += [("gen_ai.choice", body, "message") for _, body in returned]
        events += [
            RawEvent(name=name, time_ns=event.time_ns, attributes=body if isinstance(body, dict) else {key: body})
            for name, body, key in held
        ] or [event]
    return replace(raw, events=tuple(events)) if raw.events else raw


STRANDS = Dialect(
    name="strands",
    speaks=_by_strands,
    by_names=False,
    normalise=_strands_span,
    switch=None,
    reads="Strands Agents and AgentCore: the GenAI conventions, messages in span events in Bedrock's shape.",
)


# OpenLIT

_NODES: Final = frozenset({NODE, "model", "model_request"})
"""The node that asks the model, as LangGraph and LangChain's ``create_agent`` call it, the last in JavaScript."""
_JAVASCRIPT: Final = "@openlit/"


def _openlit(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    attributes = reading.attributes
    if reading.raw.scope_name.startswith(_JAVASCRIPT):
        kind = _openlit_javascript(reading, kind, fields)
    if reading.raw.scope_name.endswith(".crewai") and "gen_ai.agent.name" not in attributes:
        return _openlit_crew(reading, kind, fields)
    of_langgraph = reading.raw.scope_name.endswith(("langgraph", f"{_JAVASCRIPT}instrumentation-langchain"))
    if kind is SpanKind.AGENT and ("gen_ai.agent.source" in attributes or (of_langgraph and fields["agent"] in _NODES)):
        # A hand-off appears as a run of the agent that it goes to, which has one of its own; a node is no agent.
        reading.no_agent(fields)
        return SpanKind.CHAIN
    if of_langgraph and attributes.get("gen_ai.workflow.name", UNNAMED) != UNNAMED:
        fields["agent"] = reading.text("agent", "gen_ai.workflow.name")
        kind = SpanKind.CHAIN
    if reading.raw.scope_name == "openlit" and not fields["output_messages"]:
        # A function of the application's: its result stands where messages do.
        fields["output"] = reading.text("output", "gen_ai.output.messages")
    used: Usage | None = fields["usage"]
    if used is not None and attributes.get("gen_ai.provider.name") == "anthropic":
        fields["usage"] = genai.with_cached(reading, used)
    return kind


def _openlit_crew(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A method of a flow is no agent; a span that raised has nothing but a name, and is an agent's by that."""
    if kind is SpanKind.AGENT:
        reading.no_agent(fields)
        return SpanKind.CHAIN
    named = reading.raw.name.removeprefix("invoke_agent ")
    if kind is SpanKind.OTHER and reading.raw.status_code == 2 and named != reading.raw.name:
        fields["agent"] = named
        reading.note("agent", "span name")
        return SpanKind.AGENT
    return kind


def _openlit_javascript(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Spans of OpenAI's agents without an agent's name are turns and what surrounds them; a run that raises sends none.

    Tool calls in answers of OpenAI's Responses are left out, so an empty answer may have made some.
    """
    raw = reading.raw
    if kind is SpanKind.AGENT and fields["agent"] is None and raw.scope_name.endswith("openai-agents"):
        fields["parent_raises"] = raw.status_code == 2
        return SpanKind.CHAIN
    if raw.attributes.get("openai.api.type") == "responses" and not any(m.text for m in fields["output_messages"]):
        fields |= {"output": None, "output_messages": ()}
    if kind is SpanKind.AGENT and raw.scope_name.endswith("langgraph"):
        fields["usage"] = None  # that of the model call beside it
    return kind


OPENLIT = genai.dialect(
    "openlit",
    lambda raw: raw.scope_name == "openlit" or raw.scope_name.startswith(("openlit.", _JAVASCRIPT)),
    _openlit,
    switch="capture_message_content=True (openlit.init)",
    reads="OpenLIT: the GenAI conventions, with what it makes of hand-offs, of LangGraph's nodes and "
    "of Anthropic's tokens.",
)


# Claude Code

_ANSWER, _OUTPUT, _RAN, _FORM = "assistant_response", "tool.output", "tool_result", "StructuredOutput"
_CALLED_NOTHING = ("end_turn", "stop_sequence", "max_tokens", "refusal")
"""Why a model stopped that called no tool in the same answer."""
_CONVERSATION = ("sdk", "repl_main_thread")
"""How the source of a call that the conversation made begins; any other writes a title, sums up, or runs an agent."""


def _claude_code(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """An interaction's prompt is an attribute, its answer a log record; a tool's output is an event on its span.

    What a tool was given may be a record of the interaction alone, or of the tool that ran another agent. Input tokens
    leave cached ones out. Only agents that a tool ran have names, and model calls have no contents. A call outside of
    any interaction is a trace of its own, and no run unless the conversation made it.
    """
    if kind is SpanKind.LLM:
        return _claude_call(reading, fields)
    if kind is SpanKind.TOOL:
        _claude_tool(reading, fields)
        return kind
    given = tuple([call for event in reading.raw.events if (call := _given(event)) is not None])
    if given:
        fields["output_messages"] = (Message(role="assistant", tool_calls=given),)
    if kind is SpanKind.AGENT:
        _interaction(reading, fields)
    return kind


def _claude_call(reading: SpanReading, fields: SpanFields) -> SpanKind:
    cached = reading.whole("usage.cached_input", "cache_read_tokens") or 0
    prompt = reading.whole("usage", "input_tokens")
    if prompt is not None:
        prompt += cached + (reading.whole("usage.cached_input", "cache_creation_tokens") or 0)
    fields["usage"] = usage(prompt, reading.whole("usage", "output_tokens"), cached, None)
    if reading.attributes.get("llm_request.context") == "standalone" and not _of_conversation(reading.attributes):
        reading.note("kind", "llm_request.context")
        return SpanKind.OTHER
    if reading.attributes.get("stop_reason") in _CALLED_NOTHING:
        fields["output_messages"] = (Message(role="assistant", withheld=True),)
    return SpanKind.LLM


def _claude_tool(reading: SpanReading, fields: SpanFields) -> None:
    tool: ToolCall = fields["tool"]
    if tool.arguments is None:
        tool = replace(tool, arguments=unwrap.arguments(reading.value("tool.arguments", "tool_input")))
    for event in reading.raw.events:
        if event.name == _OUTPUT and tool.result is None and tool.error is None:
            tool = replace(tool, result=unwrap.result(event.attributes.get("output")).result)
            reading.note("tool.result", f"event {_OUTPUT}: output")
    if reading.attributes.get("tool_name", tool.name) in CLAUDE_DELEGATES:
        tool = replace(tool, handoff=True)
        fields["agent"] = reading.text("agent", "subagent_type")
    fields |= {"tool": tool, "input": tool.arguments, "output": tool.result}


def _of_conversation(held: Mapping[str, AttributeValue]) -> bool:
    """Whether the conversation itself made a call, or one that names no source, as of older versions."""
    source = as_text(held.get("query_source")) or as_text(held.get("query_source_safe"))
    return source is None or source.startswith(_CONVERSATION)


def _interaction(reading: SpanReading, fields: SpanFields) -> None:
    reading.no_agent(fields)
    fields["input"] = reading.text("input", "user_prompt")
    form = None
    for event in reading.raw.events:
        held = event.attributes
        if event.name == _ANSWER and _of_conversation(held):
            stated = unwrap.plain(held.get("response"))
            if isinstance(stated, str):
                fields["output"] = stated
                reading.note("output", f"event {_ANSWER}: response")
        elif event.name == _RAN and held.get("tool_name") == _FORM and held.get("success") == "true":
            form = as_text(held.get("tool_input"))
    if form is not None:  # what the program gets, whatever was written beside it
        fields["output"] = form
        reading.note("output", f"event {_RAN}: tool_input")


def _given(event: RawEvent) -> ToolCall | None:
    """The call whose run this event records; None for another event, and where the arguments are missing."""
    held = event.attributes
    called, given = as_text(held.get("tool_use_id")), held.get("tool_input")
    if event.name != _RAN or called is None or given is None:
        return None
    of_server = as_text(unwrap.entries(held.get("tool_parameters")).get("mcp_tool_name"))
    name = of_server or as_text(held.get("tool_name"))
    if name is None:
        return None
    delegates = of_server is None and name in CLAUDE_DELEGATES
    return ToolCall(name=name, arguments=unwrap.arguments(given), call_id=called, handoff=delegates)


CLAUDE_CODE = genai.dialect(
    "claude_code",
    _scope("com.anthropic.claude_code"),
    _claude_code,
    switch="OTEL_LOG_USER_PROMPTS=1, OTEL_LOG_TOOL_DETAILS=1 and OTEL_LOG_TOOL_CONTENT=1",
    reads="Claude Code's own telemetry: the GenAI conventions for names, words of its own for "
    "tokens, events for contents.",
)


# NeMo Guardrails

_RAIL, _REQUEST = "rail.type", "guardrails.request"
_RAILS: Final = frozenset({"input", "output", "retrieval", "tool_input", "tool_output"})
"""Rails that look at what goes in or comes out; those of dialog and generation answer."""


def _guardrails(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """LLMRails states a task of its own as the operation of a model's call, and contents in events that it names.

    IORails keeps to the conventions for model calls. An answer that a rail refused is not what the user got, and what a
    rail's model decided is no answer: the request holds what was asked and what was answered.
    """
    attributes = reading.attributes
    if isinstance(rail := attributes.get(_RAIL), str):
        reading.note("kind", _RAIL)
        return SpanKind.GUARDRAIL if rail.lower() in _RAILS else SpanKind.CHAIN
    stated: dict[str, list[Message]] = {}
    for event in reading.raw.events:
        if event.name in _SAYS:
            field, role = _SAYS[event.name]
            text = as_text(event.attributes.get("content"))
            stated.setdefault(field, []).append(Message(role=role, text=text or "", withheld=text is None))
            reading.note(field, f"event {event.name}")
    if kind is SpanKind.CHAIN and "gen_ai.request.model" in attributes:
        reading.note("kind", "gen_ai.request.model")
        given, returned = stated.get("input", []), stated.get("output", [])
        if given and not returned:  # an empty answer has no event
            returned = [Message(role="assistant", withheld=given[-1].withheld)]
        fields |= messages.asked(tuple(given)) | messages.answered(tuple(returned))
        return SpanKind.LLM
    if kind is SpanKind.CHAIN:
        asked = stated.get("input") or messages.read(unwrap.decoded(reading.value("input", f"{_REQUEST}.input")))
        spoken = [said.text for said in stated.get("output", ()) if not said.withheld]
        fields["input"] = messages.last_text(tuple(asked), "user")
        fields["output"] = "\n".join(spoken) if spoken else reading.text("output", f"{_REQUEST}.output")
    return kind


_SAYS: Final = {
    "guardrails.user_message": ("input", "user"), "guardrails.utterance.bot.started": ("output", "assistant"),
    "gen_ai.content.prompt": ("input", "user"), "gen_ai.content.completion": ("output", "assistant"),
}  # fmt: skip
"""In events of LLMRails: the field of the span, and who speaks."""

NEMO_GUARDRAILS = genai.dialect(
    "nemo_guardrails",
    lambda raw: raw.scope_name in ("nemo_guardrails", "nemo-guardrails"),
    _guardrails,
    switch="tracing: {enable_content_capture: true} in the configuration of the rails",
    reads="NVIDIA's NeMo Guardrails: rails, the calls of models below them, and the request around all, by LLMRails "
    "and by IORails.",
)


# AgentScope

_PENDING: Final = ("agentscope.agent.hitl_pending_tools", "agentscope.agent.external_execution_pending_tools")


def _agentscope(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """An agent that waits for a person, or for a program that carries out its calls, answers with a text about it."""
    if kind is SpanKind.AGENT and any(key in reading.attributes for key in _PENDING):
        fields |= {"output": "", "output_messages": ()}
    return kind


AGENTSCOPE = genai.dialect(
    "agentscope",
    lambda raw: raw.scope_name == "agentscope",
    _agentscope,
    reads="AgentScope, from version 2: the GenAI conventions, with what it answers while a call waits for a person.",
)


# fast-agent

_OF_FAST_AGENT: Final = re.compile(r"Agent: '(?P<name>.+)' (?:generate|structured(?:_schema)?)", re.DOTALL)


def _fast_agent(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """An agent's run is known by its span's name alone; model calls below it are OpenLLMetry's."""
    if kind is SpanKind.OTHER and (named := _OF_FAST_AGENT.fullmatch(reading.raw.name)) is not None:
        fields["agent"] = named["name"]
        reading.note("agent", "span name")
        reading.note("kind", "span name")
        return SpanKind.AGENT
    return kind


FAST_AGENT = genai.dialect(
    "fast_agent",
    _scope("fast_agent."),
    _fast_agent,
    reads="fast-agent: agents, by the names of its spans; what models and MCP servers were asked is in others' spans.",
)


# Gemini CLI

_GEMINI_OUTCOME: Final = re.compile(r'\{"status": ?"(\w+)"')


def _gemini_cli(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A tool's request and outcome stand where messages do, cut at 10,000 characters; its span ends well in any case.

    Each span names the program as its agent, a sub-agent's too, whose name is that of the tool around it. The pieces of
    a streamed answer are a message each.
    """
    operation = reading.attributes.get("gen_ai.operation.name")
    if len(pieces := fields["output_messages"]) > 1:
        calls = tuple([call for piece in pieces for call in piece.tool_calls])
        text = "".join(piece.text for piece in pieces if piece.role == "assistant")
        fields |= messages.answered((Message(role="assistant", text=text, tool_calls=calls),))
    if operation == "tool_call":
        given = unwrap.entries(reading.value("tool.arguments", "gen_ai.input.messages")).get("args")
        outcome = _gemini_outcome(reading.value("tool.result", _OUT))
        call_id = reading.text("tool.call_id", "gen_ai.tool.call_id")
        name = reading.text("tool.name", "gen_ai.tool.name") or reading.raw.name
        fields |= reading.tool_run(name, given, outcome, call_id=call_id)
        return SpanKind.TOOL
    if operation == "schedule_tool_calls":  # the calls below it once more
        fields |= {"input": None, "output": None, "input_messages": (), "output_messages": ()}
    if operation == "agent_call":
        reading.no_agent(fields)
    return kind


def _gemini_outcome(stated: AttributeValue) -> unwrap.ToolResult:
    """What a tool answered the model with; why it failed, or only how it ended, where that was cut off."""
    response = unwrap.entries(stated).get("response")
    parts = response.get("responseParts") if isinstance(response, dict) else None
    first = next((part for part in parts if isinstance(part, dict)), {}) if isinstance(parts, list) else {}
    answer = unwrap.entries(first.get("functionResponse")).get("response")
    ended = _GEMINI_OUTCOME.match(stated) if isinstance(stated, str) else None
    if ended is not None and ended[1] != "success":
        why = as_text(answer.get("error")) if isinstance(answer, dict) else None
        return unwrap.ToolResult(error=why or ended[1])
    return unwrap.ToolResult(result=answer.get("output", answer) if isinstance(answer, dict) else None)


GEMINI_CLI = genai.dialect(
    "gemini_cli",
    lambda raw: raw.scope_name == "gemini-cli",
    _gemini_cli,
    switch="GEMINI_TELEMETRY_TRACES_ENABLED=true",
    reads="Gemini CLI: the GenAI conventions for model calls, and what its tools were given and answered.",
)


# LangWatch


def _langwatch(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A model is called as LiteLLM calls it, with its provider before it: ``openai/gpt-4o-mini``."""
    for field in ("model", "requested_model"):
        if isinstance(named := fields.get(field), str):
            fields[field] = named.partition("/")[2] or named
    if kind is SpanKind.LLM and "langwatch.span.type" in reading.attributes:
        reading.note("kind", "langwatch.span.type")
    return kind


LANGWATCH = genai.dialect(
    "langwatch",
    lambda raw: raw.scope_name == "langwatch" or "langwatch.span.type" in raw.attributes,
    _langwatch,
    reads="LangWatch: the GenAI conventions for model and tokens; kinds, inputs and outputs are read by their shapes.",
)


# VoltAgent


def _voltagent(reading: SpanReading, _kind: SpanKind, fields: SpanFields) -> SpanKind:
    """One span stands for all model calls of a run, without what they answered; each tool has a span."""
    reading.note("kind", "llm.operation")
    fields["model"] = reading.text("model", "llm.model")
    if reading.raw.status_code != 2:
        fields["output_messages"] = (Message(role="assistant", withheld=True),)
    return SpanKind.LLM


VOLTAGENT = genai.dialect(
    "voltagent",
    lambda raw: raw.scope_name.startswith("@voltagent/") and "llm.operation" in raw.attributes,
    _voltagent,
    reads="VoltAgent: its model calls, whose answers stand in the agent's span; the rest is read by its shape.",
)
