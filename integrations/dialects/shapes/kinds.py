"""The kind of a span, by clients' words: in an attribute that names a kind, else in the span's name."""

from __future__ import annotations

import re
from typing import Final

from sidejudge.integrations.dialects import unwrap
from sidejudge.scoring.trace.span import SpanKind

from .words import words

_KINDS: Final = {
    SpanKind.LLM: (
        "llm", "chat", "generation", "completion", "model", "chat_model", "llm_request", "llm_call", "model_call",
        "model_request", "model_inference", "model_generation", "text_completion", "chat_completion",
        "generate_content", "generate", "inference", "text_generation", "converse", "call_llm", "responses",
        "acompletion", "atext_completion", "aresponses", "anthropic_messages", "aanthropic_messages",
    ),
    SpanKind.TOOL: (
        "tool", "function", "tool_call", "execute_tool", "function_call", "tool_execution", "function_tool", "tool_use",
        "call_tool", "action_tool", "mcp_tool_call", "mcp_tool",
    ),
    SpanKind.AGENT: ("agent", "agent_run", "invoke_agent", "run_agent", "agent_execution", "agent_invocation"),
    SpanKind.RETRIEVER: (
        "retriever", "retrieval", "rag", "vector_search", "retrieve", "reranker", "rerank", "search_memory",
    ),
    SpanKind.EMBEDDING: ("embedding", "embeddings", "embed", "embedder", "aembedding"),
    SpanKind.CHAIN: (
        "chain", "workflow", "task", "flow", "step", "pipeline", "span", "default", "graph", "node", "invoke_workflow",
        "agent_step", "model_step", "unknown",
    ),
    SpanKind.OTHER: ("create_agent",),
    SpanKind.EVALUATOR: ("evaluator", "evaluation", "evaluate"),
    SpanKind.GUARDRAIL: ("guardrail", "guardrails", "moderation"),
}  # fmt: skip
_BY_WORD: Final = {word: kind for kind, named in _KINDS.items() for word in named}

_NAMED_TOOL: Final = re.compile(
    r"(?:(?:execute|call|run|use|invoke)?[ _]?tool(?:[ _]call)?s?|function[ _](?:call|tool))(?:[ :/.]+)(?P<name>\S.*)",
    re.IGNORECASE,
)
_NAMED_AGENT: Final = re.compile(
    r"(?:invoke|run|call|execute)?[ _]?agent(?:[ _]run)?(?:[ :/.]+)(?P<name>\S.*)", re.IGNORECASE
)
_TOOL_LAST: Final = re.compile(r"(?P<name>[^./:\\()]+)[.]tool", re.IGNORECASE)
_AGENT_LAST: Final = re.compile(r"(?P<name>[^./:\\()]+)[.]agent", re.IGNORECASE)
_CALLED: Final = re.compile(
    r"(?:call|execute|invoke|run|use)[ :]+(?P<name>[A-Za-z]\w*(?:[._-]|(?<=[a-z])(?-i:(?=[A-Z])))[\w.-]+)",
    re.IGNORECASE,
)
"""A verb before a name of several words that are written as one, as names in programs are."""


def stated(value: object) -> SpanKind | None:
    """The kind that an attribute's value names; None for one that names none.

    >>> stated("TOOL_CALL"), stated("voice")
    (<SpanKind.TOOL: 'tool'>, None)
    """
    if isinstance(value, str) and value.startswith("{"):
        held = unwrap.decoded(value)
        value = held.get("type") or held.get("kind") if isinstance(held, dict) else None
    return _BY_WORD.get("_".join(words(value))) if isinstance(value, str) and len(value) <= 40 else None


def tool_name(span_name: str) -> str | None:
    """The tool in a span's name such as ``execute_tool lookup``, ``tool: lookup`` and ``lookup.tool``."""
    return _named(span_name, _NAMED_TOOL) or _named(span_name, _TOOL_LAST)


def called(span_name: str) -> str | None:
    """The name behind the verb in ``call track_parcel``; None where what follows may be words of a name.

    >>> called("call track_parcel"), called("run tests")
    ('track_parcel', None)
    """
    return _named(span_name, _CALLED)


def agent_name(span_name: str) -> str | None:
    """The agent in a span's name such as ``invoke_agent planner`` and ``planner.agent``."""
    return _named(span_name, _NAMED_AGENT) or _named(span_name, _AGENT_LAST)


def _named(span_name: str, form: re.Pattern[str]) -> str | None:
    found = form.fullmatch(span_name.strip())
    return found["name"].strip() if found else None
