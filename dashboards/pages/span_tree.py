"""Span tree: the spans of a trace under their parents, each with when it ran and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sidejudge.scoring.case.grounds import written
from sidejudge.scoring.trace.span import Json, Message, Span
from sidejudge.scoring.trace.trace import Trace

MOST = 200
"""Spans that are shown, in the order of the tree."""
_DEEPEST = 12
_TEXT, _LONGEST = 150_000, 1500
"""Characters of all spans together, and of one text, that are shown."""
_MOST_MESSAGES = 20
"""Messages of one span that are shown: the last ones."""
_WIDTH = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRow:
    """One span. ``opens``: its list begins here; ``closes``: so many lists end before it.

    ``x`` and ``length`` are when it ran, in the units of the drawing. ``call`` is what went in and what came
    out, ``facts`` are tokens, cost and why a model stopped.
    """

    span: Span
    name: str
    opens: bool
    closes: int
    took: str
    x: float
    length: float
    call: Sequence[tuple[str, str]]
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTree:
    """The rows in the order of the tree; ``depth`` lists are open at their end, ``more`` spans are left out."""

    rows: Sequence[SpanRow]
    depth: int
    count: int
    more: int
    width: int = _WIDTH


def span_tree(trace: Trace) -> SpanTree | None:
    """The tree, as deep as a page can show; None without a span."""
    if not trace.spans:
        return None
    begin = min(span.start_ns for span in trace.spans)
    whole = max(max(span.end_ns for span in trace.spans) - begin, 1)
    rows: list[SpanRow] = []
    depth, left = 0, _TEXT
    for span, level in _walk(trace):
        if len(rows) == MOST:
            break
        call = [(name, text[: min(left, _LONGEST + 1)]) for name, text in _call(span)] if left > 0 else []
        left -= sum(len(text) for _, text in call)
        x = min(_WIDTH - 2.0, (span.start_ns - begin) / whole * _WIDTH)
        rows.append(
            SpanRow(
                span=span, name=_name(span), opens=depth < level, closes=max(0, depth - level), took=_took(span), x=x,
                length=min(_WIDTH - x, max(2.0, (span.end_ns - span.start_ns) / whole * _WIDTH)),
                call=call,
                facts=list(_facts(span)),
            )
        )  # fmt: skip
        depth = level
    return SpanTree(rows=rows, depth=depth, count=len(trace.spans), more=max(0, len(trace.spans) - MOST))


def _walk(trace: Trace) -> Iterator[tuple[Span, int]]:
    """Every span once, parents first, with its level from 1; those in a cycle of parents at the end."""
    seen: set[str] = set()
    waiting = [(span, 1) for span in reversed(trace.tops)]
    while waiting:
        span, level = waiting.pop()
        if span.span_id in seen:
            continue
        seen.add(span.span_id)
        yield span, min(level, _DEEPEST)
        waiting.extend((child, level + 1) for child in reversed(trace.children.get(span.span_id, ())))
    yield from ((span, 1) for span in trace.spans if span.span_id not in seen)


def _name(span: Span) -> str:
    """The name of the span, with the tool's or the agent's where that is another."""
    of = span.tool.name if span.tool is not None else span.agent
    return span.name if not of or of in span.name else f"{span.name} · {of}"


def _call(span: Span) -> list[tuple[str, str]]:
    """What went into a span and came out of it: a tool's arguments and result, else messages, else input and output."""
    if (tool := span.tool) is not None:
        given: list[tuple[str, Json]] = [("arguments", tool.arguments), ("result", tool.result), ("error", tool.error)]
        return [(name, written(value)) for name, value in given if value is not None]
    if span.input_messages or span.output_messages:
        messages = (*span.input_messages, *span.output_messages)
        shown = [(message.role or "message", _message(message)) for message in messages[-_MOST_MESSAGES:]]
        return [(name, text) for name, text in shown if text]
    fields = (("input", span.input), ("output", span.output))
    return [(name, written(value)) for name, value in fields if value is not None]


def _message(message: Message) -> str:
    calls = (f"{call.name}({written(call.arguments)})" for call in message.tool_calls)
    return "\n".join(part for part in (message.text, *calls) if part)


def _facts(span: Span) -> Iterator[tuple[str, str]]:
    if span.usage is not None:
        counts = (("tokens in", span.usage.input), ("tokens out", span.usage.output))
        yield from ((name, f"{count:,}") for name, count in counts if count is not None)
    if span.cost_usd is not None:
        yield "cost", f"${span.cost_usd:.6g}"
    if span.finish_reason is not None:
        yield "stopped", span.finish_reason
    if span.first_token_s is not None:
        yield "first token after", f"{span.first_token_s * 1000:,.0f} ms"


def _took(span: Span) -> str:
    took = (span.end_ns - span.start_ns) / 1e6
    return f"{took:,.0f} ms" if took >= 10 else f"{took:.2g} ms"
