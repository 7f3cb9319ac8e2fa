"""Where frameworks bend OpenInference: Haystack, LlamaIndex, the OpenAI Agents SDK, smolagents.

CrewAI and AutoGen stand in ``openinference_teams``.
Each function looks at one framework's span and corrects what was read of it; the scope tells the framework.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from integrations.raw import AttributeValue
from scoring.span import Json, Message, SpanKind, ToolCall

from . import haystack_shapes, messages, openinference_teams, pyrepr, unwrap
from .reading import Reading
from .usage import usage, whole

_CURRENT_AGENT = re.compile(r"current_agent_name=(?:'([^']*)'|\"([^\"]*)\")\)?\W*$")
_FINAL_ANSWER = "final_answer"
_PRINTED = re.compile(r"assistant: (?:None\Z)?")
"""A message as LlamaIndex prints it; a call of tools has no text."""
_MODEL = re.compile(r"_meta=\{'model': '([^'\\]{1,100})'")
_ANSWERING_MODEL = re.compile(r", model='([^'\\]{1,100})', object='")
_STREAMED_ANSWER = ")FinalAnswerStep(output="
"""A streaming agent's output is everything it yielded, printed one after the other; the answer is the last."""


def adapt(reading: Reading, kind: SpanKind, fields: dict[str, Any]) -> SpanKind:
    """Correct ``fields`` in place for the framework that made the span, and return the span's true kind."""
    scope = reading.raw.scope_name
    if scope.endswith(".haystack"):
        return _haystack(reading, kind, fields)
    if scope.endswith(".llama_index"):
        return _llama_index(reading, kind, fields)
    if scope.endswith(".openai_agents"):
        return _openai_agents(reading, kind, fields)
    if scope.endswith(".smolagents"):
        return _smolagents(reading, kind, fields)
    if scope.endswith(".crewai"):
        return openinference_teams.crewai(reading, kind, fields)
    if scope.endswith(".autogen_agentchat"):
        return openinference_teams.autogen(reading, kind, fields)
    return kind


def _haystack(reading: Reading, kind: SpanKind, fields: dict[str, Any]) -> SpanKind:
    """Pipelines and agents are CHAIN; messages are printed objects; an agent is known by its system prompt alone."""
    if kind is SpanKind.LLM:
        return kind
    asked_raw = unwrap.decoded(reading.attributes.get("input.value"))
    answered_raw = unwrap.decoded(reading.attributes.get("output.value"))
    asked, answered = (
        messages.read(haystack_shapes.component(asked_raw)),
        messages.read(haystack_shapes.component(answered_raw)),
    )
    if task := messages.last_text(asked, "user"):
        fields["input"] = task
    if answer := messages.last_text(answered, "assistant"):
        fields["output"] = answer
    if reading.raw.name != "Agent.run":
        return kind
    # The run's output repeats its input; only what comes after it was said in this run.
    said = tuple(m for m in answered if m not in asked or m.role == "system")
    fields |= {"input_messages": asked, "output_messages": said, "system_prompt": messages.system_text(answered)}
    if models := _MODEL.findall(str(reading.attributes.get("output.value"))):
        fields["model"] = models[-1]
        reading.note("model", "output.value: meta of the last message")
    if (used := _own_usage(answered_raw)) is not None:
        fields["usage"] = used
        reading.note("usage", "output.value: token_usage")
    fields["agent"] = haystack_shapes.introduced(reading, fields["system_prompt"])
    fields["agent"] = fields["agent"] or reading.raw.name.removesuffix(".run")
    return SpanKind.AGENT


def _own_usage(output: Json) -> object:
    """Tokens of this run's own model calls, which an agent adds up itself (sub-agents apart)."""
    totals = output.get("token_usage") if isinstance(output, dict) else None
    if not isinstance(totals, dict):
        return None
    details = totals.get("prompt_tokens_details")
    cached = whole(details.get("cached_tokens")) if isinstance(details, dict) else None
    found = usage(whole(totals.get("prompt_tokens")), whole(totals.get("completion_tokens")), cached, None)
    if found is None:
        return None
    return type(found)(input=found.input, output=found.output, cached_input=found.cached_input, own=True)


