"""The kind of a span, where its dialect does not decide: by the stated kind, else by its contents and its name."""

from __future__ import annotations

from typing import Final

from sidejudge.integrations.dialects import unwrap
from sidejudge.scoring.trace.span import SpanKind

from . import kinds, values
from .contents import PLAIN_IN, PLAIN_OUT, SpanContents, in_words, plain, unnested
from .sources import NamedValue
from .words import is_way, words

_CALLING: Final = frozenset({"llm", "chat", "completion", "completions", "generate", "generation", "inference"})
_OF_TOOLS: Final = frozenset({"arguments", "args", "result", "observation"})
_NODES: Final = ("workflow", "nodes")
_CERTAIN_KINDS: Final = frozenset(
    {
        ("span", "kind"),
        ("span", "attributes"),
        ("span", "type"),
        ("observation", "type"),
        ("operation", "name"),
        ("run", "type"),
        ("type", "node"),
    }
)
_TYPE: Final = ("span", "type")
_NEMO: Final = (("nat", "span", "kind"), "FUNCTION")
_PROMPTFLOW: Final = (("span", "type"), "Function")
_OF_STEPS: Final = frozenset({("step", "kind"), ("step", "type"), ("node", "kind"), ("node", "type")})
_CHECKING: Final = frozenset({SpanKind.EVALUATOR, SpanKind.GUARDRAIL})
"""Kinds of steps that need no contents of their own: what they look at stands below them."""
_RUNS: Final = frozenset({"agent", "run", "invoke", "execute", "start", "session"})


def settled(there: SpanContents) -> tuple[SpanKind, str]:
    """The kind of the span with its evidence; ``OTHER`` without any.

    ``OTHER``, too, for a part of a call of a tool, or one of which nobody could say whose.
    """
    kind, source = _stated_kind(there) or _shown_kind(there) or (SpanKind.OTHER, "")
    if kind is SpanKind.CHAIN and (agent := there.text("agent")) and agent[0] == there.span.name:
        kind, source = SpanKind.AGENT, agent[1]
    elif kind is SpanKind.AGENT and (_is_workflow(there) or _wraps_call(there)):
        kind = SpanKind.CHAIN
    if kind is SpanKind.TOOL and there.tool_name() is None:
        return SpanKind.OTHER, ""
    return kind, source


def _is_workflow(there: SpanContents) -> bool:
    """Whether a stated agent is a graph: its nodes are listed, or it only has the name of a workflow."""
    for key, value in there.raw.attributes.items():
        if words(key)[-2:] == _NODES and isinstance(nodes := unwrap.decoded(value), list):
            return "agent" not in nodes
    return there.workflow is not None and not there.of("agent")


def _wraps_call(there: SpanContents) -> bool:
    """Whether a stated agent is named after its model, and answered without calling a tool."""
    model = there.text("requested_model")
    answers = [seen.messages for _, seen in there.outs if seen.messages]
    called = any(message.tool_calls for answer in answers for message in answer)
    return model is not None and bool(answers) and not called and there.span.name.endswith(f" {model[0]}")


def _converses(there: SpanContents) -> bool:
    """Whether the span was asked something in words and answered so: an agent in a shop's records does neither."""
    asked = any(plain(source, PLAIN_IN) and in_words(seen, unwrap.task) for source, seen in there.ins)
    return asked and any(plain(source, PLAIN_OUT) and in_words(seen, unwrap.answer) for source, seen in there.outs)


def _stated_kind(there: SpanContents) -> tuple[SpanKind, str] | None:
    """The kind that an attribute names; a bare ``type`` only where the span shows something that fits it."""
    stated = [
        (kind, source.name, _is_certain(kind, words(source.name)[-2:]) or _states_tool(there, kind, source))
        for source in there.of("kind")
        if source.attribute and "tool" not in words(source.name)[:-1] and (kind := _of_word(there, source)) is not None
    ]
    stated.sort(key=lambda each: (each[0] is SpanKind.CHAIN, not each[2]))
    other = _is_something_else(there)
    for kind, name, certain in stated:
        if certain or (kind is not SpanKind.CHAIN and not other and _fits(there, kind)):
            return kind, name
    return None


def _of_word(there: SpanContents, source: NamedValue) -> SpanKind | None:
    """The kind that an attribute's value names; beside tools, functions of NeMo and promptflow are the program's."""
    kind = kinds.stated(source.value)
    if kind is not SpanKind.TOOL:
        return kind
    said = words(source.name), source.value
    of_program = said == _NEMO or (said == _PROMPTFLOW and there.raw.attributes.get("framework") == "promptflow")
    return SpanKind.CHAIN if of_program else kind


