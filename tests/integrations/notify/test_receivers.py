"""PagerDuty, Opsgenie, Teams, Google Chat and mail: what each is sent, and that text of a trace does nothing there."""

from __future__ import annotations

import asyncio
import contextlib
import email
import json
import socketserver
import threading
import time
from dataclasses import replace
from email import policy

import pytest

import sidejudge.integrations.notify.email
from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.integrations.notify.alertmanager import alertmanager_body
from sidejudge.integrations.notify.chats import Chat, google_chat_body, teams_body
from sidejudge.integrations.notify.email import Email, MailServer, email_message
from sidejudge.integrations.notify.pagers import Opsgenie, PagerDuty, pagerduty_events
from sidejudge.integrations.notify.webhook import Webhook, body_template, notice_record, standard_signature
from sidejudge.integrations.post import Poster
from sidejudge.monitor.alerting.notify.build import MOST_IN_A_MESSAGE
from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.event import Example, MainFailure
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from sidejudge.scoring.notices.text import Wording
from sidejudge.scoring.notices.wording import report
from tests.alert_events import SINCE_NS, TRACES, event
from tests.fakes.mail_server import mail_server
from tests.fakes.receiver import receiving
from tests.waiting import until

LINKED = Wording(
    trace_url="https://t.example/{trace_id}", runbooks="https://r.example",
    dashboard_url="https://g.example/d/x?service={service}&metric={metric}", instance="pod-1",
)  # fmt: skip
NASTY = "<b>[x](https://evil.example)</b> <users/all> **bold**"
HOSTILE = Example(trace_id=TRACES[0], reason=NASTY, composite=0.1, closed_ns=1)


def notice(kind=NoticeKind.ALERT, **changes):
    return Notice(id="n-1", kind=kind, at_ns=SINCE_NS, events=(event(**changes),))


OVER = notice(transition=AlertTransition.RESOLVED)
UNKNOWN = notice(transition=AlertTransition.UNKNOWN)
GIVEN_UP = notice(transition=AlertTransition.EXPIRED)
TEST = Notice(id="test-1", kind=NoticeKind.TEST, at_ns=SINCE_NS)
DIGEST = notice(NoticeKind.DIGEST)


async def sent(make, *notices):
    with receiving() as fake:
        sender = make(fake.url)
        for each in notices:
            await sender.send(each)
    return fake.got


async def test_an_incident_of_pagerduty_is_triggered_and_resolved_under_one_key():
    got = await sent(lambda url: PagerDuty(Poster(url), "key", LINKED), notice(), UNKNOWN, OVER, GIVEN_UP, DIGEST, TEST)
    bodies = [each.json for each in got]
    actions = ["trigger", "trigger", "resolve", "resolve", "trigger", "resolve"]
    assert [body["event_action"] for body in bodies] == actions
    assert {body["dedup_key"] for body in bodies[:4]} == {f"sidejudge-{LINKED.fingerprint(event())}"}
    first = bodies[0]
    assert first["routing_key"] == "key"
    assert (first["payload"]["severity"], first["payload"]["source"]) == ("critical", "pod-1")
    assert first["payload"]["custom_details"]["service"] == "checkout"
    assert [link["href"] for link in first["links"]][:2] == [
        "https://r.example/pass-rate-critical", "https://g.example/d/x?service=checkout&metric=",
    ]  # fmt: skip


async def test_an_alert_of_opsgenie_is_made_and_closed_by_its_alias():
    got = await sent(lambda url: Opsgenie(url, "key", LINKED), notice(), OVER, DIGEST)
    alias = f"sidejudge-{LINKED.fingerprint(event())}"
    assert [each.path for each in got] == ["/v2/alerts", f"/v2/alerts/{alias}/close?identifierType=alias"]
    assert got[0].headers["authorization"] == "GenieKey key"
    body = got[0].json
    assert (body["alias"], body["priority"]) == (alias, "P1")
    assert body["details"]["runbook"] == "https://r.example/pass-rate-critical"


