"""OpenLLMetry (Traceloop): decorators state kind, name, input and output of a step; model calls follow conventions.

LangChain, LlamaIndex and CrewAI depart from it, each in its own way. Versions before the conventions (to 0.4x) have one
attribute a message, numbered: ``gen_ai.prompt.0.role``, ``gen_ai.completion.0.tool_calls.1.name`` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Json, Message, SpanKind, ToolCall

from . import genai, labels, messages, unwrap
from .fields import numbered_maps, tree
from .langgraph_nodes import UNNAMED
from .reading import SpanReading, failure
from .span_fields import SpanFields
from .unwrap import as_text

SWITCH = "TRACELOOP_TRACE_CONTENT=true"

_KIND, _NAME = "traceloop.span.kind", "traceloop.entity.name"
_IN, _OUT = "traceloop.entity.input", "traceloop.entity.output"
_KINDS = {"workflow": SpanKind.CHAIN, "task": SpanKind.CHAIN, "agent": SpanKind.AGENT, "tool": SpanKind.TOOL}
_SCOPES = frozenset(
    f"opentelemetry.instrumentation.{library}"
    for library in (
        "openai.v1", "openai.v0", "openai_agents", "langchain", "llamaindex", "haystack", "anthropic", "bedrock",
        "crewai.instrumentation", "cohere", "groq", "mistralai", "ollama", "together", "replicate", "watsonx",
        "google_generativeai",
    )
)  # fmt: skip
_JAVASCRIPT = "@traceloop/"
"""How the scopes of the packages for JavaScript begin."""
_RESULT, _TASKS_DONE, _TASKS = "crewai.crew.result", "crewai.crew.tasks_output", "crewai.crew.tasks"
_ASSOCIATED = "traceloop.association.properties."
_LC_AGENT = f"{_ASSOCIATED}lc_agent_name"
_NODES = frozenset({"agent", "tools", "pre_model_hook", "post_model_hook", "generate_structured_response"})
_CONTEXT: Final[tuple[Literal["session_id", "user_id"], ...]] = ("session_id", "user_id")
_OWN_METADATA = ("ls_", "lc_", "langgraph_", "checkpoint_", "__")
_REQUEST = "llm.request.type"
_OLD_KINDS = {
    "chat": SpanKind.LLM, "completion": SpanKind.LLM, "embedding": SpanKind.EMBEDDING, "rerank": SpanKind.RETRIEVER,
}  # fmt: skip
_BLANKS: Final = re.compile(r"(?:\w+=(?:None|'')(?: |\Z))++")
_PROMPT, _COMPLETION = "gen_ai.prompt.", "gen_ai.completion."


def speaks(raw: RawSpan) -> bool:
    """Whether OpenLLMetry made the span; others put what it is associated with on their own spans too."""
    if raw.scope_name in _SCOPES or raw.scope_name.startswith(("traceloop.", _JAVASCRIPT)):
        return True
    own = [key for key in raw.attributes if key.startswith("traceloop.")]
    return any(not key.startswith(_ASSOCIATED) for key in own) or (
        bool(own) and any(key.startswith(("gen_ai.", "llm.")) for key in raw.attributes)
    )


def _adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A decorator's span states the kind of the step, regardless of the operation beside it."""
    if reading.raw.scope_name.startswith(_JAVASCRIPT):
        _javascript(reading, fields)
    stated = reading.text("traceloop.kind", _KIND)
    reading.provenance.pop("traceloop.kind", None)
    if stated in _KINDS:
        kind = _KINDS[stated]
        reading.note("kind", _KIND)
    elif stated is not None and kind is SpanKind.OTHER:
        kind = SpanKind.CHAIN
        reading.note("kind", _KIND)
    if (framework := _FRAMEWORKS.get(reading.raw.scope_name)) is not None:
        return framework(reading, kind, fields)
    if kind is SpanKind.TOOL:
        _tool(reading, fields)
    elif stated is not None:
        given, returned = unwrap.from_json(reading.value("input", _IN)), unwrap.from_json(reading.value("output", _OUT))
        if given is not None:
            fields["input"] = messages.last_content(unwrap.task(given), "user")
        if returned is not None:
            fields["output"] = returned if isinstance(returned, str) else messages.last_content(returned, "assistant")
    if kind is SpanKind.AGENT:
        fields["agent"] = reading.text("agent", "gen_ai.agent.name", _NAME) or reading.raw.name.removesuffix(".agent")
    return kind


