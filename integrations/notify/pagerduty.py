"""PagerDuty: alerts as events of its Events API v2; one incident for each alert, which the end of it resolves.

https://developer.pagerduty.com/docs/send-alert-event
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from sidejudge.integrations.post import Poster
from sidejudge.scoring.alerts.condition import alert_name
from sidejudge.scoring.alerts.event import AlertEvent
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from sidejudge.scoring.notices.text import Wording, plain
from sidejudge.scoring.notices.wording import headline, place, report_event

_SUMMARY: Final = 1_024
_DETAILS: Final = 20_000
_OVER: Final = frozenset({AlertTransition.RESOLVED, AlertTransition.EXPIRED})


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
    elif notice.kind in {NoticeKind.ALERT, NoticeKind.GROUP, NoticeKind.REMINDER}:
        yield from (_event(event, wording) for event in notice.events)


def _event(event: AlertEvent, wording: Wording) -> dict[str, object]:
    reported = report_event(event, wording)
    links = [("runbook", wording.runbook(event.runbook)), ("dashboard", wording.dashboard(event.labels))]
    links += [(f"trace {each.trace_id[:8]}", wording.trace(each.trace_id)) for each in event.examples]
    return {
        "event_action": "resolve" if event.transition in _OVER else "trigger",
        "dedup_key": f"sidejudge-{wording.fingerprint(event.fingerprint)}",
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