def _is_something_else(there: SpanContents) -> bool:
    """Whether the span's own type is none of the kinds (``memory``): others then say to whom it belongs."""
    own = (source.value for source in there.of("kind") if source.attribute and words(source.name) == _TYPE)
    return any(isinstance(value, str) and kinds.stated(value) is None for value in own)


def _is_certain(kind: SpanKind, ending: tuple[str, ...]) -> bool:
    """Whether a name that ends so states this kind whatever else the span shows."""
    return ending in _CERTAIN_KINDS or (kind in _CHECKING and ending in _OF_STEPS)


def states_tool(there: SpanContents) -> bool:
    """Whether an attribute says in so many words that the span is a call of a tool: ``tool_call``."""
    said = [source.value for source in there.of("kind") if source.attribute and isinstance(source.value, str)]
    return any(kinds.stated(value) is SpanKind.TOOL and "tool" in words(value) for value in said)


def _states_tool(there: SpanContents, kind: SpanKind, source: NamedValue) -> bool:
    """Whether a kind is called a tool in that word, of a span that was given arguments by name."""
    named = kind is SpanKind.TOOL and isinstance(source.value, str) and "tool" in words(source.value)
    return named and any(isinstance(seen.read, dict) and not seen.messages for _, seen in there.ins)


def _fits(there: SpanContents, kind: SpanKind) -> bool:
    if kind is SpanKind.LLM:
        mapped = there.span.input is not None or there.span.output is not None
        return mapped or bool(there.ins or there.outs or there.of("usage"))
    if kind is SpanKind.AGENT and any(in_words(seen, unwrap.task) for _, seen in (*there.ins, *there.outs)):
        return True
    among = PLAIN_IN | PLAIN_OUT | (_OF_TOOLS if kind is SpanKind.TOOL else frozenset())
    worded = any(plain(source, among) or is_way(source.name) for source, _ in (*there.ins, *there.outs))
    return worded or bool(there.of("tool", "agent", "documents"))


def _shown_kind(there: SpanContents) -> tuple[SpanKind, str] | None:
    """The kind by the span's contents, else by its name together with them."""
    chat_in, chat_out = (
        next((source.name for source, seen in among if seen.messages and "tool" not in words(source.name)), None)
        for among in (there.ins, there.outs)
    )
    model = there.text("model", "requested_model")
    used = there.usage(SpanKind.OTHER)
    if (chat_in or chat_out) and (model or used):
        return SpanKind.LLM, chat_in or chat_out or ""
    if model and used:
        return SpanKind.LLM, used[1]
    if (used or (model and there.ins and there.outs)) and not _CALLING.isdisjoint(words(there.span.name)):
        return SpanKind.LLM, used[1] if used else model[1] if model else ""
    if not chat_in and not chat_out and (tool := _shown_tool(there)) is not None:
        return SpanKind.TOOL, tool
    for source in there.of("documents"):
        if values.is_documents(unnested(unwrap.decoded(source.value))):
            return SpanKind.RETRIEVER, source.name
    if (agent := _shown_agent(there)) is not None:
        return SpanKind.AGENT, agent
    if chat_in and chat_out:
        return SpanKind.CHAIN, chat_in
    return None


def _shown_tool(there: SpanContents) -> str | None:
    """What shows that a tool was called: its name beside what it was given, the span's name, or the call itthere."""
    tool = there.text("tool")
    if tool and _says_name(tool[1]) and (there.ins or there.outs or there.of("call_id", "parameters")):
        return tool[1]
    if tool and (given := there.arguments()) is not None and isinstance(given[0], dict):
        return tool[1]
    if (called := there.called()) is not None:
        return called[1]
    given = there.arguments() if kinds.tool_name(there.span.name) else None
    return "span name" if given is not None and isinstance(given[0], dict) else None


def _shown_agent(there: SpanContents) -> str | None:
    """The evidence of an agent's run: its name in the span's name or with its request, or the span's name."""
    agent = there.text("agent")
    if agent and _says_name(agent[1]) and agent[0] in there.span.name:
        return agent[1]
    if agent and (_converses(there) or (_runs_agent(there) and (there.ins or there.outs))):
        return agent[1]
    return "span name" if kinds.agent_name(there.span.name) and (there.ins or there.outs) else None


def _runs_agent(there: SpanContents) -> bool:
    """Whether the span's name says that an agent ran, and not which: ``acme.agent.run``."""
    named = words(there.span.name)[-2:]
    return "agent" in named and _RUNS.issuperset(named)


def _says_name(key: str) -> bool:
    """Whether a key says that its value is a name, and not only whose it is: ``agent.name``, no ``agent``."""
    return words(key)[-1:] != ("agent",) and words(key)[-1:] != ("tool",)
