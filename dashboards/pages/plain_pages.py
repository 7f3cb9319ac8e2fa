"""Plain pages: a rubric, the configuration, verdicts, ended traces, help, the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from sidejudge.dashboards.help.search import search
from sidejudge.dashboards.help.site import addresses, document, runbook_of, sections
from sidejudge.scoring.trace.span import JsonRecord

from .rendering import query_of, render


def api_page(document: JsonRecord) -> str:
    """Every path of an OpenAPI 3 document with its parameters and responses, and the models, as HTML."""
    return render("api.html", title=f"{document['info']['title']} API", here="/docs", document=document)


def problem_page(cause: str, remedy: str) -> str:
    """The page as HTML: one line of cause, one of remedy."""
    return render("problem.html", title="Nothing to show · sidejudge", cause=cause, remedy=remedy)


_RUNBOOKS = ("alert", "runbooks")
"""Paths of the runbooks; the second is the one that earlier versions recommended for links."""


def help_page(address: str) -> str | None:
    """The page at an address below ``/help``, as HTML; None where there is none. ``alert/NAME`` is its runbook."""
    folder, _, name = address.strip("/").partition("/")
    path = runbook_of(name) if folder in _RUNBOOKS else addresses().get(address.strip("/"))
    if path is None:
        return None
    page = document(path)
    here = f"/help/{address.strip('/')}".rstrip("/")
    return render(
        "help.html", title=f"{page.title} · sidejudge", here="/help", page=page, sections=sections(), at=here,
        searched="", found=(),
    )  # fmt: skip


def search_page(words: str) -> str:
    """The pages in which these words occur, as HTML."""
    return render(
        "help.html", title="Search · sidejudge", here="/help", page=None, sections=sections(), at="", searched=words,
        found=search(words),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value in force, as text. ``given``: the configuration names it; otherwise it is the default."""

    key: str
    value: str
    given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationPage:
    """The settings in the order of the declaration, and (cause, remedy) of requests that will not be fulfilled."""

    settings: Sequence[Setting]
    cautions: Sequence[tuple[str, str]]
    version: str
    fingerprint: str


def configuration_page(page: ConfigurationPage) -> str:
    """The page as HTML."""
    by_section = groupby(page.settings, lambda each: each.key.partition(".")[0].partition("[")[0])
    sections = [(name, list(settings)) for name, settings in by_section]
    return render(
        "configuration.html", title="Configuration · sidejudge", here="/configuration", page=page, sections=sections
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCard:
    """A metric in words; ``facts`` are (name, text) of its formula, weight, bands and the like."""

    id: str
    title: str
    meaning: str
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricPage:
    """A rubric in words, with its ``metrics`` in their order."""

    id: str
    title: str
    facts: Sequence[tuple[str, str]]
    metrics: Sequence[MetricCard]


def rubric_page(page: RubricPage) -> str:
    """The page as HTML. Every value is escaped."""
    return render("rubric.html", title=f"{page.id} · sidejudge", here="/configuration", page=page)


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


_TIMES = (("", "any time"), ("15m", "15 minutes"), ("1h", "hour"), ("6h", "6 hours"), ("1d", "day"), ("7d", "7 days"))
_OUTCOMES = (("true", "passed"), ("false", "failed"), ("none", "incomplete"))
_STATES = ("valid", "incomplete", "invalid", "disqualified")


IN_A_FILE: Final = 10_000
"""Most verdicts in a CSV file, the latest."""


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
        in_a_file=IN_A_FILE,
        matching=sum(counts.get("passed", {}).get(each, 0) for each, _ in _OUTCOMES
                     if chosen.get("passed", "") in ("", each)),
        query=query_of(chosen), next_query=query_of({**chosen, "cursor": page.next or ""}),
    )  # fmt: skip


def _counted(options: Iterable[tuple[str, str]], counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(value, f"{word} ({counts[value]:,})" if value in counts else word) for value, word in options]
