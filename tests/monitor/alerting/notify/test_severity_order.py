"""What waits for a receiver: the most severe goes first, and what concerns one alert stays in its order."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.store.notification_outbox import PendingNotice
from sidejudge.monitor.alerting.notify.receiver import NoticeReceiver
from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from sidejudge.scoring.notices.text import Wording
from sidejudge.scoring.notices.wording import report
from tests.alert_events import SINCE_NS, event

INFO, WARNING, CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL


class Nobody:
    async def send(self, _):
        pass


def pending(seq, severity=None, kind=NoticeKind.ALERT, **changes):
    events = () if severity is None else (event(severity=severity, **changes),)
    notice = Notice(id=f"n-{seq}", kind=kind, at_ns=SINCE_NS, events=events)
    return PendingNotice(seq=seq, id=notice.id, queued_ns=0, body=json.dumps(notice.to_json()))


@pytest.mark.parametrize(
    ("waiting", "most", "first"),
    [
        pytest.param([pending(1, INFO), pending(2, CRITICAL)], 1, [2], id="critical overtakes info"),
        pytest.param([pending(1, WARNING), pending(2, WARNING)], 1, [1], id="equal ones in order"),
        pytest.param(
            [pending(1, CRITICAL), pending(2, CRITICAL, transition=AlertTransition.RESOLVED)], 1, [1],
            id="an end does not overtake its beginning",
        ),
        pytest.param([pending(1, kind=NoticeKind.REPORT), pending(2, INFO)], 1, [2], id="an alert overtakes a report"),
        pytest.param(
            [pending(1, INFO), pending(2, WARNING), pending(3, CRITICAL)], 2, [3, 2], id="a message holds the worst"
        ),
        pytest.param(
            [pending(1, WARNING, NoticeKind.DIGEST), pending(2, INFO)], 5, [1], id="a digest is a message of its own"
        ),
    ],
)  # fmt: skip
def test_the_most_severe_goes_first(waiting, most, first):
    receiver = NoticeReceiver(name="x", sender=Nobody(), most=most)
    assert [entry.seq for entry in receiver.together(waiting)] == first


async def test_an_alert_that_began_and_ended_while_it_waited_is_one_message():
    taken = []

    class Chat:
        async def send(self, notice):
            taken.append(notice)

    ended = pending(2, CRITICAL, transition=AlertTransition.RESOLVED, number=2)
    other = pending(3, WARNING, condition="blocker_rate")
    receiver = NoticeReceiver(name="chat", sender=Chat(), most=5)
    await receiver.deliver([pending(1, CRITICAL), ended])
    await receiver.deliver([pending(1, CRITICAL), ended, other])
    alone, group = taken
    assert (alone.kind, [each.transition.value for each in alone.events]) == (NoticeKind.ALERT, ["resolved"])
    assert (group.kind, [each.condition for each in group.events]) == (
        NoticeKind.GROUP, ["pass_rate_critical", "blocker_rate"]
    )  # fmt: skip
    assert "It began 2026-11-21 10:03 UTC and lasted 12 minutes." in report(alone, Wording()).text
