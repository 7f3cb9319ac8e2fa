"""Verdicts page: all verdicts that the store holds, newest first, a page at a time, filtered by the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .rendering import query_of, render


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictsPage:
    """One page of verdicts in their JSON form. ``next`` is the cursor of the page after it, None for the last.

    ``service``, ``environment``, ``rubric`` and ``passed`` (``true``, ``false``, ``none``) are the filters, empty for
    anything; ``rubrics`` what may be chosen; ``cursor`` where this page begins, empty for the first.
    """

    verdicts: Sequence[Mapping[str, object]]
    rubrics: Sequence[str]
    now_ns: int
    next: str | None = None
    cursor: str = ""
    service: str = ""
    environment: str = ""
    rubric: str = ""
    passed: str = ""


def verdicts_page(page: VerdictsPage) -> str:
    """The page as HTML. Every value is escaped."""
    filters = {
        "service": page.service, "environment": page.environment, "rubric": page.rubric, "passed": page.passed,
    }  # fmt: skip
    return render(
        "verdict_list.html", title="Verdicts · sidejudge", here="/verdicts", page=page,
        rubrics=[(name, name) for name in page.rubrics], query=query_of(filters),
        next_query=query_of({**filters, "cursor": page.next or ""}),
    )  # fmt: skip