async def test_a_long_title_keeps_to_what_pagers_take():
    named = notice(labels=(("service", "s" * 300), ("environment", "e" * 300), ("rubric", "r" * 300)))
    (made,) = await sent(lambda url: Opsgenie(url, "key", LINKED), named)
    assert len(made.json["message"]) == 130, "what was cut, and the mark of it"
    titled = notice(condition="blocker_rate", title="t" * 2_000)
    (begun,) = await sent(lambda url: PagerDuty(Poster(url), "key", LINKED), titled)
    assert len(begun.json["payload"]["summary"]) == 1_024


async def test_a_card_of_teams_holds_no_markup_but_its_links():
    got = await sent(lambda url: Chat(Poster(url), LINKED, teams_body), notice(examples=(HOSTILE,)))
    card = got[0].json["attachments"][0]["content"]
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}, "its text runs know no Markdown"
    assert NASTY in json.dumps(card["body"])
    assert [action["url"] for action in card["actions"]] == [
        f"https://t.example/{TRACES[0]}", "https://r.example/pass-rate-critical",
        "https://g.example/d/x?service=checkout&metric=",
    ]  # fmt: skip


async def test_a_card_of_google_chat_escapes_what_is_not_ours():
    got = await sent(lambda url: Chat(Poster(url), LINKED, google_chat_body), notice(examples=(HOSTILE,)))
    text = json.dumps(got[0].json["cardsV2"][0]["card"]["sections"])
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert "<users" not in text


@pytest.mark.parametrize(
    ("body", "most"), [(teams_body, 28_000), (google_chat_body, 32_000)], ids=["teams", "google_chat"]
)
@pytest.mark.parametrize("character", ["x", "&", '"', "\n", "日", "😀"])
def test_a_card_shows_every_alert_of_a_message_within_its_bytes(body, most, character):
    text = character * 300
    shown = event(
        labels=(("service", text), ("environment", text), ("rubric", "qa")),
        failure=MainFailure(reason=text, count=61, of=73),
        examples=(Example(trace_id=TRACES[0], reason=text, composite=0.1, closed_ns=1),),
    )  # fmt: skip
    alone = Notice(id="n", kind=NoticeKind.ALERT, at_ns=SINCE_NS, events=(shown,))
    group = Notice(id="n", kind=NoticeKind.GROUP, at_ns=SINCE_NS, events=(shown,) * MOST_IN_A_MESSAGE)
    assert len(body(alone, LINKED)) <= most
    written = body(group, LINKED)
    assert len(written) <= most
    assert written.count(b"Critical: ") == MOST_IN_A_MESSAGE


async def test_mail_is_plain_text_with_the_title_as_its_subject():
    with mail_server() as server:
        mail = Email(MailServer(host="127.0.0.1", port=server.port, encryption="none"), "a@x.org", ["b@y.org"], LINKED)
        await mail.send(notice(condition="blocker_rate", title="Too few\r\nBcc: c@z.org traces pass"))
    (got,) = server.mails
    message = email.message_from_string(got, policy=policy.default)
    assert message["Subject"].startswith("[sidejudge] Critical: Too few Bcc: c@z.org traces pass")
    assert (message["To"], message["Bcc"]) == ("b@y.org", None)
    assert "Reported by pod-1." in message.get_content()


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"RCPT": "550 no such user"}, RefusedError), ({"RCPT": "451 later"}, DestinationUnreachableError),
        ({"DATA": "554 no"}, RefusedError), ({"MAIL": "421 busy"}, DestinationUnreachableError),
    ],
)  # fmt: skip
async def test_what_a_mail_server_refuses_for_good_is_not_tried_again(answers, error):
    with mail_server(**answers) as server:
        mail = Email(MailServer(host="127.0.0.1", port=server.port, encryption="none"), "a@x.org", ["b@y.org"], LINKED)
        with pytest.raises(error):
            await mail.send(notice())


