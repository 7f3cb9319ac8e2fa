"""Alertmanager: alerts to its API v2 (``POST /api/v2/alerts``), which groups, silences and passes them on.

An open alert is sent with an ``endsAt`` ahead and repeated before that, so that alerts of a dead monitor end by
themselves; a resolved one is sent with its end, repeatedly for some minutes. Alertmanager keeps a repeated alert once:
its labels are its identity. Digests and reports are not alerts and are not sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from sidejudge.integrations.post import Poster
from sidejudge.scoring.alerts.condition import alert_name
from sidejudge.scoring.alerts.event import AlertEvent
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from sidejudge.scoring.notices.text import Wording, plain
from sidejudge.scoring.notices.wording import report, report_event
from sidejudge.scoring.trace.time_units import MINUTE_NS

REFRESH_S: Final = 60.0
"""How often open alerts are repeated."""
ENDS_AFTER_S: Final = 4 * REFRESH_S
"""How far ahead the end of an open alert is set, as in Prometheus."""
_MAX_VALUE: Final = 200


class Alertmanager:
    """Sends alerts to one Alertmanager. Raises ``DestinationUnreachableError`` and ``RefusedError``."""

    def __init__(
        self,
        poster: Poster,
        wording: Wording,
        clock_ns: Callable[[], int],
        *,
        labels: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> None:
        self._poster, self._wording, self._clock_ns = poster, wording, clock_ns
        self._labels = dict(labels or {})
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}

    async def send(self, notice: Notice) -> None:
        """Return once Alertmanager has taken the alerts of the notice; one without any is not sent."""
        body = alertmanager_body(notice, self._wording, self._labels, self._clock_ns())
        if body is not None:
            await self._poster.post(body, self._headers)


def alertmanager_body(notice: Notice, wording: Wording, labels: Mapping[str, str], now_ns: int) -> bytes | None:
    """The alerts of a notice as Alertmanager takes them, at ``now_ns``; ``None`` where there is none."""
    alerts = [_alert(event, wording, labels, now_ns) for event in notice.events] or list(_test(notice, labels, now_ns))
    return json.dumps(alerts).encode() if alerts else None


def _alert(event: AlertEvent, wording: Wording, labels: Mapping[str, str], now_ns: int) -> dict[str, object]:
    over = event.transition in {AlertTransition.RESOLVED, AlertTransition.EXPIRED}
    ends_ns = event.at_ns if over else now_ns + int(ENDS_AFTER_S * 1e9)
    reported = report_event(event, wording)
    named = {
        "alertname": alert_name(event.condition), "severity": event.severity.value,
        **dict(event.labels), **labels,
    }  # fmt: skip
    annotations = {"summary": reported.title, "description": reported.text.partition("\n\n")[2].strip()}
    if (owner := wording.owner(event)) is not None:
        named = {"instance": owner, **named}
    links = {"runbook_url": wording.runbook(event.runbook), "dashboard_url": wording.dashboard(event.labels)}
    source = links["dashboard_url"] or next((wording.trace(each.trace_id) for each in event.examples), None)
    return {
        "labels": {name: plain(value, _MAX_VALUE) for name, value in named.items()},
        "annotations": annotations | {name: link for name, link in links.items() if link is not None},
        "startsAt": _instant(min(event.since_ns, ends_ns)),  # later where the clock was set back, which is refused
        "endsAt": _instant(ends_ns),
        **({"generatorURL": source} if source is not None else {}),
    }


def _test(notice: Notice, labels: Mapping[str, str], now_ns: int) -> Iterable[dict[str, object]]:
    """An alert that ends after a minute, for a requested test notice."""
    if notice.kind is NoticeKind.TEST:
        reported = report(notice, Wording())
        yield {
            "labels": {"alertname": "SidejudgeTest", "severity": "info", **labels},
            "annotations": {"summary": reported.title, "description": reported.text.partition("\n\n")[2].strip()},
            "startsAt": _instant(notice.at_ns),
            "endsAt": _instant(now_ns + MINUTE_NS),
        }


def _instant(ns: int) -> str:
    """RFC 3339 with milliseconds."""
    return datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec="milliseconds")
