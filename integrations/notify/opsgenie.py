"""Opsgenie: alerts by its Alert API v2; the end of an alert closes it by its alias.

https://docs.opsgenie.com/docs/alert-api
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

from sidejudge.integrations.post import Poster
from sidejudge.scoring.alerts.condition import Severity, alert_name
from sidejudge.scoring.alerts.event import AlertEvent
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from sidejudge.scoring.notices.text import Wording, plain
from sidejudge.scoring.notices.wording import headline, report_event

_MESSAGE: Final = 130
_DESCRIPTION: Final = 14_000
_PRIORITIES: Final = {Severity.CRITICAL: "P1", Severity.WARNING: "P3", Severity.INFO: "P5"}
_OVER: Final = frozenset({AlertTransition.RESOLVED, AlertTransition.EXPIRED})
PATH: Final = "/v2/alerts"


class Opsgenie:
    """Sends alerts to one integration of Opsgenie. ``posting`` makes what posts to an address below its API."""

    def __init__(self, url: str, key: str, wording: Wording, posting: Callable[[str], Poster] = Poster) -> None:
        self._url, self._wording, self._posting = url.rstrip("/"), wording, posting
        self._headers = {"authorization": f"GenieKey {key}"}

    async def send(self, notice: Notice) -> None:
        """Return once Opsgenie has taken every alert of the notice."""
        for path, body in opsgenie_requests(notice, self._wording):
            await self._posting(self._url + path).post(json.dumps(body).encode(), self._headers)


def opsgenie_requests(notice: Notice, wording: Wording) -> Iterator[tuple[str, dict[str, object]]]:
    """Path and body of each request for a notice; digests and reports have none."""
    if notice.kind is NoticeKind.TEST:
        yield PATH, {"message": "Test from sidejudge: nothing is wrong", "alias": notice.id, "priority": "P5"}
        yield _closing(notice.id), {"source": "sidejudge"}
    elif notice.kind in {NoticeKind.ALERT, NoticeKind.GROUP, NoticeKind.REMINDER}:
        yield from (_request(event, wording) for event in notice.events)


def _request(event: AlertEvent, wording: Wording) -> tuple[str, dict[str, object]]:
    alias = f"sidejudge-{wording.fingerprint(event.fingerprint)}"
    if event.transition in _OVER:
        return _closing(alias), {"source": "sidejudge", "note": plain(headline(event), 1_000)}
    links = {"runbook": wording.runbook(event.runbook), "dashboard": wording.dashboard(event.labels)}
    return PATH, {
        "message": plain(headline(event), _MESSAGE),
        "alias": alias,
        "description": report_event(event, wording).text[:_DESCRIPTION],
        "priority": _PRIORITIES[event.severity],
        "source": plain(wording.instance or "sidejudge", 100),
        "entity": plain(dict(event.labels).get("service", "sidejudge"), 500),
        "tags": ["sidejudge", alert_name(event.condition)],
        "details": {k: plain(v, 200) for k, v in event.labels} | {k: v for k, v in links.items() if v is not None},
    }


def _closing(alias: str) -> str:
    return f"{PATH}/{alias}/close?identifierType=alias"
