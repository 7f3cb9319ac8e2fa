"""Where frameworks bend OpenInference: Haystack, LlamaIndex, the OpenAI Agents SDK, LiteLLM, ADK.

CrewAI and AutoGen stand in ``openinference_teams``, LangChain and LangGraph in ``openinference_langchain``, smolagents
in ``openinference_smolagents``, DSPy in ``openinference_dspy``, BeeAI in ``openinference_beeai``.
Each function looks at one framework's span and corrects what was read of it; the scope names the framework.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from sidejudge.scoring.trace.span import Json, SpanKind, ToolCall, Usage

from . import (
    haystack,
    messages,
    openinference_beeai,
    openinference_dspy,
    openinference_langchain,
    openinference_smolagents,
    openinference_teams,
    unwrap,
)
from .model_call import usage, whole
from .reading import SpanReading
from .span_fields import CONTENTS, SpanFields

_JAVASCRIPT = "@arizeai/openinference-instrumentation-"
_CURRENT_AGENT = re.compile(r"current_agent_name=(?:'([^']*)'|\"([^\"]*)\")\)?\W*$")
_PRINTED = re.compile(r"assistant: (?:None\Z)?")
"""A message as LlamaIndex prints it; a call of tools has no text."""
_MODEL = re.compile(r"_meta=\{'model': '([^'\\]{1,100})'")


def adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Correct ``fields`` in place for the framework that made the span, and return the span's true kind."""
    scope = reading.raw.scope_name
    if scope.startswith(_JAVASCRIPT):
        name = scope.removeprefix(_JAVASCRIPT).replace("-", "_")
    else:
        name = "strands" if scope.startswith("strands.") else scope.rpartition(".")[2]
    framework = _FRAMEWORKS.get(name)
    return kind if framework is None else framework(reading, kind, fields)


