"""The meaning of an attribute's value by its name, with any prefix: ``acme.llm.prompt`` is an input.

A name is read from its end. ``acme.response.text`` is an output, ``acme.response.id`` is none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, TypeAlias

Meaning: TypeAlias = Literal[
    "input", "output", "content", "system", "documents", "parameters", "kind", "agent", "node", "tool", "name",
    "own_name", "call_id", "model", "requested_model", "response_id", "usage", "cost_usd", "error", "outcome",
]  # fmt: skip
"""``content`` may be an input or an output: its value decides. ``parameters`` are a tool's arguments or nothing.
``own_name`` is a name of anything: of the span's own agent or tool where the span's name holds it."""

_WAY: Final = re.compile(r"[.:](in|out)\Z")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_FOREIGN: Final = re.compile(
    r"(?:http|url|db|rpc|net|network|messaging|exception|otel|aws|azure|cloud|faas|k8s|user_agent|feature_flag|graphql)"
    r"(?:[._:]|\Z)"
    r"|(?:host|os|process|thread|code|server|client|peer|telemetry|container|source|destination|browser|device|session"
    r"|user|enduser|deployment|service|tags?|logfire)(?:[.:]|\Z)"
)
"""Namespaces that hold no contents of a model, though their keys may end alike (``db.query.text``)."""
_NEVER: Final = frozenset({
    "metadata", "template", "templates", "schema", "headers", "header", "config", "settings", "options", "definitions",
    "definition", "tools", "functions", "summary", "preview", "invocation", "path", "url", "uri", "tags", "stacktrace",
    "logprobs", "embedding", "embeddings", "vector", "vectors", "score", "scores", "evaluation", "feedback", "previous",
    "association",
})  # fmt: skip
"""Words that exclude contents, wherever in the name they stand."""

_IN: Final = frozenset({
    "input", "inputs", "prompt", "prompts", "question", "query", "request", "requests", "arguments", "args", "kwargs",
    "task", "instruction",
})  # fmt: skip
_OUT: Final = frozenset({
    "output", "outputs", "completion", "completions", "response", "responses", "answer", "answers", "reply", "replies",
    "result", "results", "return", "returned", "returns", "generation", "generations", "choices", "choice",
    "candidates", "generated", "observation",
})  # fmt: skip
_NEUTRAL: Final = frozenset({
    "text", "content", "contents", "message", "messages", "msg", "msgs", "body", "value", "data", "json", "raw",
    "payload", "str", "string", "parts", "chat", "ctx", "conversation", "transcript", "dialog", "dialogue", "history",
    "turns", "final", "full", "all",
})  # fmt: skip
_BESIDE_IN: Final = frozenset({"user", "human", "customer", "start", "sent", "asked"})
_BESIDE_OUT: Final = frozenset({"assistant", "bot", "end", "received", "answered"})
"""Words that give a direction to what stands behind them, and none alone: ``user.message``, ``ChatStart: messages``."""
_SYSTEM: Final = frozenset({"system", "instructions", "preamble"})
_DOCUMENTS: Final = frozenset({"documents", "docs", "contexts", "chunks", "passages", "retrieved"})

_PAIRS: Final[dict[tuple[str, ...], Meaning]] = {
    ("agent", "name"): "agent", ("agent", "label"): "agent", ("node", "id"): "node", ("subagent", "name"): "node",
    ("tool", "name"): "tool", ("function", "name"): "tool", ("call", "name"): "tool",
    ("definition", "name"): "tool", ("entity", "name"): "name",
    ("call", "id"): "call_id", ("use", "id"): "call_id", ("tool", "id"): "call_id",
    ("response", "model"): "model", ("model", "name"): "requested_model", ("model", "id"): "requested_model",
    ("request", "model"): "requested_model",
    ("response", "id"): "response_id", ("completion", "id"): "response_id",
    ("span", "kind"): "kind", ("span", "attributes"): "kind", ("span", "type"): "kind",
    ("observation", "type"): "kind", ("operation", "name"): "kind",
    ("operation", "type"): "kind", ("run", "type"): "kind", ("step", "type"): "kind", ("node", "type"): "kind",
    ("event", "type"): "kind", ("request", "type"): "kind",
    ("status", "message"): "error", ("error", "message"): "error", ("is", "error"): "outcome",
    ("eval", "count"): "usage",
    ("total", "cost"): "cost_usd", ("cost", "usd"): "cost_usd", ("cost", "total"): "cost_usd",
}  # fmt: skip
_LAST: Final[dict[str, Meaning]] = {
    "model": "requested_model", "kind": "kind", "subtype": "kind", "type": "kind", "cost": "cost_usd", "usage": "usage",
    "metrics": "usage", "parameters": "parameters", "params": "parameters", "error": "error",
    "level": "outcome", "state": "outcome", "status": "outcome", "success": "outcome",
    "operation": "kind", "op": "kind", "category": "kind", "span": "kind", "node": "kind",
    "layer": "kind",
    "agent": "agent", "tool": "tool", "name": "own_name",
}  # fmt: skip
_DOERS: Final = frozenset({
    "span", "observation", "trace", "event", "run", "step", "task", "job", "operation", "action", "execution",
    "invocation", "process", "request", "response", "result", "call", "tool", "function", "agent", "subagent", "node",
    "graph", "workflow", "chain", "pipeline", "turn", "llm", "model", "chat", "completion", "generation", "inference",
    "embedding", "retrieval", "retriever", "search", "query", "final", "exit", "overall", "ai", "genai",
})  # fmt: skip
"""Words, after the client's name, whose outcome is the call's own; ``acme.validation.status`` is a check's."""
_BEHIND_CLIENT: Final = re.compile(r"\A[^.]*\.")
_BROWSER: Final = ("user", "agent")
_EARLIER: Final = "previous"
_ERRORS: Final = frozenset({"error", "errors", "exception"})
"""Words behind which no neutral one is a content: ``error.data`` describes a failure."""
_OF_CALLS: Final = frozenset({("function", "name"), ("definition", "name")})
_CALLING: Final = frozenset({"tool", "call", "calling"})
_TOKENS: Final = frozenset({"token", "tokens", "usage"})


