"""Token counts by the words of their names, wherever they stand: ``acme.promptTokens``, ``{"usage": {"input": 3}}``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sidejudge.integrations.dialects.model_call import from_details, usage, whole
from sidejudge.scoring.trace.span import Json, Usage

from .words import words

_IN: Final = frozenset({"prompt", "input", "inputs", "request", "in"})
_OUT: Final = frozenset({"completion", "output", "outputs", "generated", "candidates", "response", "out"})
_CACHED: Final = frozenset({"cache", "cached"})
_PARTS: Final = frozenset({
    "audio", "text", "image", "video", "accepted", "rejected", "prediction", "per", "second", "creation", "write",
    "written", "cost", "limit", "max", "budget", "context", "window", "price", "ms", "duration", "size", "no",
    "average",
})  # fmt: skip
"""Words that mark a count as a part's, or as something other than used tokens."""
_REASONED: Final = frozenset({"reasoning", "thoughts", "thinking"})
_BODIES: Final = ("usage", "token_usage", "tokenUsage", "usage_metadata", "usageMetadata", "usage_details", "metrics",
                 "tokens", "token_counts", "tokenCounts")  # fmt: skip
_COUNTED: Final = frozenset({"token", "tokens", "eval"})
_DEEPEST, _MANY = 5, 20
_FEW: Final = 3
"""Most items of a list that are searched: of several answers the first."""


def by_words(counts: Iterable[tuple[str, object]]) -> Usage | None:
    """Usage from named counts; None where one is missing or ambiguous, or the total contradicts them."""
    found: dict[str, int] = {}
    counts = list(counts)
    apart, written = 0, 0
    for name, value in counts:
        named = words(name)
        if {"cache", "creation"} <= set(named):
            written += whole(value) or 0
            apart += 0 if {"input", "prompt"} & set(named) else whole(value) or 0
        slot = _slot(named)
        number = whole(value) if slot is not None else None
        if slot is None or number is None:
            continue
        if found.setdefault(slot, number) != number:
            return None
    total = found.get("total")
    prompt, completion = found.get("input"), found.get("output")
    cached = found.get("cached", 0)
    if prompt is None and (uncached := found.get("uncached")) is not None:
        prompt, cached, apart = uncached + cached + written, 0, 0
    if prompt is None and completion is None:
        return None
    if total is not None:
        read, written = prompt or 0, completion or 0
        if total not in (read + written, read + written + cached):
            return None
        prompt, completion = total - written, written
    elif prompt is not None and _leaves_cached_out(name for name, _ in counts):
        prompt += cached + apart
    return usage(prompt, completion, found.get("cached"), found.get("reasoned"))


def _leaves_cached_out(names: Iterable[str]) -> bool:
    """Whether input tokens leave cached ones out, as Anthropic counts, which also counts tokens written to the cache.

    Where a count is called ``cache_creation_input_tokens``, a client may have added it up, as the conventions want.
    """
    cached = [set(words(name)) for name in names if "cache" in words(name)]
    return any("creation" in named for named in cached) and not any(named & _IN for named in cached)


def _slot(named: tuple[str, ...]) -> str | None:
    there = set(named)
    if there & _PARTS:
        return None
    if there & _REASONED:
        return "reasoned"
    if "uncached" in there or ("non" in there and there & _CACHED):
        return "uncached"
    if there & _CACHED:
        return "cached"
    # The last of the two directions counts: ``prompt.completion_tokens`` are of the completion.
    for word in reversed(named):
        if word in _IN:
            return "input"
        if word in _OUT:
            return "output"
        if word == "total":
            return "total"
    return "output" if "eval" in there else None  # Ollama's counts: ``prompt_eval_count``, ``eval_count``


def in_body(value: Json, depth: int = _DEEPEST) -> Usage | None:
    """Usage in a response's body, under a usual key or under the first few keys of maps in it."""
    if isinstance(value, list) and depth > 0:
        inner = (in_body(item, depth - 1) for item in value[:_FEW])
        return next((found for found in inner if found is not None), None)
    if not isinstance(value, Mapping) or depth <= 0:
        return None
    for key in _BODIES:
        held = value.get(key)
        if isinstance(held, Mapping) and (found := of_map(held)) is not None:
            return found
    beside = {key: held for key, held in list(value.items())[:_MANY] if not _COUNTED.isdisjoint(words(key))}
    if len(beside) > 1 and (found := of_map(beside)) is not None:
        return found
    for held in list(value.values())[:_MANY]:
        if isinstance(held, Mapping | list) and (found := in_body(held, depth - 1)) is not None:
            return found
    return None


def of_map(held: Mapping[str, Json]) -> Usage | None:
    """Usage from a map of counts: as the APIs name them, else by the words of the names."""
    counts = {key: value for key, value in held.items() if not isinstance(value, str) and whole(value) is not None}
    if not counts:
        return None
    if any(words(key)[:1] == ("total",) for key in counts) and (found := by_words(counts.items())) is not None:
        return found
    return from_details(dict(held)) or by_words(counts.items())
