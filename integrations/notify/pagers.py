"""Receivers that hold an incident for each alert: the end of the alert ends it.

PagerDuty takes events of its Events API v2: https://developer.pagerduty.com/docs/send-alert-event
Opsgenie takes alerts of its Alert API v2, which are closed by their alias: https://docs.opsgenie.com/docs/alert-api
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final

from sidejudge.integrations.post import Poster
from sidejudge.scoring.alerts.condition import Severity, alert_name
from sidejudge.scoring.alerts.event import AlertEvent
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from sidejudge.scoring.notices.text import Wording, plain
from sidejudge.scoring.notices.wording import headline, place, report_event

_SUMMARY: Final = 1_023
"""PagerDuty takes 1024 characters; one is for the mark of a cut."""
_DETAILS: Final = 20_000
_OVER: Final = frozenset({AlertTransition.RESOLVED, AlertTransition.EXPIRED})
_OF_ALERTS: Final = frozenset({NoticeKind.ALERT, NoticeKind.GROUP, NoticeKind.REMINDER})
"""Digests and reports are not alerts and are not sent."""


class PagerDuty:
    """Sends alerts to one service of PagerDuty. Digests and reports are not alerts and are not sent."""

    def __init__(self, poster: Poster, routing_key: str, wording: Wording) -> None:
        self._poster, self._routing_key, self._wording = poster, routing_key, wording

    async def send(self, notice: Notice) -> None:
        """Return once PagerDuty has taken every event of the notice."""
        for body in pagerduty_events(notice, self._wording):
            await self._poster.post(json.dumps({"routing_key": self._routing_key, **body}).encode())


def pagerduty_events(notice: Notice, wording: Wording) -> Iterator[dict[str, object]]:
    """The events of a notice, without the key that names the service."""
    if notice.kind is NoticeKind.TEST:
        payload = {"summary": "Test from sidejudge: nothing is wrong", "source": "sidejudge", "severity": "info"}
        for action in ("trigger", "resolve"):
            yield {"event_action": action, "dedup_key": notice.id, "payload": payload}
    elif notice.kind in _OF_ALERTS:
        yield from (_event(event, wording) for event in notice.events)


def _event(event: AlertEvent, wording: Wording) -> dict[str, object]:
    reported = report_event(event, wording)
    links = [("runbook", wording.runbook(event.runbook)), ("dashboard", wording.dashboard(event.labels))]
    links += [(f"trace {each.trace_id[:8]}", wording.trace(each.trace_id)) for each in event.examples]
    return {
        "event_action": "resolve" if event.transition in _OVER else "trigger",
        "dedup_key": f"sidejudge-{wording.fingerprint(event)}",
        "client": "sidejudge",
        "links": [{"href": href, "text": text} for text, href in links if href is not None],
        "payload": {
            "summary": plain(headline(event), _SUMMARY),
            "source": plain(wording.instance or place(event) or "sidejudge", 200),
            "severity": event.severity.value,
            "timestamp": datetime.fromtimestamp(event.at_ns / 1e9, UTC).isoformat(timespec="milliseconds"),
            "component": plain(dict(event.labels).get("service", "sidejudge"), 200),
            "class": alert_name(event.condition),
            "custom_details": {"text": reported.text[:_DETAILS], **{k: plain(v, 200) for k, v in event.labels}},
        },
    }


_MESSAGE: Final = 129
"""Opsgenie takes 130 characters; one is for the mark of a cut."""
_DESCRIPTION: Final = 14_000
_ALL_DETAILS: Final = 8_000
"""Characters that Opsgenie takes of all names and values together; it refuses an alert with more."""
_PRIORITIES: Final = {Severity.CRITICAL: "P1", Severity.WARNING: "P3", Severity.INFO: "P5"}
PATH: Final = "/v2/alerts"


class Opsgenie:
    """Sends alerts to one integration of Opsgenie."""

    def __init__(self, url: str, key: str, wording: Wording) -> None:
        self._url, self._wording = url.rstrip("/"), wording
        self._headers = {"authorization": f"GenieKey {key}"}

    async def send(self, notice: Notice) -> None:
        """Return once Opsgenie has taken every alert of the notice."""
        for path, body in opsgenie_requests(notice, self._wording):
            await Poster(self._url + path).post(json.dumps(body).encode(), self._headers)


def opsgenie_requests(notice: Notice, wording: Wording) -> Iterator[tuple[str, dict[str, object]]]:
    """Path and body of each request for a notice; digests and reports have none."""
    if notice.kind is NoticeKind.TEST:
        yield PATH, {"message": "Test from sidejudge: nothing is wrong", "alias": notice.id, "priority": "P5"}
        yield _closing(notice.id), {"source": "sidejudge"}
    elif notice.kind in _OF_ALERTS:
        yield from (_request(event, wording) for event in notice.events)


def _request(event: AlertEvent, wording: Wording) -> tuple[str, dict[str, object]]:
    alias = f"sidejudge-{wording.fingerprint(event)}"
    if event.transition in _OVER:
        return _closing(alias), {"source": "sidejudge", "note": plain(headline(event), 1_000)}
    details = [(name, plain(value, 200)) for name, value in event.labels]
    details += [("runbook", wording.runbook(event.runbook) or ""), ("dashboard", wording.dashboard(event.labels) or "")]
    sizes = accumulate(len(name) + len(value) for name, value in details)
    return PATH, {
        "message": plain(headline(event), _MESSAGE),
        "alias": alias,
        "description": report_event(event, wording).text[:_DESCRIPTION],
        "priority": _PRIORITIES[event.severity],
        "source": plain(wording.instance or "sidejudge", 99),
        "entity": plain(dict(event.labels).get("service", "sidejudge"), 500),
        "tags": ["sidejudge", alert_name(event.condition)],
        "details": {
            name: value for (name, value), size in zip(details, sizes, strict=True) if value and size <= _ALL_DETAILS
        },
    }


def _closing(alias: str) -> str:
    return f"{PATH}/{alias}/close?identifierType=alias"
