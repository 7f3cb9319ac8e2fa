"""``/v1/fleet``: one status for all monitors, the monitors, and this one's share."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, FastAPI
from pydantic import BeforeValidator, Field

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.status.service_status import FleetMonitor, FleetReport

from .errors import ProblemError
from .params import only_known
from .response_body import Instant, ResponseBody, Text, body_of, instant, shown
from .schemas import MOST_SERVICES, ServiceStatusBody, worst_first
from .verdict_schemas import ProblemBody
from .view import MonitorView

_Name = Annotated[str, BeforeValidator(label)]


@body_of(FleetMonitor)
class FleetMonitorBody(ResponseBody):
    """One monitor of the fleet."""

    name: _Name
    version: _Name
    host: Text
    started_at: Instant = Field(validation_alias="started_s")
    last_seen_s: float = Field(validation_alias="seen_s")
    verdicts: int


class FleetStatusBody(ResponseBody):
    """The fleet at one moment, from one monitor."""

    name: str = Field(description="of this monitor")
    alone: str | None = Field(description="why `services` are this monitor's own; null: they are the fleet's")
    leader: str | None = Field(description="the monitor that reached the status")
    other_settings: str | None = Field(
        description="what to do where the leader has had other rubrics, thresholds or windows than this monitor for "
        "over an hour; null: it has not"
    )
    at: datetime | None = Field(description="when it did; verdicts are merged minute by minute")
    services: list[ServiceStatusBody] = Field(description=f"the worst first, at most {MOST_SERVICES:,}")
    own: list[ServiceStatusBody] = Field(description="the same by what this monitor alone has seen: its share")
    monitors: list[FleetMonitorBody]

    @classmethod
    def of(cls, report: FleetReport, window_s: float) -> FleetStatusBody:
        return cls.read(
            report, alone=None if report.alone is None else shown(report.alone), at=instant(report.at_ns),
            services=worst_first(report.services, window_s), own=worst_first(report.own, window_s),
            monitors=list(map(FleetMonitorBody.read, report.monitors)),
        )  # fmt: skip


def add_fleet(app: FastAPI, view: MonitorView) -> None:
    """Serve the route."""

    @app.get(
        "/v1/fleet",
        response_model=FleetStatusBody,
        responses={404: {"model": ProblemBody, "description": "This monitor is for itself."}},
        tags=["v1"],
        dependencies=[Depends(only_known)],
    )
    async def fleet() -> FleetStatusBody:
        """One status of each service over all monitors, the monitors, and this one's share."""
        found = view.fleet_report()
        if found is None:
            raise ProblemError(
                "this monitor is for itself", "configure fleet.database on each monitor", HTTPStatus.NOT_FOUND
            )
        return FleetStatusBody.of(*found)