@pytest.mark.parametrize("answer", ["421 too slow", "500 what?", "250 fine", "?"])
async def test_what_a_mail_server_took_is_taken_whatever_it_answers_at_the_end(answer):
    with mail_server(QUIT=answer) as server:
        mail = Email(MailServer(host="127.0.0.1", port=server.port, encryption="none"), "a@x.org", ["b@y.org"], LINKED)
        await mail.send(notice())
    assert len(server.mails) == 1


async def test_who_is_refused_for_now_gets_a_mail_later_and_nobody_gets_it_twice(monkeypatch):
    monkeypatch.setattr(sidejudge.integrations.notify.email, "_LATER_S", (0.05, 0.05, 0.05))
    with mail_server(RCPT=["450 greylisted", "550 no such user", "250 fine", "450 greylisted"]) as server:
        to = ["b@y.org", "gone@y.org", "c@y.org"]
        mail = Email(MailServer(host="127.0.0.1", port=server.port, encryption="none"), "a@x.org", to, LINKED)
        await mail.send(notice())
        await until(lambda: len(server.mails) == 2)
        await asyncio.sleep(0.2)
    assert [each for each in server.recipients if each != "gone@y.org"] == ["b@y.org", "c@y.org", "b@y.org", "b@y.org"]
    assert server.recipients.count("gone@y.org") == 1
    assert len(server.mails) == 2


async def test_mails_that_are_sent_later_take_one_thread(monkeypatch):
    monkeypatch.setattr(sidejudge.integrations.notify.email, "_LATER_S", (0.0,))
    most = at_once = 0
    with mail_server() as server:
        to = ["b@y.org"]
        mail = Email(MailServer(host="127.0.0.1", port=server.port, encryption="none"), "a@x.org", to, LINKED)
        submit = mail._submit

        def slow(*arguments):
            nonlocal most, at_once
            at_once += 1
            most = max(most, at_once)
            time.sleep(0.02)
            refused = submit(*arguments)
            at_once -= 1
            return refused

        mail._submit = slow
        later = (email_message(notice(title=f"Alert {n}"), LINKED, "a@x.org", to) for n in range(8))
        await asyncio.gather(*(mail._deliver_later(each, to) for each in later))
        assert len(server.mails) == 8
    assert most == 1


async def test_a_notice_that_is_sent_again_is_the_same_mail():
    with mail_server() as server:
        mail = Email(MailServer(host="127.0.0.1", port=server.port, encryption="none"), "a@x.org", ["b@y.org"], LINKED)
        for each in (notice(), notice(), notice(condition="blocker_rate", title="Another")):
            await mail.send(each)
    ids = [email.message_from_string(each, policy=policy.default)["Message-ID"] for each in server.mails]
    assert ids[0] == ids[1] != ids[2]


async def test_a_mail_server_that_goes_on_sending_is_left_alone_in_time(monkeypatch):
    monkeypatch.setattr(sidejudge.integrations.notify.email, "_WHOLE_S", 0.3)
    ended = threading.Event()

    class Endless(socketserver.BaseRequestHandler):
        def handle(self):
            with contextlib.suppress(OSError):
                while not ended.wait(0.02):
                    self.request.sendall(b"2")
            ended.set()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        to = MailServer(host="127.0.0.1", port=server.server_address[1], encryption="none")
        with pytest.raises(DestinationUnreachableError, match="in time"):
            await Email(to, "a@x.org", ["b@y.org"], LINKED).send(notice())
        was_cut_off = await asyncio.to_thread(ended.wait, 5)
        ended.set()
        server.shutdown()
    assert was_cut_off, "no thread is left that reads on"


async def test_a_mail_server_that_is_not_there_or_cannot_encrypt():
    gone = Email(MailServer(host="127.0.0.1", port=1, encryption="none"), "a@x.org", ["b@y.org"], LINKED)
    with pytest.raises(DestinationUnreachableError):
        await gone.send(notice())
    with mail_server() as server:
        plain = Email(
            MailServer(host="127.0.0.1", port=server.port, encryption="starttls"), "a@x.org", ["b@y.org"], LINKED
        )
        with pytest.raises(RefusedError, match="does not support"):
            await plain.send(notice())
    assert server.mails == [], "nothing goes in the open that was to be encrypted"