@lru_cache(maxsize=4096)
def words(key: str) -> tuple[str, ...]:
    """The words of a name in lower case, numbers left out.

    >>> words("acme:model.promptTokens_2")
    ('acme', 'model', 'prompt', 'tokens')
    """
    return tuple(word.lower() for word in _WORDS.findall(key[:200]))


@lru_cache(maxsize=4096)
def meaning(key: str) -> Meaning | None:
    """What a value under this name is; None where the name does not say.

    >>> meaning("acme.response.text"), meaning("acme.response.id"), meaning("acme.response.length")
    ('output', 'response_id', None)
    >>> meaning("previous_response_id")  # of another call
    """
    if _FOREIGN.match(key):
        return None
    named = words(key)
    if not named or named[-2:] == _BROWSER or _EARLIER in named:
        return None
    if (way := _WAY.search(key)) is not None and _TOKENS.isdisjoint(named):
        return "input" if way[1] == "in" else "output"
    if (found := _PAIRS.get(named[-2:])) is not None or (found := _LAST.get(named[-1])) is not None:
        if found == "requested_model" and "response" in named:
            return "model"
        if named[-2:] in _OF_CALLS and _CALLING.isdisjoint(named[:-1]):
            return None  # any function of a program, or what anything is defined by
        return None if found == "outcome" and not _is_own_outcome(key) else found
    if not _TOKENS.isdisjoint(named):
        return "usage"
    return None if not _NEVER.isdisjoint(named) else _contents(named)


def _is_own_outcome(key: str) -> bool:
    """Whether an outcome describes the span's own work, not something inside it."""
    named = words(_BEHIND_CLIENT.sub("", key, count=1))
    owner = named[:-2] if named[-2:] == ("is", "error") else named[:-1]
    return not owner or owner[-1] in _DOERS or "." not in key


def foreign(key: str) -> bool:
    """Whether a name cannot hold a model's contents: its namespace has none, or the name itself excludes them."""
    return _FOREIGN.match(key) is not None or (meaning(key) is None and not _NEVER.isdisjoint(words(key)))


def _contents(named: tuple[str, ...]) -> Meaning | None:
    last = len(named) - 1
    for place in range(last, -1, -1):
        word = named[place]
        if word in _DOCUMENTS:
            return "documents"
        if word in _SYSTEM and (place < last or word != "system"):
            return "system"
        if word in _IN:
            return "system" if place and named[place - 1] == "system" else "input"
        if word in _OUT:
            return "output"
        if place < last and word in _BESIDE_IN:
            return "input"
        if place < last and word in _BESIDE_OUT:
            return "output"
        if word not in _NEUTRAL:
            return None if place == last or word in _ERRORS else "content"
    return "content"


def is_way(key: str) -> bool:
    """Whether a name ends with ``.in`` or ``.out``."""
    return _WAY.search(key) is not None


@lru_cache(maxsize=4096)
def directness(key: str) -> int:
    """How directly a name says what it holds: 2 with its last word, 1 with one before; 0 where it only may."""
    named = words(key)
    if named and (named[-1] in _IN or named[-1] in _OUT or named[-1] in _DOCUMENTS or is_way(key)):
        return 2
    return 1 if meaning(key) in ("input", "output", "system") else 0