def _haystack(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Pipelines and agents are CHAIN; messages are printed objects; an agent is known by its system prompt alone."""
    if kind is SpanKind.LLM:
        return kind
    requested_raw = unwrap.decoded(reading.attributes.get("input.value"))
    answered_raw = unwrap.decoded(reading.attributes.get("output.value"))
    requested, answered = (
        messages.read(haystack.component(requested_raw)),
        messages.read(haystack.component(answered_raw)),
    )
    if task := messages.last_text(requested, "user") or haystack.sole_text(requested_raw):
        fields["input"] = task
    if answer := messages.last_text(answered, "assistant"):
        fields["output"] = answer
    name = reading.raw.name.removesuffix("_async")
    if name != "Agent.run":
        return kind
    # The run's output repeats its input; only what comes after it belongs to this run.
    stated = tuple(m for m in answered if m not in requested or m.role == "system")
    fields |= {"input_messages": requested, "output_messages": stated, "system_prompt": messages.system_text(answered)}
    if models := _MODEL.findall(str(reading.attributes.get("output.value"))):
        fields["model"] = models[-1]
        reading.note("model", "output.value: meta of the last message")
    if (used := _own_usage(answered_raw)) is not None:
        fields["usage"] = used
        reading.note("usage", "output.value: token_usage")
    fields["agent"] = haystack.introduced(reading, fields["system_prompt"])
    if fields["agent"] is None:
        fields["agent"] = name.removesuffix(".run")
        reading.note("agent", "span name")
    return SpanKind.AGENT


def _own_usage(output: Json) -> Usage | None:
    """Tokens of this run's own model calls, which an agent adds up itself (sub-agents apart)."""
    totals = output.get("token_usage") if isinstance(output, dict) else None
    if not isinstance(totals, dict):
        return None
    details = totals.get("prompt_tokens_details")
    cached = whole(details.get("cached_tokens")) if isinstance(details, dict) else None
    found = usage(whole(totals.get("prompt_tokens")), whole(totals.get("completion_tokens")), cached, None)
    if found is None:
        return None
    return Usage(input=found.input, output=found.output, cached_input=found.cached_input, own=True)


def _llama_index(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Workflow steps are CHAIN with printed events, cut at 200 characters; the event names the current agent."""
    name = reading.raw.name
    reading.model_requested_for(fields)
    if kind is SpanKind.LLM and name.endswith("._prepare_chat_with_tools"):
        # Preparation, not a call: it has no answer and no tokens.
        for field in CONTENTS:
            fields.pop(field, None)
        return SpanKind.CHAIN
    if kind is SpanKind.LLM and isinstance(printed := fields.get("output"), str) and not fields["output_messages"]:
        fields["output"] = _PRINTED.sub("", printed, count=1)
    event = unwrap.decoded(reading.attributes.get("input.value")) if kind is SpanKind.CHAIN else None
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
    """The trace itself is sent as an AGENT without a name; a hand-off as a TOOL from one agent to another."""
    if kind is SpanKind.AGENT and not {"agent.name", "graph.node.id"} & reading.attributes.keys():
        fields["agent"] = None
        return SpanKind.CHAIN
    if kind is SpanKind.TOOL and "tool.name" not in reading.attributes and reading.raw.name.startswith("handoff"):
        target = reading.attributes.get("output.value")
        source = reading.attributes.get("input.value")
        # The SDK offers the hand-off to the model under this name, so that is what the messages call it.
        called = f"transfer_to_{re.sub(r'[^a-z0-9_]', '_', str(target or '').lower())}"
        tool = ToolCall(name=called if target else reading.raw.name, handoff=True)
        fields |= {"tool": tool, "input": unwrap.plain(source), "output": unwrap.plain(target)}
    return kind


def _litellm(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A response is sent whole only where it calls tools; else nothing but its text, without the model's name."""
    if kind is SpanKind.LLM:
        reading.model_requested_for(fields)
        returned = unwrap.decoded(reading.attributes.get("output.value"))
        answering = returned.get("model") if isinstance(returned, dict) and "choices" in returned else None
        if isinstance(answering, str):
            fields["model"] = answering
            reading.note("model", "output.value: model")
    return kind


def _claude_agent(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A run's span is called after the SDK's function; agents have no names there."""
    if kind is SpanKind.AGENT and reading.provenance.get("agent") == "span name":
        fields["agent"] = None
        del reading.provenance["agent"]
    if kind is SpanKind.TOOL and (tool := fields["tool"]).error:
        fields["tool"] = replace(tool, error=tool.error.removeprefix("Exception: "))  # around the tool's own
    return kind


def _strands(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Its own spans, translated: an agent's answer is printed, with a line break behind it."""
    del reading
    if kind is SpanKind.AGENT and isinstance(stated := fields.get("output"), str):
        fields["output"] = stated.rstrip("\n")
    return kind


def _google_adk(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A run's input is all that it was called with; a tool's output is the answer that Gemini gets to its call."""
    given = unwrap.decoded(reading.attributes.get("input.value")) if kind is SpanKind.CHAIN else None
    if isinstance(given, dict) and isinstance(stated := given.get("new_message"), dict):
        fields["input"] = messages.last_content(stated, "user")
    if kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        match tool.result:
            case {"name": tool.name, "response": held}:
                fields["tool"] = replace(tool, result=unwrap.result(held).result)
                fields["output"] = fields["tool"].result
    return kind


_FRAMEWORKS = {
    "haystack": _haystack,
    "llama_index": _llama_index,
    "openai_agents": _openai_agents,
    "smolagents": openinference_smolagents.adapt,
    "dspy": openinference_dspy.adapt,
    "litellm": _litellm,
    "langchain": openinference_langchain.adapt,
    "beeai": openinference_beeai.adapt,
    "crewai": openinference_teams.crewai,
    "autogen_agentchat": openinference_teams.autogen,
    "strands": _strands,
    "google_adk": _google_adk,
    "claude_agent_sdk": _claude_agent,
}
"""By the last word of the scope; of instrumentations for JavaScript, by what follows their prefix."""
