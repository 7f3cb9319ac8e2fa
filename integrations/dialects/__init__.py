"""Dialects: how the spans of each instrumentation family become the normal form.

Detection is per span, because one trace mixes several dialects: the application's own spans, a framework's, an SDK's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.lexical.memory import remembered_by_names
from sidejudge.scoring.trace.span import Span, SpanKind

from . import (
    genai,
    genai_clients,
    google_adk,
    haystack,
    langfuse,
    langsmith,
    litellm,
    llamaindex,
    mapped,
    mlflow,
    monocle,
    openinference,
    openllmetry,
    pydantic,
    vercel_ai,
)
from .cut_off import without_cut
from .mapped import map_attributes
from .reading import Dialect, SpanReading
from .shapes.read import complete

__all__ = ["DIALECTS", "GENERIC", "Dialect", "install", "map_attributes", "normalise"]

GENERIC = Dialect(
    name="generic",
    speaks=lambda _: True,
    by_names=True,
    normalise=lambda raw: SpanReading(raw).span("generic", SpanKind.OTHER),
    reads="Whatever no other dialect speaks: an HTTP call, a database, an application's own span, an unknown client.",
)
"""The last resort: a span's place in the tree, its times, its error and its labels count; the rest is read by shape."""

DIALECTS: tuple[Dialect, ...] = (
    litellm.DIALECT,
    langfuse.DIALECT,
    openinference.DIALECT,
    langsmith.DIALECT,
    genai_clients.OPENAI_AGENTS,
    openllmetry.OLD,
    openllmetry.DIALECT,
    google_adk.DIALECT,
    genai_clients.SEMANTIC_KERNEL,
    genai_clients.STRANDS,
    genai_clients.AGENT_FRAMEWORK,
    vercel_ai.DIALECT,
    haystack.DIALECT,
    pydantic.PYDANTIC_AI,
    pydantic.LOGFIRE,
    genai_clients.OPENLIT,
    genai_clients.WEAVE,
    genai_clients.CLAUDE_CODE,
    genai_clients.NEMO_GUARDRAILS,
    genai_clients.FAST_AGENT,
    genai_clients.GEMINI_CLI,
    genai_clients.AGENTSCOPE,
    llamaindex.DIALECT,
    monocle.DIALECT,
    genai_clients.LANGWATCH,
    genai_clients.VOLTAGENT,
    mlflow.DIALECT,
    genai.DIALECT,
    GENERIC,
)
"""The dialects in order of trust: the first that matches a span normalises it; the last matches all."""


_MOST_USD: Final = 1e9
_installed: tuple[Dialect, ...] = DIALECTS


def install(more: Sequence[Dialect]) -> None:
    """Put dialects of plugins before the built-in ones, replacing earlier plugins."""
    global _installed  # noqa: PLW0603  # set once, when a process starts
    _installed = (*more, *DIALECTS)
    _candidates.clear()


def normalise(raw: RawSpan, *, dialects: tuple[Dialect, ...] | None = None) -> Span:
    """The span in normal form. Never raises: a span on which a dialect fails goes to the generic one, with a note."""
    known = _candidates[raw.scope_name, *raw.attributes] if dialects is None else None
    for dialect, sure in known or ((dialect, False) for dialect in dialects or ()):
        try:
            if sure or dialect.speaks(raw):
                return _completed(raw, dialect.normalise(raw))
        except Exception as error:  # noqa: BLE001 - a span is untrusted, and one must not cost the trace
            return _generic(raw, f"{dialect.name}: {type(error).__name__}: {error}")
    return _generic(raw, "detection: no dialect speaks for it")


def _in_question(names: tuple[str, ...]) -> tuple[tuple[Dialect, bool], ...]:
    """The dialects in question for a span of this scope and these keys; True marks one that is certain by these."""
    scope, *keys = names
    bare = RawSpan(
        trace_id="", span_id="", parent_id=None, name="", start_ns=0, end_ns=0, scope_name=scope,
        attributes=dict.fromkeys(keys),
    )  # fmt: skip
    found: list[tuple[Dialect, bool]] = []
    for dialect in _installed:
        if dialect.speaks(bare):
            return (*found, (dialect, True))
        if not dialect.by_names:
            found.append((dialect, False))
    return tuple(found)


_candidates = remembered_by_names(_in_question)


def _completed(raw: RawSpan, span: Span) -> Span:
    """The span with fields read by shape; fields that the dialect read are kept."""
    try:
        return _payable(without_cut(complete(raw, mapped.apply(raw, span)), raw.scope_name))
    except Exception as error:  # noqa: BLE001 - likewise untrusted
        note = f"{span.dialect}, after an error by shape: {type(error).__name__}: {error}"
        return replace(span, provenance={**span.provenance, "dialect": note})


def _payable(span: Span) -> Span:
    """The span without a cost that nobody can pay: sums of costs count upwards, and stay finite."""
    if span.cost_usd is None or 0.0 <= span.cost_usd <= _MOST_USD:
        return span
    return replace(span, cost_usd=None, provenance={k: v for k, v in span.provenance.items() if k != "cost_usd"})


def _generic(raw: RawSpan, note: str) -> Span:
    try:
        span = _completed(raw, GENERIC.normalise(raw))
    except Exception as error:  # noqa: BLE001 - likewise; its place in the tree is kept, nothing else
        note = f"{note}; {type(error).__name__}: {error}"
        span = SpanReading(raw).bare(GENERIC.name)
    return replace(span, provenance={**span.provenance, "dialect": f"generic, after an error in {note}"})