def _google(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A part without a text is printed whole: ``file_data=None text='' …``.

    Of a stream its last piece alone is sent, which is often empty: a model that wrote tokens may have answered.
    """
    said = as_text(fields["output"]) or ""
    if "text=''" in said and _BLANKS.fullmatch(said):
        fields |= {"output": "", "output_messages": ()}
        reading.note("output", "gen_ai.output.messages")
    used, held = fields["usage"], fields["output_messages"]
    silent = fields["output"] == "" or (held and not messages.hold_something(held))
    if kind is SpanKind.LLM and silent and used is not None and used.output:
        fields |= {"output": None, "output_messages": (Message(role="assistant", withheld=True),)}
    return kind


def _bedrock(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Streams of Amazon's own models send only their text, which is null if the last piece belongs to a tool call."""
    match unwrap.decoded(reading.attributes.get("gen_ai.output.messages")):
        case [{"parts": [{"type": "text", "content": None}]}]:
            fields |= {"output": None, "output_messages": (Message(role="assistant", withheld=True),)}
    return kind


def _javascript(reading: SpanReading, fields: SpanFields) -> None:
    """A decorator does not end its span when the step raises, so that span never comes.

    Anthropic's tokens are as Anthropic counts them. A request of OpenAI's Responses is one text in JSON; its answer
    leaves out tool calls, so an empty answer may have made some.
    """
    fields["parent_raises"] = reading.raw.status_code == 2
    if reading.raw.scope_name.endswith("openai") and (items := _items(fields["input_messages"])):
        fields |= messages.asked(items)
        if not messages.hold_something(fields["output_messages"]):
            fields |= {"output": None, "output_messages": ()}
    if reading.raw.scope_name.endswith("anthropic") and (used := fields["usage"]) is not None:
        fields["usage"] = genai.with_cached(reading, used)


def _items(asked: Sequence[Message]) -> tuple[Message, ...]:
    """The messages that a lone one of a user holds as JSON; none in another."""
    match asked:
        case (Message(role="user", text=text),) if text.startswith('[{"'):
            return messages.read(unwrap.decoded(text))
    return ()


def _tool(reading: SpanReading, fields: SpanFields) -> None:
    tool: ToolCall = fields.get("tool") or ToolCall(name=reading.raw.name, error=failure(reading.raw))
    name = reading.text("tool.name", "gen_ai.tool.name", _NAME) or reading.raw.name.removesuffix(".tool")
    returned = unwrap.from_json(reading.attributes.get(_OUT))
    if tool.result is None and isinstance(returned, str):
        tool = replace(tool, result=returned)
        reading.note("tool.result", _OUT)
    fields["tool"] = replace(tool, name=name)
    genai.complete_tool(reading, fields, _IN, _OUT)
    match fields["tool"].arguments:
        case {"tool_name": named, "arguments": dict(given), **others} if named == name and not others:  # MCP's request
            fields |= {"tool": replace(fields["tool"], arguments=given), "input": given}


def _langchain(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """LangChain and LangGraph wrap runs once more, and call agents by their runs' names.

    A graph's run appears twice, as an ``invoke_agent`` without contents and as a workflow or task; the latter has,
    among its association properties, the agent's true name. Inputs carry the run's tags and metadata along.
    """
    given, returned = _map(reading, "input", _IN), _map(reading, "output", _OUT)
    fields["agent"] = as_text(unwrap.plain(reading.value("agent", _LC_AGENT)))
    if kind is SpanKind.AGENT and fields["agent"] is None:
        fields["agent"] = _graph_of_an_agent(reading)
        if fields["agent"] is None:
            kind = SpanKind.CHAIN  # the twin without contents
    elif (
        kind is SpanKind.CHAIN and fields["agent"] and reading.attributes.get("gen_ai.operation.name") == "invoke_agent"
    ):
        kind = SpanKind.AGENT
    if kind is SpanKind.TOOL:
        fields |= _langchain_tool(reading, given, returned, fields.get("tool"))
    elif given or returned:
        fields["input"] = messages.last_content(unwrap.task(given.get("inputs")), "user")
        answer = returned.get("outputs")
        fields["output"] = answer if isinstance(answer, str) else messages.last_content(answer, "assistant")
        if fields["output"] is None and messages.says_nothing(answer):
            fields["output"] = ""
    _labels(reading, given, fields)
    return kind


def _graph_of_an_agent(reading: SpanReading) -> str | None:
    """The name of a graph that LangGraph made of an agent, recognised by its nodes: ``agent`` asks the model.

    A graph of LangChain's ``create_agent`` calls that node ``model``, and is called by its run's name here; the agent's
    true name stands on the spans below it.
    """
    nodes = unwrap.plain(reading.attributes.get("gen_ai.workflow.nodes"))
    named = as_text(unwrap.plain(reading.attributes.get("gen_ai.agent.name")))
    if not isinstance(nodes, list) or "agent" not in nodes:
        return None
    if not _NODES.issuperset(map(str, nodes)) or named == UNNAMED:
        return None
    reading.note("agent", "gen_ai.agent.name")
    return named


def _map(reading: SpanReading, field: str, key: str) -> dict[str, Json]:
    found = unwrap.from_json(reading.value(field, key))
    return found if isinstance(found, dict) else {}


def _langchain_tool(
    reading: SpanReading, given: dict[str, Json], returned: dict[str, Json], held: ToolCall | None
) -> SpanFields:
    """Arguments stand under ``inputs``, and under ``input_str`` as Python prints them."""
    tool = held or ToolCall(name=reading.text("tool.name", "traceloop.entity.name") or reading.raw.name)
    arguments = given.get("inputs") or unwrap.arguments(given.get("input_str"))
    outcome = unwrap.result(returned.get("output"))
    tool = replace(
        tool, arguments=arguments, result=outcome.result, error=failure(reading.raw) or outcome.error,
        call_id=tool.call_id or outcome.call_id,
    )  # fmt: skip
    return {"tool": tool, "input": tool.arguments, "output": tool.result}


def _labels(reading: SpanReading, given: dict[str, Json], fields: SpanFields) -> None:
    """The application's metadata of the run; LangGraph's own tags and metadata are among it."""
    metadata = given.get("metadata")
    if tags := labels.tags_of(given.get("tags")):
        fields["tags"] = tags
        reading.note("tags", _IN)
    if isinstance(metadata, dict):
        for field in _CONTEXT:
            fields[field] = as_text(metadata.get(field))
        kept = {k: v for k, v in metadata.items() if not k.startswith(_OWN_METADATA) and k not in _CONTEXT}
        if kept:
            fields["metadata"] = kept
            reading.note("metadata", _IN)


def _llamaindex(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Every step of a LlamaIndex workflow is a task of one name, recognised by its output.

    A step that ran a tool names it and its arguments; one of an agent names the agent. The request is in the output of
    the first step.
    """
    returned = unwrap.from_json(reading.value("output", _OUT))
    out = returned if isinstance(returned, dict) else {}
    tool = as_text(unwrap.plain(reading.attributes.get("tool.name"))) or as_text(out.get("tool_name"))
    if kind is not SpanKind.CHAIN or "traceloop.span.kind" not in reading.attributes:
        return kind
    if tool is not None and ("tool_output" in out or "raw_output" in out or "tool.name" in reading.attributes):
        fields |= _llamaindex_tool(reading, tool, out)
        return SpanKind.TOOL
    if (agent := as_text(out.get("current_agent_name"))) is not None:
        fields["agent"] = agent
        reading.note("agent", f"{_OUT}: current_agent_name")
    ended = out.get("result")
    stated = ended if isinstance(ended, dict) else out
    answered = messages.read(stated.get("response"))
    fields["output"] = messages.last_text(answered, "assistant") or ("" if answered else returned)
    if isinstance(requested := out.get("input"), list):
        fields["output"] = None
        fields["input"] = messages.last_text(messages.read(requested), "user")
        reading.note("input", f"{_OUT}: input")
    return kind


def _llamaindex_tool(reading: SpanReading, name: str, out: dict[str, Json]) -> SpanFields:
    held = out.get("tool_output", out)
    given = out.get("tool_kwargs") or (held.get("raw_input") if isinstance(held, dict) else None)
    if given is not None:
        reading.note("tool.arguments", f"{_OUT}: arguments")
    else:
        given = unwrap.plain(reading.value("tool.arguments", "tool.arguments", "traceloop.entity.input"))
    reading.note("tool.name", "tool.name" if "tool.name" in reading.attributes else f"{_OUT}: tool_name")
    return reading.tool_run(name, given, held, call_id=as_text(out.get("tool_id")))


def _crewai(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Crews and tasks of CrewAI call themselves agents, and are reported under keys of their own.

    A task and its result are on the task's span and, printed, on the crew's; an agent's span has neither.
    """
    if _TASKS in reading.attributes or _RESULT in reading.attributes:
        reading.no_agent(fields)
        fields["output"] = unwrap.answer(reading.value("output", _RESULT))
        # As they were carried out before as they were written: inputs of the crew are filled into them.
        for key in (_TASKS_DONE, _TASKS):
            tasks = unwrap.decoded(reading.attributes.get(key))
            first = tasks[0] if isinstance(tasks, list) and tasks else None
            if isinstance(first, dict) and (described := as_text(first.get("description"))):
                fields["input"] = described
                reading.note("input", f"{key}: description")
                break
        return SpanKind.CHAIN
    if kind is SpanKind.AGENT:
        fields["agent"] = reading.text("agent", "gen_ai.agent.name", "crewai.agent.role")
        fields["agent"] = fields["agent"] or reading.raw.name.removesuffix(".agent")
    elif kind is SpanKind.CHAIN:
        reading.no_agent(fields)
        fields["input"] = reading.text("input", "crewai.task.description")
        fields["output"] = unwrap.answer(reading.value("output", _OUT))
    return kind


def _speaks_old(raw: RawSpan) -> bool:
    """Whether the span is a model call as versions before the conventions report it."""
    return _REQUEST in raw.attributes or f"{_PROMPT}0.role" in raw.attributes or f"{_PROMPT}0.content" in raw.attributes


def _adapt_old(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    if (stated := reading.text("kind", _REQUEST)) is not None:
        kind = _OLD_KINDS.get(stated, SpanKind.LLM)
    requested = _messages(reading, "input", _PROMPT, "user")
    answered = _messages(reading, "output", _COMPLETION, "assistant")
    if requested:
        fields |= messages.asked(requested)
    if messages.hold_something(answered):
        fields |= messages.answered(answered)
    elif answered:
        fields |= {"output": "", "output_messages": answered}
    return kind


def _messages(reading: SpanReading, field: str, prefix: str, role: str) -> tuple[Message, ...]:
    found: list[Json] = []
    for entry in numbered_maps(tree(reading, prefix)):
        calls: list[Json] = [*numbered_maps(entry.get("tool_calls"))]
        found.append({
            "role": entry.get("role") or role, "content": messages.content(entry.get("content")), "tool_calls": calls,
            "function_call": entry.get("function_call"), "tool_call_id": entry.get("tool_call_id"),
        })  # fmt: skip
    if found:
        reading.note(field, f"{prefix}*")
    return messages.read(found)


_FRAMEWORKS: dict[str, genai.Adapt] = {
    "opentelemetry.instrumentation.langchain": _langchain,
    "opentelemetry.instrumentation.llamaindex": _llamaindex,
    "opentelemetry.instrumentation.crewai.instrumentation": _crewai,
    "opentelemetry.instrumentation.google_generativeai": _google,
    "opentelemetry.instrumentation.bedrock": _bedrock,
}
DIALECT = genai.dialect("openllmetry", speaks, _adapt, switch=SWITCH)
OLD = genai.dialect(
    "openllmetry_old", _speaks_old, _adapt_old, switch=SWITCH,
    reads="OpenLLMetry before the GenAI conventions (to 0.4x): model calls with one attribute a message, numbered.",
)  # fmt: skip
