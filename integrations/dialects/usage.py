"""Token counts in any vendor's words → ``Usage``."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sidejudge.scoring.trace.span import Json, Usage

_ABSURD = 1e12
"""A trace has no million million tokens; a count beyond it is an error of its sender."""


def whole(value: object) -> int | None:
    """A count: a whole number, or a text that is one; negative, broken and absurd ones are unknown."""
    if type(value) is int:
        return value if 0 <= value < _ABSURD else None
    found = real(value)
    return int(found) if found is not None and 0 <= found < _ABSURD and found == int(found) else None


def real(value: object) -> float | None:
    """A finite number, or a text that is one; truth values are no numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def usage(prompt: int | None, completion: int | None, cached: int | None, reasoning: int | None) -> Usage | None:
    """Usage from four counts, None when neither of the first two is known."""
    if prompt is None and completion is None:
        return None
    return Usage(
        input=prompt or 0, output=completion or 0, cached_input=cached or 0, reasoning_output=reasoning or 0
    )  # fmt: skip


def from_details(details: Json) -> Usage | None:
    """Usage from an API's own usage object or from named buckets (Langfuse's ``usage_details``).

    ``prompt_tokens`` (OpenAI) includes what was cached. In buckets ``input`` and each ``input_…`` are disjoint, unless
    the given total shows that they are not. Anthropic's ``input_tokens`` leaves cached tokens out, and is known by
    its ``cache_read_input_tokens``.
    """
    if not isinstance(details, Mapping):
        return None
    if "prompt_tokens" in details or "completion_tokens" in details:
        return usage(
            whole(details.get("prompt_tokens")), whole(details.get("completion_tokens")),
            _inner(details, "prompt_tokens_details", "cached_tokens"),
            _inner(details, "completion_tokens_details", "reasoning_tokens"),
        )  # fmt: skip
    if "input_tokens" in details or "output_tokens" in details:
        read, written = whole(details.get("cache_read_input_tokens")), whole(details.get("cache_creation_input_tokens"))
        prompt = whole(details.get("input_tokens"))
        return usage(
            None if prompt is None else prompt + (read or 0) + (written or 0),
            whole(details.get("output_tokens")),
            read if read is not None else _inner(details, "input_tokens_details", "cached_tokens"),
            _inner(details, "output_tokens_details", "reasoning_tokens"),
        )
    return _from_buckets(details)


def _inner(details: Mapping[str, Json], group: str, key: str) -> int | None:
    held = details.get(group)
    return whole(held.get(key)) if isinstance(held, Mapping) else None


def _from_buckets(details: Mapping[str, Json]) -> Usage | None:
    prompt, completion, total = (whole(details.get(key)) for key in ("input", "output", "total"))
    if prompt is None and completion is None:
        return None
    more_in = {key: n for key, raw in details.items() if key.startswith("input_") and (n := whole(raw))}
    more_out = {key: n for key, raw in details.items() if key.startswith("output_") and (n := whole(raw))}
    disjoint = total is None or total != (prompt or 0) + (completion or 0)
    return usage(
        (prompt or 0) + (sum(more_in.values()) if disjoint else 0),
        (completion or 0) + (sum(more_out.values()) if disjoint else 0),
        sum(n for key, n in more_in.items() if "cache" in key),
        sum(n for key, n in more_out.items() if "reasoning" in key),
    )
