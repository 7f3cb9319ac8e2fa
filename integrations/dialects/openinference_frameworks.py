"""Corrections for frameworks that depart from OpenInference; the scope names the framework.

Each function corrects the fields of one framework's span in place, and returns its true kind.
``openinference_pseudo_tools`` has the frameworks whose agents give their answers to a pseudo-tool.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from sidejudge.scoring.trace.span import Json, Message, SpanKind, ToolCall, Usage

from . import haystack, langgraph_nodes, messages, pyrepr, unwrap
from . import openinference_pseudo_tools as pseudo_tools
from .model_call import LANGCHAIN_MODEL, usage, whole
from .reading import SpanReading
from .span_fields import CONTENTS, SpanFields
from .unwrap import Content, as_text

_IN, _OUT = "input.value", "output.value"
_TASKS = "crew_tasks"
_JAVASCRIPT = "@arizeai/openinference-instrumentation-"
_CUT_RESPONSE = '[{"id": "__fake_id__", '
"""How a response begins that the OpenAI Agents SDK makes of a stream; whole, it was read."""
_CURRENT_AGENT = re.compile(r"current_agent_name=(?:'([^']*)'|\"([^\"]*)\")\)?\W*$")
_OF_TEXT = frozenset({"text", "thought", "thought_signature"})
"""The keys of a part that is text, in an event of Google ADK."""
_PRINTED = re.compile(r"assistant: (?:None\Z)?")
"""A message as LlamaIndex prints it; a call of tools has no text."""
_HAYSTACK_MODEL = re.compile(r"_meta=\{'model': '([^'\\]{1,100})'")
_DELEGATION = frozenset({"delegate_work_to_coworker", "ask_question_to_coworker"})
_DAPR_STEP = re.compile(r"WorkflowTask[.]\w+|[^.]+[.]tool_batch")
"""Steps of Dapr Agents around the span of a tool, which they call tools too."""
_NO_WORD = re.compile(r"\W+")
_CONTENT = re.compile(r" content=('[^'\\]*+(?:\\.[^'\\]*+)*+'|\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\") type=", re.DOTALL)


def adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Correct ``fields`` in place for the framework that made the span, and return the span's true kind."""
    scope = reading.raw.scope_name
    if scope.startswith(_JAVASCRIPT):
        name = scope.removeprefix(_JAVASCRIPT).replace("-", "_")
    else:
        name = "strands" if scope.startswith("strands.") else scope.rpartition(".")[2]
    if kind is SpanKind.TOOL and _DAPR_STEP.fullmatch(reading.raw.name) and "tool.name" not in reading.attributes:
        del fields["tool"]
        return SpanKind.CHAIN
    framework = _FRAMEWORKS.get(name)
    return kind if framework is None else framework(reading, kind, fields)


