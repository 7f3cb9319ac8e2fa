"""Span tree: the spans of a trace under their parents, each with its time and its faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.trace.jsontext import mapping, objects
from sidejudge.scoring.trace.span import Json, Message, Span
from sidejudge.scoring.trace.trace import Trace

from .failing_metrics import scores_of

MOST = 200
"""Most spans that are shown, in the order of the tree, besides those with signs."""
_DEEPEST = 12
_TEXT, _LONGEST = 150_000, 1500
"""Characters of all spans together, and of one text, that are shown."""
_MOST_MESSAGES = 20
"""Messages of one span that are shown: the last ones."""
_WIDTH = 160
_NONE: Mapping[str, Sequence[str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRow:
    """One span. ``opens``: its list begins here; ``closes``: the number of lists that end before it.

    ``x`` and ``length`` are its time in the units of the drawing. ``call`` is input and output, ``facts`` are tokens,
    cost and why a model stopped. ``signs`` are the faults that verdicts found at it.
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
    signs: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTree:
    """The rows in the order of the tree; ``depth`` lists are open at their end, ``more`` spans are left out."""

    rows: Sequence[SpanRow]
    depth: int
    count: int
    more: int
    width: int = _WIDTH


def signs_of(verdicts: Sequence[Mapping[str, object]]) -> dict[str, list[str]]:
    """By span, the faults that verdicts (in their JSON form) found at it: signs, and a judge's errors with evidence."""
    found: dict[str, list[str]] = {}
    for verdict in verdicts:
        stated: dict[tuple[object, object], str] = {}
        for score in scores_of(verdict):
            for each in objects(mapping(score.get("details")).get("findings")):
                key = each.get("span_id"), f"{each.get('category')} error, {each.get('impact')} impact"
                stated[key] = f"{key[1]}: {each.get('evidence')} “{each.get('quotation')}”"
        for each in objects(verdict.get("signs")):
            sign = stated.get((each.get("span_id"), each.get("sign")), str(each.get("sign")))
            found.setdefault(str(each.get("span_id")), []).append(f"{each.get('metric')}: {sign}")
    return {span: list(dict.fromkeys(signs)) for span, signs in found.items()}


def span_tree(trace: Trace, signs: Mapping[str, Sequence[str]] = _NONE) -> SpanTree | None:
    """The tree, as deep as a page can show; None without a span. All spans with signs are shown."""
    if not trace.spans:
        return None
    begin = min(span.start_ns for span in trace.spans)
    whole = max(max(span.end_ns for span in trace.spans) - begin, 1)
    rows: list[SpanRow] = []
    depth, left = 0, _TEXT
    for span, level in _walk(trace):
        marks = signs.get(span.span_id, ())
        if len(rows) >= MOST and not marks:
            continue
        level = min(level, depth + 1)  # noqa: PLW2901  # what stands between may be left out
        call = [(name, text[: min(left, _LONGEST + 1)]) for name, text in _call(span)] if left > 0 else []
        left -= sum(len(text) for _, text in call)
        x = min(_WIDTH - 2.0, (span.start_ns - begin) / whole * _WIDTH)
        rows.append(
            SpanRow(
                span=span, name=_name(span), opens=depth < level, closes=max(0, depth - level), took=_took(span), x=x,
                length=min(_WIDTH - x, max(2.0, (span.end_ns - span.start_ns) / whole * _WIDTH)),
                call=call,
                facts=list(_facts(span)),
                signs=marks,
            )
        )  # fmt: skip
        depth = level
    return SpanTree(rows=rows, depth=depth, count=len(trace.spans), more=len(trace.spans) - len(rows))


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
    """Input and output of a span: a tool's arguments and result, else messages, else its values."""
    if (tool := span.tool) is not None:
        given: list[tuple[str, Json]] = [("arguments", tool.arguments), ("result", tool.result), ("error", tool.error)]
        return [(name, text_or_json(value)) for name, value in given if value is not None]
    if span.input_messages or span.output_messages:
        messages = (*span.input_messages, *span.output_messages)
        shown = [(message.role or "message", _message(message)) for message in messages[-_MOST_MESSAGES:]]
        return [(name, text) for name, text in shown if text]
    fields = (("input", span.input), ("output", span.output))
    return [(name, text_or_json(value)) for name, value in fields if value is not None]


def _message(message: Message) -> str:
    calls = (f"{call.name}({text_or_json(call.arguments)})" for call in message.tool_calls)
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