def _llama_index(reading: Reading, kind: SpanKind, fields: dict[str, Any]) -> SpanKind:
    """Workflow steps are CHAIN with printed events, cut at 200 characters; the event names the current agent."""
    name = reading.raw.name
    _asked_for(reading, fields)
    if kind is SpanKind.LLM and name.endswith("._prepare_chat_with_tools"):
        # Preparation, not a call: it has no answer and no tokens.
        for field in ("input", "output", "input_messages", "output_messages"):
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


def _openai_agents(reading: Reading, kind: SpanKind, fields: dict[str, Any]) -> SpanKind:
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
        fields |= {"tool": tool, "input": source, "output": target}
    return kind


def _smolagents(reading: Reading, kind: SpanKind, fields: dict[str, Any]) -> SpanKind:
    """Inputs are all arguments of the call; an agent's answer is given to a pseudo-tool, which is no tool of it."""
    given = unwrap.decoded(reading.attributes.get("input.value"))
    if kind is SpanKind.AGENT:
        if "agent.name" not in reading.attributes:
            fields["agent"] = reading.raw.name.removesuffix(".run")
        if isinstance(given, dict) and isinstance(task := given.get("task"), str):
            fields["input"] = task
        _, streamed, last = str(fields.get("output")).rpartition(_STREAMED_ANSWER)
        if streamed:
            fields["output"] = _final(last.removesuffix(")"))
    if kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        if tool.name in {_FINAL_ANSWER, "FinalAnswerTool"}:
            del fields["tool"]
            return SpanKind.CHAIN
        if (named := _named(given, reading.attributes.get("tool.parameters"))) is not None:
            fields["tool"] = replace(tool, arguments=named)
            fields["input"] = named
    fields["output_messages"] = tuple(map(_without_final_answer, fields.get("output_messages", ())))
    if kind is SpanKind.LLM:
        fields["output"] = messages.last_text(fields["output_messages"], "assistant") or fields.get("output")
        _answering(reading, fields)
    return kind


def _named(given: Json, parameters: AttributeValue) -> dict[str, Json] | None:
    """The arguments of a call by their names: those without one are given in the order of the tool's parameters."""
    if not isinstance(given, dict) or not isinstance(kwargs := given.get("kwargs"), dict):
        return None
    args, names = given.get("args"), unwrap.decoded(parameters)
    if not args:
        return kwargs
    if not isinstance(args, list) or not isinstance(names, dict) or len(args) > len(names):
        return None
    return dict(zip(names, args, strict=False)) | kwargs


def _asked_for(reading: Reading, fields: dict[str, Any]) -> None:
    """The only model that has an attribute is the one that was asked for."""
    fields["requested_model"], fields["model"] = fields.get("requested_model") or fields.get("model"), None
    if (source := reading.provenance.pop("model", None)) is not None:
        reading.provenance.setdefault("requested_model", source)


def _answering(reading: Reading, fields: dict[str, Any]) -> None:
    """The model that answered stands in the printed response alone."""
    _asked_for(reading, fields)
    returned = unwrap.decoded(reading.attributes.get("output.value"))
    raw = returned.get("raw") if isinstance(returned, dict) else None
    if isinstance(raw, str) and (models := _ANSWERING_MODEL.findall(raw)):
        fields["model"] = models[-1]
        reading.note("model", "output.value: raw")


def _final(printed: str) -> Json:
    """What was printed as the answer, itself a repr."""
    try:
        read = pyrepr.read(f"[{printed}]")
    except (pyrepr.UnreadableError, RecursionError):
        return printed
    return read[0] if isinstance(read, list) and len(read) == 1 else printed


def _without_final_answer(message: Message) -> Message:
    """What is given to the pseudo-tool is said."""
    calls = tuple(call for call in message.tool_calls if call.name != _FINAL_ANSWER)
    if len(calls) == len(message.tool_calls):
        return message
    given = next(call.arguments for call in message.tool_calls if call.name == _FINAL_ANSWER)
    answer = given.get("answer") if isinstance(given, dict) else given
    return replace(message, tool_calls=calls, text=answer if isinstance(answer, str) else message.text)
