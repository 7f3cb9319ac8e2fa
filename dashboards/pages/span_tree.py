"""Span tree: the spans of a trace under their parents, each with when it ran and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator

from scoring.case.grounds import written
from scoring.trace.span import Span
from scoring.trace.trace import Trace

from .html import escape, prose

MOST = 200
"""Spans that are shown, in the order of the tree."""
_DEEPEST = 12
_WIDTH = 160
_LONG = 1500


def span_tree(trace: Trace) -> str:
    """The tree as HTML: nested lists, as deep as a page can show. Names come from traces: all is escaped."""
    begin = min(span.start_ns for span in trace.spans)
    length = max(max(span.end_ns for span in trace.spans) - begin, 1)
    lines: list[str] = []
    depth = 0
    for shown, (span, level) in enumerate(_walk(trace)):
        if shown == MOST:
            break
        while depth > level:
            lines.append("</li></ul>")
            depth -= 1
        lines.append("<ul>" if depth < level else "</li>")
        depth = level
        lines.append(f"<li>{_line(span, begin, length)}")
    lines.append("</li></ul>" * depth)
    more = f'<p class="rest">{len(trace.spans) - MOST:,} more spans</p>' if len(trace.spans) > MOST else ""
    return f'<div class="spans">{"".join(lines)}</div>{more}'


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


def _line(span: Span, begin: int, length: int) -> str:
    error = f'<div class="error">{escape(span.error)}</div>' if span.error else ""
    model = f' <span class="soft">{escape(span.model, limit=60)}</span>' if span.model else ""
    return (
        f'<div class="span"><span class="kind">{span.kind.value}</span>'
        f'<span class="name">{escape(_name(span), limit=80)}{model}</span>'
        f'<span class="number">{_milliseconds(span)}</span>{_bar(span, begin, length)}</div>'
        f"{error}{_call(span)}"
    )


def _name(span: Span) -> str:
    """The name of the span, with the tool's or the agent's where it says something else."""
    of = span.tool.name if span.tool is not None else span.agent
    return span.name if not of or of in span.name else f"{span.name} · {of}"


def _call(span: Span) -> str:
    """What a tool was given and what it gave back, folded away."""
    tool = span.tool
    if tool is None:
        return ""
    told = [
        (name, value)
        for name, value in (("arguments", tool.arguments), ("result", tool.result), ("error", tool.error))
        if value is not None
    ]
    shown = "".join(f"<dt>{name}</dt><dd><pre>{prose(written(value), _LONG)}</pre></dd>" for name, value in told)
    return f'<details><summary>arguments and result</summary><dl class="call">{shown}</dl></details>' if shown else ""


def _milliseconds(span: Span) -> str:
    took = (span.end_ns - span.start_ns) / 1e6
    return f"{took:,.0f} ms" if took >= 10 else f"{took:.2g} ms"


def _bar(span: Span, begin: int, length: int) -> str:
    x = min(_WIDTH - 2.0, (span.start_ns - begin) / length * _WIDTH)
    width = min(_WIDTH - x, max(2.0, (span.end_ns - span.start_ns) / length * _WIDTH))
    style = "critical" if span.error else "bar"
    return (
        f'<svg class="wait" viewBox="0 0 {_WIDTH} 10" aria-hidden="true">'
        f'<rect class="track" x="0" y="4" width="{_WIDTH}" height="2"/>'
        f'<rect class="{style}" x="{x:.1f}" y="1" width="{width:.1f}" height="8" rx="2"/></svg>'
    )