def _agno(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A stream of which nothing came has a list without messages."""
    if kind is SpanKind.LLM and unwrap.decoded(reading.attributes.get(_OUT)) == {"messages": []}:
        fields |= {"output": None, "output_messages": (Message(role="assistant"),)}
    return kind


def _haystack(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Pipelines and agents are CHAIN; messages are printed objects; an agent is known by its system prompt alone."""
    answered_raw = unwrap.decoded(reading.attributes.get(_OUT))
    if kind is SpanKind.LLM:
        if fields.get("output") is None and _is_silent(messages.read(haystack.component(answered_raw))):
            fields["output"] = ""
            reading.note("output", _OUT)
        return kind
    requested_raw = unwrap.decoded(reading.attributes.get(_IN))
    requested, answered = (messages.read(haystack.component(raw)) for raw in (requested_raw, answered_raw))
    if task := messages.last_text(requested, "user") or haystack.sole_text(requested_raw):
        fields["input"] = task
    if answered:
        fields["output"] = messages.last_text(answered, "assistant") or ""
    name = reading.raw.name.removesuffix("_async")
    if name != "Agent.run":
        return kind
    # The run's output repeats its input; only what comes after it belongs to this run.
    stated = tuple(m for m in answered if m not in requested or m.role == "system")
    fields |= {"input_messages": requested, "output_messages": stated, "system_prompt": messages.system_text(answered)}
    ended = answered_raw.get("exit_reason") if isinstance(answered_raw, dict) else None
    if isinstance(ended, str) and ended in {"length", "content_filter"}:
        fields["finish_reason"] = ended
        reading.note("finish_reason", _OUT)
    if models := _HAYSTACK_MODEL.findall(str(reading.attributes.get(_OUT))):
        fields["model"] = models[-1]
        reading.note("model", "output.value: meta of the last message")
    if (used := _own_usage(answered_raw)) is not None:
        fields["usage"] = used
        reading.note("usage", "output.value: token_usage")
    fields["agent"] = haystack.introduced(reading, fields["system_prompt"])
    if fields["agent"] is None:
        fields["agent"] = reading.span_name("agent").removesuffix("_async").removesuffix(".run")
    return SpanKind.AGENT


def _is_silent(answered: tuple[Message, ...]) -> bool:
    return bool(answered) and not any(m.text or m.tool_calls for m in answered)


def _own_usage(output: Json) -> Usage | None:
    """Tokens of this run's own model calls, which an agent adds up itself (sub-agents apart)."""
    totals = unwrap.entries(output.get("token_usage")) if isinstance(output, dict) else {}
    cached = whole(unwrap.entries(totals.get("prompt_tokens_details")).get("cached_tokens"))
    found = usage(whole(totals.get("prompt_tokens")), whole(totals.get("completion_tokens")), cached, None)
    return None if found is None else replace(found, own=True)


def _llama_index(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Workflow steps are CHAIN with printed events, cut at 200 characters; the event names the current agent."""
    name = reading.raw.name
    reading.model_requested_for(fields)
    if kind is SpanKind.LLM and name.endswith("._prepare_chat_with_tools"):
        # Preparation, not a call: it has no answer and no tokens.
        for field in CONTENTS:
            fields.pop(field, None)
        return SpanKind.CHAIN
    said = reading.attributes.get(_OUT)
    if kind is SpanKind.LLM and isinstance(said, str) and fields.get("output") in (None, "", said):
        reading.note("output", _OUT)
        fields["output"] = _PRINTED.sub("", said, count=1)
    event = unwrap.decoded(reading.attributes.get(_IN)) if kind is SpanKind.CHAIN else None
    if isinstance(event, dict) and ("init_state" in event or event.keys() == {"ctx", "ev"}):
        fields["input"] = fields["output"] = None
        if name.endswith(".run_agent_step"):
            printed = event.get("ev")
            found = _CURRENT_AGENT.search(printed) if isinstance(printed, str) else None
            if found:
                fields["agent"] = found[1] or found[2]
                reading.note("agent", "input.value: current_agent_name")
    return kind


def _openai_agents(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """The trace itself is sent as an AGENT without a name; a hand-off as a TOOL from one agent to another.

    The SDK for JavaScript does not end the trace of a run that raises: its span never comes, and the run's is topmost.
    """
    raw = reading.raw
    if kind is SpanKind.CHAIN and raw.status_code == 2 and raw.scope_name.startswith(_JAVASCRIPT):
        fields["root_hint"] = raw.name != "turn"
    if kind is SpanKind.AGENT and not {"agent.name", "graph.node.id"} & reading.attributes.keys():
        fields["agent"] = None
        return SpanKind.CHAIN
    target: Content = reading.attributes.get(_OUT)
    source: Content = reading.attributes.get(_IN)
    if str(fields.get("output")).startswith(_CUT_RESPONSE):
        fields["output"] = None
    if reading.raw.name.startswith("handoff to ") and "to_agent" in (stated := unwrap.entries(target)):
        target, source = stated["to_agent"], unwrap.entries(source).get("from_agent")  # for JavaScript
    elif "tool.name" in reading.attributes:
        return kind
    if kind is SpanKind.TOOL and reading.raw.name.startswith("handoff"):
        called = messages.handoff_tool(str(target)) if target else reading.raw.name
        fields |= {
            "tool": ToolCall(name=called, handoff=True),
            "input": unwrap.plain(source),
            "output": unwrap.plain(target),
        }
    return kind


def _litellm(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A response is sent whole only where it calls tools; else nothing but its text, without the model's name."""
    if kind is SpanKind.LLM:
        reading.model_requested_for(fields)
        returned = unwrap.entries(reading.attributes.get(_OUT))
        answering = returned.get("model") if "choices" in returned else None
        if isinstance(answering, str):
            fields["model"] = answering
            reading.note("model", "output.value: model")
    return kind


def _claude_agent(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A run's span is called after the SDK's function, another agent's after the tool that runs it, which names it."""
    if kind is SpanKind.AGENT and reading.provenance.get("agent") == "span name":
        reading.no_agent(fields)
    if kind is SpanKind.AGENT and fields["agent"] in messages.CLAUDE_DELEGATES:
        reading.no_agent(fields)
        return SpanKind.CHAIN
    if kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        if tool.error:
            tool = replace(tool, error=tool.error.removeprefix("Exception: "))  # around the tool's own
        fields["tool"], named = messages.delegated(tool)
        if named is not None:
            fields["agent"] = named
            reading.note("agent", f"{_IN}: subagent_type")
    return kind


def _strands(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Its own spans, translated: an agent's answer is printed, with a line break behind it."""
    del reading
    if kind is SpanKind.AGENT and isinstance(stated := fields.get("output"), str):
        fields["output"] = stated.rstrip("\n")
    return kind


def _google_adk(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A run's input is all that it was called with, its output an event; a tool's is the answer that Gemini gets."""
    given = unwrap.decoded(reading.attributes.get(_IN)) if kind is SpanKind.CHAIN else None
    if isinstance(given, dict) and isinstance(stated := given.get("new_message"), dict):
        fields["input"] = messages.last_content(stated, "user")
    event = unwrap.decoded(reading.attributes.get(_OUT)) if kind is not SpanKind.TOOL else None
    if isinstance(event, dict) and "invocation_id" in event and messages.last_content(event, "assistant") is event:
        parts = unwrap.entries(event.get("content")).get("parts")
        if not isinstance(parts, list) or all(unwrap.entries(part).keys() <= _OF_TEXT for part in parts):
            fields["output"] = ""  # the last event of a run holds an error, or nothing: no image, no answer of a tool
    if kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        match tool.result:
            case {"name": tool.name, "response": held}:
                fields["tool"] = replace(tool, result=unwrap.result(held).result)
                fields["output"] = fields["tool"].result
    return kind


def _langchain(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Everything with *agent* in its name is an AGENT: a node ``agent`` of each LangGraph graph of an agent.

    It is not the graph; what that was called stands in the node's message, and in the metadata the path of graphs that
    it lies in. A stream's model is the requested one.
    """
    if kind is SpanKind.LLM:
        returned = reading.attributes.get(_OUT)
        if isinstance(returned, str) and (answering := LANGCHAIN_MODEL.search(returned)):
            requested = fields.get("model")
            fields["requested_model"] = fields.get("requested_model") or (
                requested if requested != answering[1] else None
            )
            if fields["requested_model"] == requested and (source := reading.provenance.get("model")):
                reading.note("requested_model", source)
            fields["model"] = answering[1]
            reading.note("model", "output.value: response_metadata")
    _own_graph(reading, kind, fields)
    if kind is SpanKind.AGENT and reading.raw.name in langgraph_nodes.OWN_STEPS:
        reading.no_agent(fields)
        return SpanKind.CHAIN
    if reading.raw.name == langgraph_nodes.NODE and _named_by_span(reading):
        named, source = _graph_of(reading)
        if kind is SpanKind.AGENT or (kind is SpanKind.CHAIN and named):  # for JavaScript no node is an AGENT
            fields["agent"] = named or langgraph_nodes.NODE
            reading.note("agent", source if named else "span name")
            return SpanKind.CHAIN
    return kind


def _own_graph(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> None:
    """Replace the agent's name by the name of the graph, where it is the caller's name."""
    metadata = unwrap.entries(reading.attributes.get("metadata"))
    if "langgraph_node" not in metadata:
        return
    node, path, named = metadata["langgraph_node"], metadata.get("langgraph_checkpoint_ns"), fields.get("agent")
    state = reading.attributes.get(_IN) if kind is not SpanKind.TOOL else None
    agent = langgraph_nodes.own_name(named, reading.raw.name, node, path, state)
    if agent != named:
        fields["agent"] = agent
        reading.note("agent", "span name") if agent else reading.provenance.pop("agent", None)


def _named_by_span(reading: SpanReading) -> bool:
    return reading.provenance.get("agent") in (None, "span name")


def _graph_of(reading: SpanReading) -> tuple[str | None, str]:
    """The agent that a node is, by its message, else by the graph that it lies in; and where that stands."""
    if (named := langgraph_nodes.speaker(reading.attributes.get(_OUT))) is not None:
        return named, "output.value: name"
    path = unwrap.entries(reading.attributes.get("metadata")).get("langgraph_checkpoint_ns")
    return langgraph_nodes.graph(path), "metadata: langgraph_checkpoint_ns"


def _crewai(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A crew is a CHAIN, a task the AGENT that does it; an agent that works for another has no span at all.

    Every agent has as input the description of the task in the result; one that works without a task is asked itself.
    A crew without inputs that failed has no result: its tasks stand beside.
    """
    if kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        coworker = tool.arguments.get("coworker") if isinstance(tool.arguments, dict) else None
        if _NO_WORD.sub("_", tool.name.lower()) in _DELEGATION and tool.error is None and (named := as_text(coworker)):
            # The coworker's calls stand below the tool.
            fields["agent"] = named
            reading.note("agent", f"{_IN}: coworker")
    elif kind in {SpanKind.AGENT, SpanKind.CHAIN}:
        given, done = unwrap.decoded(reading.attributes.get(_IN)), unwrap.entries(reading.attributes.get(_OUT))
        if (answer := as_text(done.get("raw"))) is not None:
            fields["output"] = answer
        tasks = done.get("tasks_output")
        first = tasks[0] if isinstance(tasks, list) and tasks else done
        described = as_text(first.get("description")) if isinstance(first, dict) else None
        sole = as_text(next(iter(given.values()))) if isinstance(given, dict) and len(given) == 1 else None
        if described is not None and kind is SpanKind.AGENT:
            fields["input"] = described
            reading.note("input", f"{_OUT}: description")
        elif sole is not None or kind is SpanKind.AGENT:
            fields["input"] = sole  # else what was given are the agent and its tools, printed
        elif fields.get("input") is None and not done and (planned := _planned(reading)) is not None:
            fields["input"] = planned
            reading.note("input", _TASKS)
    return kind


def _planned(reading: SpanReading) -> str | None:
    """The description of a crew's first task."""
    tasks = unwrap.decoded(reading.attributes.get(_TASKS))
    first = tasks[0] if isinstance(tasks, list) and tasks else None
    return as_text(first.get("description")) if isinstance(first, dict) else None


def _autogen(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Teams and agents are given a task, or messages each printed without its class; a team returns all messages."""
    if kind not in {SpanKind.AGENT, SpanKind.CHAIN}:
        return kind
    given, returned = unwrap.entries(reading.attributes.get(_IN)), unwrap.entries(reading.attributes.get(_OUT))
    if "task" in given or "messages" in given:
        held = given.get("messages")
        printed = [text for item in held if (text := _printed_text(item))] if isinstance(held, list) else []
        fields["input"] = as_text(given.get("task")) or (printed[-1] if printed else None)
    if isinstance(stated := returned.get("messages"), list):
        texts = [said for item in stated if (said := agent_answer(item))]
        fields["output"] = texts[-1] if texts else None
    return kind


def _printed_text(message: Json) -> str | None:
    """The text of a message as pydantic prints it: ``id='…' source='user' … content='…' type='TextMessage'``."""
    found = _CONTENT.search(message) if isinstance(message, str) else None
    read = pyrepr.printed(f"[{found[1]}]") if found else None
    return as_text(read[0]) if isinstance(read, list) else None


def agent_answer(message: Json) -> Json:
    """What an agent of AutoGen's says, in words or as a form: no event, nor the message that ends a conversation."""
    if not isinstance(message, dict) or message.get("source") == "user" or message.get("type") == "StopMessage":
        return None
    content = message.get("content")
    return content if isinstance(content, dict) and content else as_text(content)


def _mastra(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Each part of an answer comes as a model call; the step around the parts is the real one."""
    if reading.attributes.get("mastra.span.type") != "model_chunk":
        return kind
    for field in CONTENTS:
        fields.pop(field, None)
    return SpanKind.CHAIN


_FRAMEWORKS = {
    "agno": _agno,
    "haystack": _haystack,
    "llama_index": _llama_index,
    "openai_agents": _openai_agents,
    "smolagents": pseudo_tools.smolagents,
    "dspy": pseudo_tools.dspy,
    "litellm": _litellm,
    "langchain": _langchain,
    "beeai": pseudo_tools.beeai,
    "crewai": _crewai,
    "autogen_agentchat": _autogen,
    "strands": _strands,
    "google_adk": _google_adk,
    "claude_agent_sdk": _claude_agent,
    "@mastra/otel-exporter": _mastra,
}
"""By the last word of the scope; of instrumentations for JavaScript, by what follows their prefix."""
