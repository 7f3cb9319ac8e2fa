"""The page of one rubric: what it is made of, also where the configuration declares it."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Protocol

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from sidejudge.dashboards.pages.rubric_page import MetricCard, RubricPage, rubric_page
from sidejudge.monitor.config.rubrics import Card, cards
from sidejudge.monitor.config.which_rubric import choice, citation
from sidejudge.scoring.verdict.rubric import Rubric

from .errors import ProblemError
from .verdict_pages import html, refused


class RubricView(Protocol):
    """What the page asks of the monitor."""

    def rubric(self, name: str) -> Rubric | None:
        """A rubric of the configuration or one that ships; None where there is none of this name."""


def add_rubric_page(app: FastAPI, view: RubricView) -> None:
    """Serve the page."""

    @app.get("/rubrics/{name}", response_class=HTMLResponse, include_in_schema=False)
    async def rubric(name: str) -> Response:
        found = view.rubric(name)
        if found is None:
            error = "there is no such rubric in the configuration"
            return refused(ProblemError(error, "see /configuration for those that there are", HTTPStatus.NOT_FOUND))
        return html(await asyncio.to_thread(lambda: rubric_page(_page(found))))


def _page(rubric: Rubric) -> RubricPage:
    passes = "by its own conditions" if rubric.pass_mark is None else f"from {rubric.pass_mark:g} on"
    return RubricPage(
        id=rubric.id,
        title=rubric.title,
        facts=[
            ("score", f"{rubric.formula}, from 0 to {rubric.scale:g}"), ("passes", passes),
            ("needs", f"values for {rubric.min_coverage:.0%} of the weight"), ("version", rubric.version),
            *(("without a judge", each) for each in [choice(rubric).without_judge] if each),
        ],
        metrics=[_card(card) for card in cards({rubric.id: rubric})],
    )  # fmt: skip


def _card(card: Card) -> MetricCard:
    metric = card.criterion.metric
    return MetricCard(
        id=metric.id,
        title=metric.title,
        meaning=metric.meaning,
        facts=[
            ("formula", metric.formula), ("weight", card.weight), ("unit", f"{metric.unit}, in {card.range}"),
            ("bands", card.bands), ("blocker", card.blocker),
            ("decided by", ", ".join(method.value for method in metric.methods)),
            ("without a value where", metric.undefined), ("source", citation(metric.source)),
        ],
    )  # fmt: skip
