"""Rubric page: what a rubric of the configuration is made of, metric by metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .rendering import render


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
