"""Webhook: notices as JSON to any HTTP receiver, signed, so that it can verify that they come from here.

``Sidejudge-Signature: v1=HEX`` is the HMAC-SHA256, under the common secret, of the value of ``Sidejudge-Timestamp``
(seconds since the epoch), a full stop, and the body as it was sent. ``README.md`` beside this file shows how a
receiver verifies it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from integrations.post import Poster
from scoring.alerts.event import AlertEvent
from scoring.notices.notice import Notice
from scoring.notices.text import Wording
from scoring.notices.wording import report

VERSION = 1
"""The version of the body's shape: it changes when a field changes its meaning or goes; fields may be added."""


class Webhook:
    """Sends notices to one address. Raises ``UnreachableError`` and ``RefusedError``."""

    def __init__(self, poster: Poster, secret: str, wording: Wording, clock_ns: Callable[[], int]) -> None:
        self._poster, self._secret, self._wording, self._clock_ns = poster, secret, wording, clock_ns

    async def send(self, notice: Notice) -> None:
        """Return once the receiver has answered with a success."""
        body = webhook_body(notice, self._wording)
        at = str(self._clock_ns() // 10**9)  # of this attempt: a receiver may refuse what is old
        await self._poster.post(
            body,
            {
                "sidejudge-id": notice.id,
                "sidejudge-timestamp": at,
                "sidejudge-signature": f"v1={signature(self._secret, at, body)}",
            },
        )


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 of timestamp, full stop and body under the secret, in hex."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def webhook_body(notice: Notice, wording: Wording) -> bytes:
    """The notice as JSON."""
    return json.dumps(notice_record(notice, wording)).encode()


def notice_record(notice: Notice, wording: Wording) -> dict[str, Any]:
    """The notice for programs: in words (``title``, ``text``) and as data. Times in ``…_ns`` are ns since the epoch."""
    reported = report(notice, wording)
    return {
        "version": VERSION, "id": notice.id, "kind": notice.kind.value,
        "at": datetime.fromtimestamp(notice.at_ns / 1e9, UTC).isoformat(timespec="milliseconds"),
        "title": reported.title, "text": reported.text,
        "alerts": [_alert(event, wording) for event in notice.events],
        "report": notice.report.to_json() if notice.report is not None else None,
    }  # fmt: skip


def _alert(event: AlertEvent, wording: Wording) -> dict[str, Any]:
    """One alert as data, with its links, and with the traces' reasons as they may be sent."""
    sent = (replace(each, reason=wording.reason(each), quoted=None) for each in event.examples)
    event = replace(event, examples=tuple(sent))
    stated: dict[str, Any] = dict(event.to_json())
    stated["runbook_url"] = wording.runbook(event.runbook)
    stated["examples"] = [{**each, "url": wording.trace(each["trace_id"])} for each in stated["examples"]]
    return stated
