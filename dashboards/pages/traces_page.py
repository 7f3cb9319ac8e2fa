"""Traces page: the traces that ended last, and why each ended as it did, narrowed by reason and service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .rendering import query_of, render


@dataclass(frozen=True, slots=True, kw_only=True)
class TracesPage:
    """One page of ended traces as `/v1/traces` has them.

    ``next`` is the cursor of the page after it, None for the last. ``reason`` and ``service`` are the filters, empty
    for anything; ``reasons`` what may be chosen; ``cursor`` where this page begins, empty for the first.
    """

    traces: Sequence[Mapping[str, object]]
    reasons: Sequence[str]
    now_ns: int
    next: str | None = None
    cursor: str = ""
    reason: str = ""
    service: str = ""


def traces_page(page: TracesPage) -> str:
    """The page as HTML. Every value is escaped."""
    filters = {"reason": page.reason, "service": page.service}
    return render(
        "trace_list.html", title="Traces · sidejudge", here="/traces", page=page,
        reasons=[(name, name.replace("_", " ")) for name in page.reasons], query=query_of(filters),
        next_query=query_of({**filters, "cursor": page.next or ""}),
    )  # fmt: skip
