"""Receiver: which of what waits is one message, and what that message holds."""

from __future__ import annotations

import json

from sidejudge.integrations.store.notification_outbox import PendingNotice
from sidejudge.monitor.alerting.notify.receiver import NoticeReceiver
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from tests.alert_events import SINCE_NS, event


class Sender:
    def __init__(self):
        self.sent = []

    async def send(self, notice):
        self.sent.append(notice)


def waiting(*kinds):
    events = [event(number=number + 1, labels=(("service", f"s{number}"),)) for number in range(len(kinds))]
    notices = [
        Notice(id=f"n-{number}", kind=kind, at_ns=SINCE_NS + number, events=(events[number],))
        for number, kind in enumerate(kinds)
    ]
    return [
        PendingNotice(seq=number, id=each.id, queued_ns=0, body=json.dumps(each.to_json()))
        for number, each in enumerate(notices)
    ]


def test_alerts_that_follow_each_other_are_one_message_and_nothing_else_is():
    receiver = NoticeReceiver(name="slack", sender=Sender(), most=15)
    alerts = waiting(NoticeKind.ALERT, NoticeKind.ALERT, NoticeKind.REMINDER, NoticeKind.ALERT)
    assert [each.seq for each in receiver.together(alerts)] == [0, 1]
    assert [each.seq for each in receiver.together(alerts[2:])] == [2]


async def test_a_message_of_several_tells_of_all_in_their_order():
    sender = Sender()
    receiver = NoticeReceiver(name="slack", sender=sender, most=15)
    entries = waiting(NoticeKind.ALERT, NoticeKind.ALERT)
    assert await receiver.deliver(entries) == {}
    assert await receiver.deliver(entries[:1]) == {}
    both, one = sender.sent
    assert (both.kind, both.id, both.at_ns) == (NoticeKind.GROUP, "n-1", SINCE_NS + 1)
    assert [each.number for each in both.events] == [1, 2]
    assert (one.kind, one.id) == (NoticeKind.ALERT, "n-0")