async def test_a_template_replaces_the_body_and_no_text_ends_a_value_early():
    template = '{"summary": {{ title | tojson }}, "why": {{ alerts[0].examples[0].reason | tojson }}}'
    hook = notice(title='x", "admin": "yes', examples=(HOSTILE,))
    got = await sent(
        lambda url: Webhook(Poster(url), None, LINKED, lambda: SINCE_NS, template=template, headers={"x-key": "k"}),
        hook,
    )
    assert got[0].json.keys() == {"summary", "why"}
    assert got[0].json["why"] == NASTY
    assert (got[0].headers["x-key"], "webhook-signature" in got[0].headers) == ("k", False)


async def test_a_template_is_in_a_sandbox_and_costs_one_notice_when_it_fails():
    for text in ("{{ ''.__class__.__mro__ }}", "{{ unknown_field }}"):
        with receiving() as fake, pytest.raises(RefusedError, match="template"):
            await Webhook(Poster(fake.url), None, LINKED, lambda: SINCE_NS, template=text).send(notice())
        assert fake.got == []
    assert body_template("{{ title }}").render(title="<x>") == "<x>", "it is no HTML"


def test_the_signature_is_that_of_standard_webhooks():
    # The example of the specification's reference libraries.
    secret, id_, at = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330"
    assert (
        standard_signature(secret, id_, at, b'{"test": 2432232314}') == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_two_monitors_share_no_fingerprint_and_each_names_itself():
    one, other, alone = (Wording(instance=name) for name in ("pod-1", "pod-2", None))
    records = [notice_record(notice(), wording) for wording in (one, other, alone)]
    assert [record["instance"] for record in records] == ["pod-1", "pod-2", None]
    assert len({record["alerts"][0]["fingerprint"] for record in records}) == 3
    assert len({record["id"] for record in records}) == 3
    assert records[2]["alerts"][0]["fingerprint"] == event().fingerprint, "one monitor keeps its identities"
    assert "Reported by pod-2." in report(notice(), other).text
    labels = [json.loads(alertmanager_body(notice(), wording, {}, 0) or b"")[0]["labels"] for wording in (one, alone)]
    assert (labels[0].pop("instance"), labels[0]) == ("pod-1", labels[1])


def test_an_alert_of_a_fleet_is_one_whichever_monitor_sends_it():
    one, other = (Wording(instance=name) for name in ("pod-1", "pod-2"))
    shared = notice(shared=True)
    first, second = (notice_record(shared, wording) for wording in (one, other))
    assert (first["id"], first["alerts"]) == (second["id"], second["alerts"])
    assert first["alerts"][0]["shared"] is True
    bodies = [json.loads(alertmanager_body(shared, wording, {}, 0) or b"") for wording in (one, other)]
    assert "instance" not in bodies[0][0]["labels"]
    assert bodies[0][0]["labels"] == bodies[1][0]["labels"]
    keys = [[each["dedup_key"] for each in pagerduty_events(shared, wording)] for wording in (one, other)]
    assert keys == [[f"sidejudge-{event().fingerprint}"]] * 2
    mixed = replace(shared, kind=NoticeKind.GROUP, events=(event(shared=True), event()))
    assert len({notice_record(mixed, wording)["id"] for wording in (one, other)}) == 2, "it holds what is its own"


def test_the_source_of_an_alert_is_its_dashboard_else_its_worst_trace():
    sources = [
        json.loads(alertmanager_body(notice(), wording, {}, 0) or b"")[0]["generatorURL"]
        for wording in (LINKED, Wording(trace_url="https://t.example/{trace_id}"))
    ]
    assert sources == ["https://g.example/d/x?service=checkout&metric=", f"https://t.example/{TRACES[0]}"]
    assert Wording(dashboard_url="https://g.example/{service}/{rubric}").dashboard(
        (("service", "a/b&c"), ("severity", Severity.INFO))
    ) == "https://g.example/a%2Fb%26c/"  # fmt: skip
