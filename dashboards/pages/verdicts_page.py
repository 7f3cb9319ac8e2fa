"""Verdicts page: the verdicts that the store holds, newest first, a page at a time, filtered by the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .rendering import query_of, render

_TIMES = (("", "any time"), ("15m", "15 minutes"), ("1h", "hour"), ("6h", "6 hours"), ("1d", "day"), ("7d", "7 days"))
_OUTCOMES = (("true", "passed"), ("false", "failed"), ("none", "incomplete"))
_STATES = ("valid", "incomplete", "invalid", "disqualified")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictsPage:
    """One page of verdicts in their JSON form, each with the ``name`` of its trace.

    ``next`` is the cursor of the page after it, None for the last; ``cursor`` where this page begins, empty for the
    first. ``chosen`` are the filters by the name of their parameter, empty for anything; ``rubrics`` what may be
    chosen; ``counts`` how many verdicts match by what may be chosen; ``capped``: older ones were not looked at.
    ``failing_of``: metrics were counted in so many verdicts alone, so that their numbers are not those of all.
    """

    verdicts: Sequence[Mapping[str, object]]
    rubrics: Sequence[str]
    now_ns: int
    next: str | None = None
    cursor: str = ""
    chosen: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    capped: bool = False
    failing_of: int | None = None


def verdicts_page(page: VerdictsPage) -> str:
    """The page as HTML. Every value is escaped."""
    counts, chosen = page.counts, page.chosen
    metrics = dict.fromkeys([*counts.get("metric", {}), *filter(None, [chosen.get("metric", "")])])
    last = chosen.get("last", "")
    return render(
        "verdict_list.html", title="Verdicts · sidejudge", here="/verdicts", page=page, chosen=chosen,
        times=[*_TIMES, *([(last, last)] if last not in dict(_TIMES) else [])],
        rubrics=[("", "any"), *_counted(((name, name) for name in page.rubrics), counts.get("rubric", {}))],
        outcomes=[("", "any"), *_counted(_OUTCOMES, counts.get("passed", {}))],
        states=[("", "any"), *((name, name) for name in _STATES)],
        metrics=[("", "any"), *_counted(
            ((name, name) for name in metrics), {} if page.failing_of else counts.get("metric", {})
        )],
        matching=sum(counts.get("passed", {}).get(each, 0) for each, _ in _OUTCOMES
                     if chosen.get("passed", "") in ("", each)),
        query=query_of(chosen), next_query=query_of({**chosen, "cursor": page.next or ""}),
    )  # fmt: skip


def _counted(options: Iterable[tuple[str, str]], counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(value, f"{word} ({counts[value]:,})" if value in counts else word) for value, word in options]
