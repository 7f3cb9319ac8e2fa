"""Webhook: what is sent, and that a receiver can verify it with the documented code."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from sidejudge.integrations.notify.alertmanager import alertmanager_body
from sidejudge.integrations.notify.chats import slack_body
from sidejudge.integrations.notify.email import email_message
from sidejudge.integrations.notify.pagers import opsgenie_requests, pagerduty_events
from sidejudge.integrations.notify.webhook import Webhook, signature, webhook_body
from sidejudge.integrations.post import Poster
from sidejudge.scoring.alerts.event import Example, MainFailure
from sidejudge.scoring.notices.notice import DailyReportText, FailureLine, Notice, NoticeKind, without_names
from sidejudge.scoring.notices.text import Wording
from sidejudge.scoring.notices.wording import report as wording_report
from tests.alert_events import SINCE_NS, TRACES, event
from tests.fakes.receiver import receiving

README = Path(__file__).parents[3] / "docs" / "reference" / "notices.md"
LINKED = Wording(trace_url="https://t.example/{trace_id}", runbooks="https://r.example")
ALERT = Notice(id="n-1", kind=NoticeKind.ALERT, at_ns=SINCE_NS, events=(event(),))


@pytest.fixture
def is_genuine():
    """The function of the documentation."""
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    known = {}
    exec(code, known)  # the documented code is what is tested
    return known["is_genuine"]


async def sent(notice=ALERT, wording=LINKED, secret="s3cret", clock_ns=time.time_ns):
    with receiving() as fake:
        await Webhook(Poster(fake.url), secret, wording, clock_ns).send(notice)
    return fake.got[0]


async def test_a_receiver_verifies_what_was_sent_with_the_documented_code(is_genuine):
    got = await sent()
    assert is_genuine(got.headers, got.body, "s3cret")


async def test_a_forged_changed_or_old_request_is_not_genuine(is_genuine):
    got = await sent()
    assert not is_genuine(got.headers, got.body + b" ", "s3cret")
    assert not is_genuine(got.headers, got.body, "another")
    assert not is_genuine({**got.headers, "webhook-timestamp": str(int(time.time()) + 1)}, got.body, "s3cret")
    assert not is_genuine({}, got.body, "s3cret")
    old = await sent(clock_ns=lambda: time.time_ns() - 3_600 * 10**9)
    assert not is_genuine(old.headers, old.body, "s3cret")


def test_the_signature_is_hmac_sha256_of_timestamp_full_stop_and_body():
    # printf '1700000000.{}' | openssl dgst -sha256 -hmac key
    assert signature("key", "1700000000", b"{}") == ("9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae")


async def test_an_alert_is_told_in_words_and_as_data_with_links():
    got = await sent()
    stated = got.json
    assert (stated["version"], stated["id"], stated["kind"], stated["report"]) == (1, "n-1", "alert", None)
    assert got.headers["sidejudge-id"] == "n-1"
    assert stated["at"] == "2026-11-21T10:03:00.000+00:00"
    assert stated["title"].startswith("Critical: checkout, production: 73 of 100 fail qa since 2026-11-21 09:58 UTC")
    assert stated["text"].startswith(stated["title"])
    (alert,) = stated["alerts"]
    assert (alert["turn"], alert["value"], alert["lower"], alert["upper"], alert["n"]) == (
        "firing", 0.27, 0.141, 0.446, 100,
    )  # fmt: skip
    assert alert["labels"] == {"service": "checkout", "environment": "production", "rubric": "qa"}
    assert alert["runbook_url"] == "https://r.example/pass-rate-critical"
    assert [each["url"] for each in alert["examples"]] == [f"https://t.example/{trace}" for trace in TRACES]
    assert alert["examples"][1]["reason"] == "19 of 20 questions; wrong: Q7 (0, expected 5)"


async def test_reasons_can_be_left_out():
    got = await sent(wording=Wording(reasons=False))
    assert [each["reason"] for each in got.json["alerts"][0]["examples"]] == ["", "", ""]
    assert b"questions" not in got.body
    assert b"disqualified" not in got.body


SECRET_TOOL = "wire_transfer"
NAMED = Notice(
    id="n-1", kind=NoticeKind.ALERT, at_ns=SINCE_NS,
    events=(event(
        examples=(
            Example(
                trace_id=TRACES[0], reason=f"{SECRET_TOOL}: 3 calls", nameless="…: 3 calls", composite=0.5, closed_ns=1
            ),
        ),
        failure=MainFailure(reason=f"tools: {SECRET_TOOL} failed", nameless="tools: … failed", count=3, of=4),
    ),),
)  # fmt: skip
DAY = Notice(
    id="n-2", kind=NoticeKind.REPORT, at_ns=SINCE_NS,
    report=DailyReportText(begin_ns=1, end_ns=SINCE_NS, failures=(
        FailureLine(group="0a1b2c3d", rubric="workflow", metric="tools", words=f"missing: {SECRET_TOOL}",
                    nameless="missing: …", count=3, before=1, examples=()),
    )),
)  # fmt: skip


@pytest.mark.parametrize("notice", [NAMED, DAY], ids=["alert", "report"])
@pytest.mark.parametrize(
    "body", [webhook_body, slack_body, lambda notice, wording: wording_report(notice, wording).text.encode()]
)
def test_names_of_the_applications_parts_can_be_left_out(notice, body):
    assert SECRET_TOOL.encode() in body(notice, Wording())
    for sent, wording in ((without_names(notice), Wording()), (notice, Wording(reasons=False))):
        assert SECRET_TOOL.encode() not in body(sent, wording)
    stored = Notice.of_json(json.loads(json.dumps(notice.to_json())))
    assert body(without_names(stored), Wording()) == body(without_names(notice), Wording())


def test_a_route_that_matches_nothing_has_no_name_where_names_are_left_out():
    stated = f"route 3 (name: {SECRET_TOOL}*) matched 0 of 100 traces; name seen: '{SECRET_TOOL}' (60)"
    odd = event(condition="traffic_suspected", labels=(("kind", "silent_routes"),), stated=stated, examples=(),
                failure=None, explained=None, value=None, upper=None)  # fmt: skip
    notice = Notice(id="n-4", kind=NoticeKind.ALERT, at_ns=SINCE_NS, events=(odd,))
    assert SECRET_TOOL.encode() in webhook_body(notice, Wording())
    assert SECRET_TOOL.encode() not in webhook_body(without_names(notice), Wording())


def test_opsgenie_is_sent_as_much_of_the_details_as_it_takes():
    service = "客" * 150  # nine characters each within an address
    labels = (("service", service), ("environment", service), *event().labels[2:])
    notice = Notice(id="n-5", kind=NoticeKind.ALERT, at_ns=SINCE_NS, events=(event(labels=labels),))
    for places, kept in (
        ("{service}", True),
        ("{service}{environment}{service}{environment}{service}{environment}", False),
    ):
        wording = Wording(runbooks="https://r.example", dashboard_url=f"https://d.example/{places}")
        ((_, body),) = opsgenie_requests(notice, wording)
        assert (body["details"]["service"], "runbook" in body["details"]) == (service, True)
        assert ("dashboard" in body["details"]) is kept
        assert sum(len(name) + len(value) for name, value in body["details"].items()) <= 8_000


def _of_tenant(tenant):
    labels = (*event().labels, ("slice", "metadata.tenant"), ("value", tenant))
    return Notice(
        id="n-3", kind=NoticeKind.ALERT, at_ns=SINCE_NS,
        events=(event(condition="slice_worse", title="A part of the traffic is worse", labels=labels, examples=()),),
        report=DailyReportText(begin_ns=1, end_ns=2, firing=(f"A part is worse ({tenant})",),
                               firing_nameless=("A part is worse (0a1b2c3d)",)),
    )  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        webhook_body, slack_body, lambda *given: json.dumps(list(pagerduty_events(*given))).encode(),
        lambda *given: json.dumps(list(opsgenie_requests(*given))).encode(),
        lambda *given: alertmanager_body(*given, {}, SINCE_NS),
        lambda notice, wording: email_message(notice, wording, "a@b.example", ["c@d.example"]).as_bytes(),
    ],
)  # fmt: skip
def test_a_tenant_has_no_name_where_names_are_left_out_and_two_tenants_stay_two(body):
    assert b"acme" in body(_of_tenant("acme"), Wording())
    one, other = (without_names(_of_tenant(tenant)) for tenant in ("acme", "bolt"))
    assert b"acme" not in body(one, Wording())
    assert one.events[0].fingerprint != other.events[0].fingerprint
