"""Tokens, cost and parameters of a model's call as a Langfuse reads them of a span.

Grounded in `extractUsageDetails`, `extractCostDetails` and `extractModelParameters` of
`packages/shared/src/server/otel/OtelIngestionProcessor.ts` and its test of usage (langfuse/langfuse, summer of 2026).
What a server counts and prices itself, where a span says nothing, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fakes.langfuse.otel_values import read

_PREFIXES = ("gen_ai.usage.", "llm.token_count.")
_OF = {
    "input": ("prompt_tokens", "input_tokens", "prompt"),
    "output": ("completion_tokens", "output_tokens", "completion"),
    "total": ("total_tokens", "total"),
    "input_cached_tokens": ("cache_read.input_tokens", "cache_read_tokens", "details.cache_read_tokens",
                            "details.cache_read_input_tokens", "prompt_details.cache_read"),
    "input_cache_creation": ("cache_creation.input_tokens", "cache_write_tokens", "details.cache_write_tokens",
                             "details.cache_creation_input_tokens", "prompt_details.cache_write"),
    "output_reasoning_tokens": ("reasoning_tokens", "reasoning.output_tokens", "thoughts_tokens",
                                "completion_details.reasoning"),
}  # fmt: skip
_KNOWN = frozenset(key for keys in _OF.values() for key in keys)


def usage_of(held: Mapping[str, Any], scope: str) -> dict[str, Any]:
    if isinstance(stated := read(held.get("langfuse.observation.usage_details")), dict):
        return _totalled(stated)
    return _totalled(_of_vercel(held) if scope == "ai" else _generic(held))


def cost_of(held: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(stated := read(held.get("langfuse.observation.cost_details")), dict):
        return stated
    total = next(
        (held[key] for key in ("gen_ai.usage.cost", "llm.cost.total") if held.get(key) not in (None, "")), None
    )
    return {} if total is None else {"total": float(total)}


def parameters_of(held: Mapping[str, Any]) -> dict[str, Any]:
    for key in ("langfuse.observation.model.parameters", "llm.invocation_parameters", "model_config"):
        if isinstance(stated := read(held.get(key)), dict):
            return stated
    prefix = "gen_ai.request."
    return {key[len(prefix) :]: value for key, value in held.items() if key.startswith(prefix) and key[15:] != "model"}


def _generic(held: Mapping[str, Any]) -> dict[str, Any]:
    """Input without what was cached, output without what was thought; anything else under the name that it has."""
    counts: dict[str, float] = {}
    for key, value in held.items():
        prefix = next((each for each in _PREFIXES if key.startswith(each)), None)
        if prefix and key != "gen_ai.usage.cost" and isinstance(value, int | float):
            counts[key[len(prefix) :]] = value
    found = {key.removeprefix("details."): value for key, value in counts.items() if key not in _KNOWN}
    for name, keys in _OF.items():
        if (value := next((counts[key] for key in keys if key in counts), None)) is not None:
            found[name] = value
    return _apart(found, ("input_cached_tokens", "input_cache_creation"))


def _of_vercel(held: Mapping[str, Any]) -> dict[str, Any]:
    sources = {
        "input": ("gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens"),
        "output": ("gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens"), "total": ("ai.usage.tokens",),
        "input_cached_tokens": ("ai.usage.cachedInputTokens",),
        "output_reasoning_tokens": ("ai.usage.reasoningTokens",),
    }  # fmt: skip
    found = {name: next((held[key] for key in keys if key in held), None) for name, keys in sources.items()}
    reported = {name: value for name, value in found.items() if isinstance(value, int | float)}
    return _apart({"input": 0, "output": 0, **reported}, ("input_cached_tokens",))


def _apart(found: dict[str, Any], cached: tuple[str, ...]) -> dict[str, Any]:
    if "input" in found:
        found["input"] = max(0, found["input"] - sum(found.get(key, 0) for key in cached))
    if "output" in found:
        found["output"] = max(0, found["output"] - found.get("output_reasoning_tokens", 0))
    return found


def _totalled(usage: Mapping[str, Any]) -> dict[str, Any]:
    """A total that nobody gave is the sum of everything."""
    counted = [each for each in usage.values() if isinstance(each, int)]
    return {**usage, "total": usage.get("total", sum(counted))} if counted else {}
