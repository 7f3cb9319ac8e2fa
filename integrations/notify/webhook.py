"""Webhook: sends notices as signed JSON to any HTTP receiver, which can verify the sender.

The headers are those of Standard Webhooks (https://www.standardwebhooks.com): ``webhook-signature: v1,BASE64`` is the
HMAC-SHA256, under the common secret, of ``webhook-id``, ``webhook-timestamp`` (seconds since the epoch) and the body as
it was sent, with full stops between them. ``Sidejudge-Signature: v1=HEX`` is the older one, of timestamp and body.
``docs/reference/notices.md`` shows how a receiver verifies it. A template may replace the body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sidejudge.integrations.backoff import RefusedError
from sidejudge.integrations.post import Poster
from sidejudge.scoring.alerts.event import AlertEvent, shown_json
from sidejudge.scoring.notices.notice import DailyReportText, Notice
from sidejudge.scoring.notices.text import Wording, owned
from sidejudge.scoring.notices.wording import report

if TYPE_CHECKING:
    from jinja2 import Template

_PREFIX: Final = "whsec_"
VERSION = 1
"""The version of the body's shape: it changes when a field changes its meaning or goes; fields may be added."""


class Webhook:
    """Sends notices to one address. Raises ``DestinationUnreachableError`` and ``RefusedError``.

    Args:
        poster: Posts to the address.
        secret: The common secret; without it nothing is signed.
        wording: How notices are worded.
        clock_ns: The time, ns since the epoch.
        template: A Jinja2 template of the body; it is rendered with the fields of ``notice_record``.
        headers: Further headers.
    """

    def __init__(
        self,
        poster: Poster,
        secret: str | None,
        wording: Wording,
        clock_ns: Callable[[], int],
        *,
        template: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._poster, self._secret, self._wording, self._clock_ns = poster, secret, wording, clock_ns
        self._headers = dict(headers or {})
        self._template = None if template is None else body_template(template)

    async def send(self, notice: Notice) -> None:
        """Return once the receiver has answered with a success."""
        id_ = notice_id(notice, self._wording)
        body = self._body(notice)
        at = str(self._clock_ns() // 10**9)  # of this attempt: a receiver may refuse what is old
        stated = {"webhook-id": id_, "webhook-timestamp": at, "sidejudge-id": id_, "sidejudge-timestamp": at}
        if self._secret is not None:
            stated["webhook-signature"] = f"v1,{standard_signature(self._secret, id_, at, body)}"
            stated["sidejudge-signature"] = f"v1={signature(self._secret, at, body)}"
        await self._poster.post(body, {**self._headers, **stated})

    def _body(self, notice: Notice) -> bytes:
        if self._template is None:
            return webhook_body(notice, self._wording)
        try:
            return self._template.render(notice_record(notice, self._wording)).encode()
        except Exception as error:  # noqa: BLE001  # an operator's template may do anything; it costs one notice
            raise RefusedError(f"the template cannot be rendered: {type(error).__name__}") from None


def body_template(text: str) -> Template:
    """A template of a body, in a sandbox. ``tojson`` writes a value so that no text of a trace ends it early.

    Raises:
        jinja2.TemplateError: It cannot be read.
    """
    from jinja2 import StrictUndefined  # noqa: PLC0415  # only where a template is configured
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415  # as above

    # What is sent is JSON or text, not HTML: escaping for HTML would change it.
    return ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False).from_string(text)  # it is no HTML


def standard_signature(secret: str, id_: str, timestamp: str, body: bytes) -> str:
    """The signature of Standard Webhooks, base64. A secret that begins with ``whsec_`` is base64, any other is text."""
    coded = secret.removeprefix(_PREFIX)
    key = base64.b64decode(coded) if secret.startswith(_PREFIX) else secret.encode()
    signed = f"{id_}.{timestamp}.".encode() + body
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 of timestamp, full stop and body under the secret, in hex."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def webhook_body(notice: Notice, wording: Wording) -> bytes:
    """The notice as JSON."""
    return json.dumps(notice_record(notice, wording)).encode()


def notice_record(notice: Notice, wording: Wording) -> dict[str, object]:
    """The notice for programs: in words (``title``, ``text``) and as data. Times in ``…_ns`` are ns since the epoch."""
    reported = report(notice, wording)
    return {
        "version": VERSION, "id": notice_id(notice, wording), "kind": notice.kind.value,
        "instance": wording.instance,
        "at": datetime.fromtimestamp(notice.at_ns / 1e9, UTC).isoformat(timespec="milliseconds"),
        "title": reported.title, "text": reported.text,
        "alerts": [_alert(event, wording) for event in notice.events],
        "report": _report(notice.report, wording) if notice.report is not None else None,
    }  # fmt: skip


def _report(report: DailyReportText, wording: Wording) -> dict[str, object]:
    """A day as data, with the reasons of failures as they may be sent."""
    sent = wording.report(report)
    failures = [{key: value for key, value in asdict(each).items() if key != "nameless"} for each in sent.failures]
    stated = {key: value for key, value in asdict(sent).items() if key != "firing_nameless"}
    return {**stated, "failures": failures}


def notice_id(notice: Notice, wording: Wording) -> str:
    """The same at each delivery of a notice, and different for each of several monitors with alerts of their own."""
    owner = wording.owner(*notice.events)
    return notice.id if owner is None else f"{notice.id}-{owned(owner, notice.id)[:8]}"


def _alert(event: AlertEvent, wording: Wording) -> dict[str, object]:
    """One alert as data, with its links, and with the traces' reasons as they may be sent."""
    sent = (replace(each, reason=wording.reason(each), quoted=None, nameless=None) for each in event.examples)
    event = replace(event, examples=tuple(sent))
    if (failure := event.failure) is not None:
        event = replace(event, failure=replace(failure, reason=wording.reason(failure), quoted=None, nameless=None))
    if (known := event.explained) is not None:
        causes = [replace(each, words=each.words if wording.reasons else "", nameless="") for each in known.causes]
        event = replace(event, explained=replace(known, causes=tuple(causes)))
    stated: dict[str, object] = dict(event.to_json())
    stated["fingerprint"] = wording.fingerprint(event)
    stated["runbook_url"] = wording.runbook(event.runbook)
    stated["dashboard_url"] = wording.dashboard(event.labels)
    stated["examples"] = [{**shown_json(each), "url": wording.trace(each.trace_id)} for each in event.examples]
    return stated
