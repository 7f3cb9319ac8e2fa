"""Notebook: traces and verdicts as a notebook shows them. Every text is escaped: contents of traces are untrusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final, cast

from .span import Span

_MOST: Final = 200
"""Most spans that are shown; a notebook with a table of thousands of rows is slow to open."""
_INDENT: Final = "\N{EM SPACE}"
_WORDS = {True: "passed", False: "failed", None: "incomplete"}


def table_html(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table under a heading. The heading is HTML; the table's texts are escaped."""
    cells = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    named = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f"<p>{title}</p><table><thead><tr>{named}</tr></thead><tbody>{cells}</tbody></table>"


def trace_html(trace_id: str, spans: int, children: Mapping[str | None, Sequence[Span]]) -> str:
    """A heading and a row for each of so many spans, indented as they called each other; the first 200."""
    left = spans - _MOST
    title = f"trace <b>{escape(trace_id)}</b>: {spans} spans" + (f", of which {left} are not shown" if left > 0 else "")
    return table_html(title, ("span", "kind", "took", "model or tool", "error"), _rows(children))


def _rows(children: Mapping[str | None, Sequence[Span]]) -> Iterator[tuple[str, ...]]:
    for span, depth in list(_in_depth(children))[:_MOST]:
        name = span.model or (span.tool.name if span.tool is not None else "")
        took = f"{(span.end_ns - span.start_ns) / 1e9:.3g} s"
        yield _INDENT * min(depth, 20) + span.name, span.kind.value, took, name, span.error or ""


def _in_depth(children: Mapping[str | None, Sequence[Span]]) -> Iterator[tuple[Span, int]]:
    """Each span before those below it, with its depth. Spans that a cycle of parents makes unreachable are left out."""
    waiting = [(span, 0) for span in reversed(children.get(None, ()))]
    while waiting:
        span, depth = waiting.pop()
        yield span, depth
        waiting += [(below, depth + 1) for below in reversed(children.get(span.span_id, ()))]


def verdict_html(verdict: Mapping[str, object]) -> str:
    """A heading and a table with a row for each metric.

    Args:
        verdict: A verdict in the documented format.
    """
    word = _WORDS[cast("bool | None", verdict["passed"])]
    why = f": {_text(verdict['reason'])}" if verdict["reason"] else ""
    title = f"{_text(verdict['rubric'])} of {_text(verdict['case_id'])}: <b>{word}</b>{why}"
    rows = map(_cells, cast("list[Mapping[str, object]]", verdict["scores"]))
    return table_html(title, ("metric", "value", "weight", "rating", "reason"), rows)


def _cells(score: Mapping[str, object]) -> tuple[object, ...]:
    value = score["value"]
    shown = f"{value:.3g}" if isinstance(value, int | float) else str(score["status"]).replace("_", " ")
    return score["metric"], shown, f"{score['weight']:g}", score["rating"] or "", score["reason"]


def _text(value: object) -> str:
    return escape(str(value))
