"""The page of one service under one rubric, and the page of a rubric: what it is made of, built in or declared."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from sidejudge.dashboards.pages.plain_pages import MetricCard, RubricPage, rubric_page
from sidejudge.dashboards.pages.service_page import service_page
from sidejudge.integrations.store.errors import SearchTooLong
from sidejudge.monitor.config.rubrics import Card, cards, choice, citation
from sidejudge.scoring.verdict.rubric import Rubric

from .access import AccessRules
from .errors import ProblemError
from .params import span_of
from .shared_result import SharedResults
from .verdict_pages import html, refused
from .view import MonitorView, ServiceChoice


def add_service_page(app: FastAPI, view: MonitorView, rules: AccessRules) -> None:
    """Serve the page, made once for all who ask for the same at about the same time."""
    made = SharedResults[str | None](view.clock_ns)

    @app.get("/services", response_class=HTMLResponse, include_in_schema=False)
    async def service(request: Request, choice: Annotated[ServiceChoice, Query()]) -> Response:
        if not choice.rubric:
            return RedirectResponse("/")  # the status page lists them
        contents = rules.shows_contents(request)

        async def make() -> str | None:
            page = await view.service(choice, contents=contents)
            return None if page is None else await asyncio.to_thread(service_page, page)

        try:
            if choice.last:
                span_of(choice.last)
            text = await made.get((*choice.model_dump().values(), contents), make)
        except (ProblemError, SearchTooLong) as problem:
            return refused(problem)
        if text is None:
            return refused(ProblemError("rubric: there is no such rubric", "choose a service on the status page"))
        return html(text)


def add_rubric_page(app: FastAPI, view: MonitorView) -> None:
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
