"""Verdicts page: all verdicts that the store holds, newest first, a page at a time, narrowed by what is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from .card import card
from .html import escape, frame
from .verdict_rows import verdict_table

_OUTCOMES = (("", "any"), ("true", "passed"), ("false", "failed"), ("none", "incomplete"))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictsPage:
    """One page of verdicts in their JSON form. ``next`` is the cursor of the page after it, None for the last.

    ``service``, ``environment``, ``rubric`` and ``passed`` (``true``, ``false``, ``none``) are what was asked for,
    empty for anything; ``rubrics`` what may be asked for; ``cursor`` where this page begins, empty for the first.
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

    @property
    def asked(self) -> dict[str, str]:
        """What was asked for, as a query."""
        wanted = {
            "service": self.service, "environment": self.environment, "rubric": self.rubric, "passed": self.passed,
        }  # fmt: skip
        return {name: value for name, value in wanted.items() if value}


def verdicts_page(page: VerdictsPage) -> str:
    """The page as HTML. Every value is escaped."""
    shown = (
        verdict_table(page.verdicts, page.now_ns, "Verdicts, newest first")
        if page.verdicts
        else '<div class="empty">No verdict matches.</div>'
    )
    found = card("verdicts", "Newest first", shown, note=f"{len(page.verdicts):,} on this page")
    body = (
        f'<header><h1>Verdicts</h1><form action="/traces" role="search" class="find"><label for="id">Trace id</label>'
        '<input id="id" name="id" size="34" maxlength="64" autocomplete="off" spellcheck="false" required>'
        f"<button>Tell its story</button></form></header>{_form(page)}{found}{_turning(page)}"
    )
    return frame("Verdicts · sidejudge", body, here="/verdicts")


def _form(page: VerdictsPage) -> str:
    fields = "".join(
        f'<div><label for="{name}">{name.capitalize()}</label>'
        f'<input id="{name}" name="{name}" value="{escape(value, limit=2001)}" maxlength="2000" autocomplete="off">'
        "</div>"
        for name, value in (("service", page.service), ("environment", page.environment))
    )
    rubrics = _select("rubric", "Rubric", (("", "any"), *((name, name) for name in page.rubrics)), page.rubric)
    outcome = _select("passed", "Outcome", _OUTCOMES, page.passed)
    return f'<form action="/verdicts" class="filters">{fields}{rubrics}{outcome}<button>Show</button></form>'


def _select(name: str, title: str, options: Sequence[tuple[str, str]], chosen: str) -> str:
    shown = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(word)}</option>'
        for value, word in options
    )
    return f'<div><label for="{name}">{title}</label><select id="{name}" name="{name}">{shown}</select></div>'


def _turning(page: VerdictsPage) -> str:
    links = []
    if page.cursor:
        links.append(f'<a href="{_address(page.asked)}" rel="first">newest</a>')
    if page.next:
        links.append(f'<a href="{_address({**page.asked, "cursor": page.next})}" rel="next">older</a>')
    links.append(f'<a href="{_address(page.asked, "/v1/verdicts")}">as JSON</a>')
    return f'<nav aria-label="More verdicts">{"".join(links)}</nav>'


def _address(asked: Mapping[str, str], path: str = "/verdicts") -> str:
    # encoded as bytes: a lone surrogate must not cost the page
    query = urlencode({name: value.encode("utf-8", "replace") for name, value in asked.items()})
    return escape(f"{path}?{query}" if query else path, limit=40_000)
