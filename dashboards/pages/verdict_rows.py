"""Verdict rows: verdicts one below the other, with why they failed and where their stories stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

from .card import name_cell, table
from .failing_metrics import failing_metrics
from .html import escape
from .instants import age
from .pills import verdict_pill

_COLUMNS = ("Trace", "Verdict", "Service", "Rubric", "Composite#", "When", "Why")


def verdict_table(verdicts: Iterable[Mapping[str, object]], now_ns: int, caption: str) -> str:
    """The verdicts, in their JSON form, as a table. Every text comes from traces, and is escaped."""
    return table(caption, _COLUMNS, (_row(verdict, now_ns) for verdict in verdicts), stacked=True)


def links(trace: str, url: object) -> str:
    """Where a trace's story stands, and its page elsewhere, if that is known."""
    if not trace:
        return "–"
    shown = f'<a href="/traces/{escape(trace)}">{escape(trace[:12])}…</a>'
    return f"{shown} {elsewhere(url)}".strip()


def failed_verdicts(service: str, environment: str, rubric: str) -> str:
    """The address of the failed verdicts of one service, as an attribute's value."""
    asked = {"service": service, "environment": environment, "rubric": rubric}
    # encoded as bytes: a lone surrogate in a name must not cost the page
    as_bytes = {key: value.encode("utf-8", "replace") for key, value in asked.items()}
    return escape("/verdicts?" + urlencode({**as_bytes, "passed": "false"}), limit=20_000)


def elsewhere(url: object, name: str = "Langfuse") -> str:
    """A link to a page of another server; nothing unless it is an address of the web."""
    address = str(url or "")
    if not address.startswith(("https://", "http://")):
        return ""
    return f'<a href="{escape(address, limit=2000)}" rel="noreferrer" class="out">{name}</a>'


def _row(verdict: Mapping[str, object], now_ns: int) -> str:
    # A session has no trace id; its story stands under the id of its case.
    trace, composite = str(verdict.get("trace_id") or verdict.get("case_id") or ""), verdict.get("composite")
    value = f"{composite:.3f}" if isinstance(composite, int | float) else "–"
    closed = verdict.get("closed_ns")
    when = age(closed, now_ns) if isinstance(closed, int) else "–"
    return (
        f'<tr><th scope="row" class="id" data-name="trace">{links(trace, verdict.get("trace_url"))}</th>'
        f"<td>{verdict_pill(verdict)}"
        f'<td class="name">{name_cell(verdict.get("service") or "–")}'
        f'<td class="name" data-name="rubric">{name_cell(verdict.get("rubric") or "–")}'
        f'<td class="number" data-name="composite">{value}'
        f'<td class="when">{when}'
        f'<td class="why">{failing_metrics(verdict)}</tr>'
    )
