"""Notifier: who is told what and when, over a real store whose monitor may be killed at any moment."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sidejudge.integrations.store.erasure import erase
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.alerting.notify.notifier import (
    FORGET_NS,
    REFRESH_NS,
    RESENT_NS,
    SUBJECT,
    UNSENT_NS,
    UNWATCHED_NS,
    Notifier,
)
from sidejudge.monitor.alerting.notify.receiver import NoticeReceiver
from sidejudge.monitor.deliver.dispatcher import StoredQueue
from sidejudge.scoring.alerts.condition import AlertFinding, Severity
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.event import Example
from sidejudge.scoring.alerts.lifecycle import Alert, AlertTransition, Posted, Stage
from sidejudge.scoring.notices.notice import DailyReportText, FailureLine, Notice, NoticeKind
from tests.alert_events import MINUTE_NS, SINCE_NS, TRACES, event

HOUR_NS = 60 * MINUTE_NS
REMIND_NS = 4 * HOUR_NS
LATE = ("late", "am")
CONDITIONS = {each.id: each for each in conditions(Declaration())}
INFO = {"severity": Severity.INFO, "condition": "pass_rate_change"}
WARNING = {"severity": Severity.WARNING, "condition": "pass_rate_warning"}
WORST = Example(trace_id="ab", reason="now", composite=0.1, closed_ns=1)


class Desk:
    """A notifier over a store, and a clock that the test sets."""

    def __init__(self, path, *receivers):
        self.path, self.receivers = path, receivers or (NoticeReceiver(name="slack", sender=None),)
        self.now_ns, self.is_quiet = SINCE_NS + 12 * MINUTE_NS, False
        self.is_shared, self.is_named = False, False
        self.worst, self.gone = WORST, set()
        self.store = Store(path)
        self.begin()

    def begin(self):
        self.notifier = Notifier(
            self.receivers, self.store.notifications, remind_ns=REMIND_NS, clock_ns=lambda: self.now_ns,
            illustrate=lambda event, _since_ns: replace(event, examples=(self.worst,)),
            holds=lambda trace_id: trace_id not in self.gone,
            is_shared=lambda _condition: self.is_shared,
            is_quiet=lambda _condition: self.is_quiet,
            is_named=self.is_named,
        )  # fmt: skip
        self.notifier.restore()

    def restart(self):
        """As after a kill: nothing but the store is left."""
        self.store.close()
        self.store = Store(self.path)
        self.begin()

    def waiting(self, name="slack"):
        return [Notice.of_json(json.loads(each.body)) for each in self.store.notifications.waiting(name, 100)]

    async def delivered(self, name="slack"):
        """Take out everything that waits, as its delivery would."""
        found = self.waiting(name)
        await self.store.notifications.settle([each.seq for each in self.store.notifications.waiting(name, 100)], {})
        return [(notice.kind, *(each.transition for each in notice.events)) for notice in found]

    async def tick(self, *posted, after_ns=0):
        self.now_ns += after_ns
        await self.notifier.tick(posted)


@pytest.fixture
def desk(tmp_path):
    made = []

    def make(*receivers):
        made.append(Desk(tmp_path / "state.sqlite", *receivers))
        return made[-1]

    yield make
    for each in made:
        each.store.close()


def posted(stated, stage=Stage.FIRING, *, muted=False, value=0.5, breached=True):
    found = AlertFinding(
        labels=stated.labels, breached=breached, stated="worse", value=value, lower=0.4, upper=0.6, n=99, limit=0.7
    )
    alert = Alert(condition=stated.condition, labels=stated.labels, stage=stage, since_ns=stated.since_ns,
                  breached_ns=stated.at_ns, finding=found, fired_ns=stated.since_ns,
                  reported=stated.number)  # fmt: skip
    return Posted(condition=CONDITIONS[stated.condition], alert=alert, muted=muted)


def over(stated, transition=AlertTransition.RESOLVED):
    return event(transition=transition, number=stated.number + 1, since_ns=stated.since_ns, labels=stated.labels,
                 examples=(), severity=stated.severity, condition=stated.condition,
                 at_ns=stated.at_ns + HOUR_NS)  # fmt: skip


FIRING = (NoticeKind.ALERT, AlertTransition.FIRING)
RESOLVED = (NoticeKind.ALERT, AlertTransition.RESOLVED)


async def test_an_alert_is_one_page_and_its_end_one_message(desk):
    office = desk()
    fired = event()
    await office.notifier.take(fired)
    for _ in range(10):
        await office.tick(posted(fired), after_ns=MINUTE_NS)
    assert await office.delivered() == [FIRING]
    await office.notifier.take(over(fired))
    await office.tick()
    assert await office.delivered() == [RESOLVED]


async def test_an_event_that_comes_again_after_a_kill_is_not_told_again(desk):
    office = desk()
    fired = event()
    await office.notifier.take(fired)
    assert await office.delivered() == [FIRING]
    office.restart()
    await office.notifier.take(fired)
    assert await office.delivered() == []
    await office.notifier.take(over(fired))
    office.restart()
    for again in (over(fired), fired):
        await office.notifier.take(again)
    assert await office.delivered() == [RESOLVED]


async def test_an_alert_set_aside_is_not_sent_at_the_next_start_where_its_end_was_delivered(desk):
    office = desk()
    fired = event()
    for each in (fired, event(**WARNING), over(fired)):
        await office.notifier.take(each)
    first, other, end = office.store.notifications.waiting("slack", 10)
    queue = StoredQueue(office.store.notifications, "slack", subject=SUBJECT)
    await queue.settle([], {first.seq: "refused", other.seq: "refused"})
    await queue.settle([end.seq], {})
    assert await queue.retry_refused() == 1
    assert [each.id for each in office.waiting()] == [event(**WARNING).id]


async def test_what_was_put_in_before_a_kill_still_waits_after_it(desk):
    office = desk()
    await office.notifier.take(event())
    office.restart()
    assert await office.delivered() == [FIRING]


async def test_an_alert_that_comes_back_later_is_a_new_page(desk):
    office = desk()
    fired = event()
    for each in (fired, over(fired), event(since_ns=SINCE_NS + 5 * HOUR_NS)):
        await office.notifier.take(each)
    assert await office.delivered() == [FIRING, RESOLVED, FIRING]


async def test_a_muted_alert_is_not_told_and_nor_is_its_end(desk):
    office = desk()
    muted = event(muted=True, **WARNING)
    await office.notifier.take(muted)
    await office.notifier.take(over(muted))
    assert await office.delivered() == []


async def test_an_alert_that_was_told_and_then_muted_is_told_to_be_over(desk):
    office = desk()
    fired = event(**WARNING)
    await office.notifier.take(fired)
    await office.tick(posted(fired, muted=True), after_ns=REMIND_NS)
    assert await office.delivered() == [FIRING], "and no reminder while it is muted"
    await office.notifier.take(over(fired))
    assert await office.delivered() == [RESOLVED]


async def test_silence_is_told_as_such_and_not_as_recovery(desk):
    office = desk()
    fired = event()
    for transition, number in (
        (AlertTransition.FIRING, 1),
        (AlertTransition.UNKNOWN, 2),
        (AlertTransition.FIRING, 3),
        (AlertTransition.UNKNOWN, 4),
        (AlertTransition.EXPIRED, 5),
    ):
        await office.notifier.take(event(transition=transition, number=number, since_ns=fired.since_ns))
    assert [turn for _, turn in await office.delivered()] == [
        AlertTransition.FIRING, AlertTransition.UNKNOWN, AlertTransition.FIRING, AlertTransition.UNKNOWN,
        AlertTransition.EXPIRED,
    ]  # fmt: skip


async def test_a_reminder_comes_after_its_interval_tells_how_things_are_now_and_survives_restarts(desk):
    office = desk()
    fired = event()
    await office.notifier.take(fired)
    await office.delivered()
    await office.tick(posted(fired), after_ns=REMIND_NS - MINUTE_NS)
    office.restart()
    await office.tick(posted(fired))
    assert office.waiting() == []
    await office.tick(posted(fired, value=0.33), after_ns=MINUTE_NS)
    (reminder,) = office.waiting()
    assert (reminder.kind, reminder.events[0].value, reminder.events[0].examples) == (
        NoticeKind.REMINDER,
        0.33,
        (WORST,),
    )
    office.restart()
    await office.tick(posted(fired), after_ns=MINUTE_NS)
    assert len(office.waiting()) == 1
    await office.tick(posted(fired, breached=None), after_ns=REMIND_NS)
    first, second = office.waiting()
    assert first.id != second.id
    assert (first.events[0].held, second.events[0].held) == (False, True)


async def test_what_cannot_be_told_now_is_not_reminded_of(desk):
    office = desk()
    fired = event()
    await office.notifier.take(fired)
    await office.delivered()
    await office.tick(posted(fired, Stage.UNKNOWN), after_ns=2 * REMIND_NS)
    assert office.waiting() == []


async def test_less_severe_alerts_wait_for_the_digest_which_is_not_sent_too_often(desk):
    office = desk(NoticeReceiver(name="slack", sender=None, digest_ns=HOUR_NS))
    info = event(**INFO)
    await office.notifier.take(info)
    await office.tick(posted(info), after_ns=30 * MINUTE_NS)
    assert office.waiting() == []
    office.restart()
    await office.tick(posted(info), after_ns=30 * MINUTE_NS)
    assert await office.delivered() == [(NoticeKind.DIGEST, AlertTransition.FIRING)]
    await office.notifier.take(over(info))
    office.restart()
    await office.tick(after_ns=59 * MINUTE_NS)
    assert office.waiting() == []
    await office.tick(after_ns=MINUTE_NS)
    assert await office.delivered() == [(NoticeKind.DIGEST, AlertTransition.RESOLVED)]
    await office.tick(after_ns=10 * HOUR_NS)
    assert office.waiting() == [], "nothing happened, and so there is no digest"


async def test_without_a_digest_less_severe_alerts_are_not_told(desk):
    office = desk()
    info = event(**INFO)
    await office.notifier.take(info)
    await office.tick(posted(info), after_ns=10 * HOUR_NS)
    assert office.waiting() == []


async def test_each_receiver_is_told_by_its_own_severity(desk):
    office = desk(
        NoticeReceiver(name="pager", sender=None, least=Severity.CRITICAL), NoticeReceiver(name="slack", sender=None),
        NoticeReceiver(name="all", sender=None, least=Severity.INFO),
    )  # fmt: skip
    for stated in (INFO, WARNING, {}):
        await office.notifier.take(event(**stated))
    assert [len(office.waiting(name)) for name in ("pager", "slack", "all")] == [1, 2, 3]


async def test_a_receiver_that_keeps_state_is_told_what_stands_again_and_again_and_of_ends_for_a_while(desk):
    office = desk(NoticeReceiver(name="am", sender=None, least=Severity.INFO, keeps_state=True))
    fired = event()
    await office.notifier.take(fired)
    await office.delivered("am")
    for _ in range(3):
        await office.tick(posted(fired), after_ns=REFRESH_NS)
        await office.tick(posted(fired), after_ns=1)
        assert len(office.waiting("am")) == 1, "what still waits is replaced"
    assert await office.delivered("am") == [(NoticeKind.REFRESH, AlertTransition.FIRING)]
    office.restart()
    await office.tick(posted(fired, Stage.UNKNOWN))
    assert await office.delivered("am") == [(NoticeKind.REFRESH, AlertTransition.UNKNOWN)], (
        "a restart refreshes at once"
    )
    await office.notifier.take(event(transition=AlertTransition.RESOLVED, number=2, at_ns=office.now_ns))
    assert await office.delivered("am") == [RESOLVED]
    await office.tick(after_ns=REFRESH_NS)
    assert await office.delivered("am") == [(NoticeKind.REFRESH, AlertTransition.RESOLVED)]
    await office.tick(after_ns=RESENT_NS)
    assert office.waiting("am") == []


async def test_a_refresh_names_no_trace_that_was_forgotten_since_it_was_shown(desk):
    office = desk(NoticeReceiver(name="am", sender=None, least=Severity.INFO, keeps_state=True))
    fired = event(examples=(WORST,))
    await office.notifier.take(fired)
    office.worst, office.gone = replace(WORST, trace_id="cd"), {"ab"}
    await office.tick(posted(fired), after_ns=REFRESH_NS)
    (notice,) = [each for each in office.waiting("am") if each.kind is NoticeKind.REFRESH]
    assert [each.trace_id for each in notice.events[0].examples] == ["cd"]


async def test_what_fires_before_a_receiver_is_configured_is_sent_to_it_too_and_so_is_its_end(desk):
    office = desk()
    fired, covered = event(), event(**WARNING)
    await office.notifier.take(fired)
    late = [NoticeReceiver(name=name, sender=None, least=Severity.INFO, keeps_state=name == "am") for name in LATE]
    office.receivers = (*office.receivers, *late, NoticeReceiver(name="daily", sender=None, digest_ns=HOUR_NS))
    office.restart()
    standing = (posted(fired), posted(covered, muted=True), posted(event(**INFO), Stage.UNKNOWN))
    await office.tick(*standing)
    await office.tick(*standing, after_ns=UNSENT_NS - 1)
    assert [office.waiting(name) for name in LATE] == [[], []]
    for _ in range(3):
        await office.tick(*standing, after_ns=MINUTE_NS)
    (first,) = office.waiting("late")
    assert (first.id, first.kind, first.events[0].examples) == (fired.id, NoticeKind.ALERT, (WORST,))
    assert [each.kind for each in office.waiting("am")] == [NoticeKind.ALERT, NoticeKind.REFRESH]
    assert [len(office.waiting(name)) for name in ("slack", "daily")] == [1, 1]
    await office.notifier.take(over(fired))
    assert [await office.delivered(name) for name in ("slack", "late")] == [[FIRING, RESOLVED]] * 2


async def test_what_is_less_severe_than_a_receiver_takes_waits_for_its_digest_or_is_not_sent_to_it(desk):
    office = desk(
        NoticeReceiver(name="pager", sender=None, least=Severity.CRITICAL),
        NoticeReceiver(name="slack", sender=None, least=Severity.CRITICAL, digest_ns=HOUR_NS),
    )
    for _ in range(3):
        await office.tick(posted(event(**WARNING)), after_ns=UNSENT_NS)
    assert [office.waiting(name) for name in ("pager", "slack")] == [[], []]
    await office.tick(posted(event(**WARNING)), after_ns=HOUR_NS)
    assert [[each.kind for each in office.waiting(name)] for name in ("pager", "slack")] == [[], [NoticeKind.DIGEST]]


async def test_an_alert_that_was_given_up_and_is_watched_again_is_sent_again_and_ended(desk):
    office, fired = desk(), event()
    await office.notifier.take(fired)
    for _ in range(2):
        await office.tick(after_ns=UNWATCHED_NS)
    await office.notifier.take(fired)  # as after a crash
    ids = {notice.id for notice in office.waiting()}
    assert await office.delivered() == [FIRING, (NoticeKind.ALERT, AlertTransition.EXPIRED)]
    for _ in range(2):
        await office.tick(posted(fired), after_ns=UNSENT_NS)
    (again,) = office.waiting()
    await office.notifier.take(replace(over(fired), at_ns=office.now_ns))
    ids |= {notice.id for notice in office.waiting()}
    assert (again.id.startswith(f"{fired.id}-back-"), len(ids)) == (True, 4), "a receiver takes no notice twice"
    assert await office.delivered() == [FIRING, RESOLVED]


async def test_what_another_monitor_sends_is_not_taken_for_sent_before_it_is(desk):
    office, fired = desk(), event()
    office.is_quiet = True
    for _ in range(3):
        await office.tick(posted(fired), after_ns=UNSENT_NS)
    office.is_quiet = False
    await office.notifier.take(fired)
    assert await office.delivered() == [FIRING]


async def test_an_alert_of_the_fleet_does_not_end_with_the_monitor_that_sent_it(desk):
    leader = desk()
    leader.is_shared = True
    await leader.notifier.take(event())
    leader.is_shared = False
    await leader.notifier.take(event(**WARNING))
    assert [[each.shared for each in notice.events] for notice in leader.waiting()] == [[True], [False]]
    await leader.delivered()
    await leader.notifier.end()
    (ended,) = leader.waiting()
    assert [(each.condition, each.transition) for each in ended.events] == [
        (WARNING["condition"], AlertTransition.EXPIRED)
    ]


async def test_an_alert_keeps_the_identity_that_it_fired_under_and_only_who_has_it_ends_it(desk):
    """Sent while the fleet was away, it is the monitor's own, whoever leads when it is over."""
    office = desk()
    office.is_named = True
    office.begin()
    await office.notifier.take(event())
    office.is_shared = office.is_quiet = True
    await office.notifier.take(event(**WARNING), noted=True)
    await office.delivered()
    for each in (event(), event(**WARNING)):
        await office.notifier.take(over(each), noted=True)
    (ended,) = office.waiting()
    assert [(each.condition, each.transition, each.shared) for each in ended.events] == [
        (event().condition, AlertTransition.RESOLVED, False)
    ]


async def test_what_was_sent_while_the_fleet_was_away_is_ended_from_here_unless_the_fleet_has_it_too(desk):
    office = desk()
    for each in (event(), event(**WARNING)):
        await office.notifier.take(each)
    office.is_shared = office.is_quiet = True
    again = replace(event(), since_ns=SINCE_NS + MINUTE_NS)
    await office.notifier.take(again, noted=True)
    await office.delivered()
    for _ in range(2):
        await office.tick(posted(again), after_ns=max(UNWATCHED_NS, REMIND_NS))
    (ended,) = office.waiting()
    assert [(each.condition, each.transition) for each in ended.events] == [
        (WARNING["condition"], AlertTransition.EXPIRED)
    ]


async def test_the_end_of_an_alert_that_was_given_up_is_sent_whoever_sent_that_it_goes_on(desk):
    office, fired = desk(), event()
    await office.notifier.take(fired)
    for _ in range(2):
        await office.tick(after_ns=UNWATCHED_NS)
    assert await office.delivered() == [FIRING, (NoticeKind.ALERT, AlertTransition.EXPIRED)]
    office.now_ns += MINUTE_NS
    for _ in range(2):
        await office.notifier.take(replace(over(fired), at_ns=office.now_ns))
    assert await office.delivered() == [RESOLVED]


@pytest.mark.parametrize("is_named", [True, False])
async def test_an_alert_that_the_last_version_noted_is_the_monitors_own_where_it_has_a_name(desk, is_named):
    office = desk()
    await office.notifier.take(event())
    await office.delivered()
    ((name, note),) = [each for each in office.store.notifications.notes().items() if each[0].startswith("told/")]
    stated = json.loads(note)
    del stated["event"]["shared"], stated["event"]["held"]
    await office.store.notifications.put((), 1, {name: json.dumps(stated)})
    office.is_named, office.is_shared, office.is_quiet = is_named, True, True
    office.restart()
    await office.notifier.take(over(event()), noted=True)
    assert await office.delivered() == [RESOLVED] * is_named


async def test_an_alert_after_the_clock_was_set_back_is_sent_and_one_that_comes_again_is_not(desk):
    office, ahead = desk(), event(since_ns=SINCE_NS + 8 * HOUR_NS, at_ns=SINCE_NS + 8 * HOUR_NS)
    for each in (ahead, over(ahead)):
        await office.notifier.take(each)
    for each in (ahead, over(ahead), event()):
        await office.notifier.take(each)
    assert await office.delivered() == [FIRING, RESOLVED, FIRING]
    await office.notifier.take(over(event()))
    office.now_ns = SINCE_NS + 20 * HOUR_NS
    for each in (event(), over(event()), event(since_ns=SINCE_NS - HOUR_NS)):
        await office.notifier.take(each)
    assert await office.delivered() == [RESOLVED]


async def test_an_alert_is_sent_after_one_that_began_under_a_wrong_clock_ended_under_the_right_one(desk):
    office, ahead = desk(), event(since_ns=SINCE_NS + 8 * HOUR_NS, at_ns=SINCE_NS + 8 * HOUR_NS)
    ended = replace(over(ahead), at_ns=SINCE_NS)
    again = event(since_ns=SINCE_NS + HOUR_NS, at_ns=SINCE_NS + HOUR_NS)
    for each in (ahead, ended):
        await office.notifier.take(each)
    office.now_ns = SINCE_NS + HOUR_NS
    for each in (ended, again, again):
        await office.notifier.take(each)
    assert await office.delivered() == [FIRING, RESOLVED, FIRING]


async def test_what_is_due_by_time_is_due_in_its_usual_time_after_the_clock_was_set_back(desk):
    office = desk(
        NoticeReceiver(name="am", sender=None, least=Severity.INFO, keeps_state=True),
        NoticeReceiver(name="slack", sender=None),
        NoticeReceiver(name="mail", sender=None, least=Severity.CRITICAL, digest_ns=HOUR_NS),
    )
    fired, gone, lesser = event(), event(labels=(("service", "old"),)), event(**WARNING)
    for each in (fired, gone, lesser):
        await office.notifier.take(each)
    await office.tick(posted(fired), posted(lesser), after_ns=8 * HOUR_NS)
    await office.notifier.take(over(lesser))
    for name in ("am", "slack", "mail"):
        await office.delivered(name)
    office.now_ns -= 8 * HOUR_NS
    await office.tick(posted(fired))
    await office.tick(posted(fired), after_ns=UNWATCHED_NS)
    assert NoticeKind.REFRESH in {notice.kind for notice in office.waiting("am")}
    assert await office.delivered() == [(NoticeKind.ALERT, AlertTransition.EXPIRED)]
    await office.tick(posted(fired), after_ns=REMIND_NS - UNWATCHED_NS)
    assert await office.delivered() == [(NoticeKind.REMINDER, AlertTransition.FIRING)]
    assert NoticeKind.DIGEST in {notice.kind for notice in office.waiting("mail")}


async def test_how_long_an_alert_was_not_sent_is_counted_anew_after_it_was_gone(desk):
    office = desk()
    await office.tick(posted(event()))
    await office.tick(after_ns=UNSENT_NS)
    await office.tick(posted(event(since_ns=SINCE_NS + HOUR_NS)), after_ns=UNSENT_NS)
    assert office.waiting() == []


async def test_an_alert_that_nobody_watches_any_more_is_given_up_in_words(desk):
    office = desk()
    fired = event()
    await office.notifier.take(fired)
    await office.delivered()
    office.restart()  # under a configuration without it
    await office.tick()
    await office.tick(after_ns=UNWATCHED_NS - 1)
    assert office.waiting() == []
    await office.tick(after_ns=1)
    (notice,) = office.waiting()
    assert notice.events[0].transition is AlertTransition.EXPIRED
    assert "not watched any more" in notice.events[0].stated
    await office.tick(after_ns=10 * UNWATCHED_NS)
    assert len(office.waiting()) == 1


async def test_what_is_over_is_forgotten_in_time(desk):
    office = desk()
    fired = event()
    await office.notifier.take(fired)
    await office.notifier.take(over(fired))
    await office.tick(after_ns=FORGET_NS + 2 * HOUR_NS)
    assert office.store.notifications.notes() == {}


async def test_a_report_goes_to_those_who_are_told_of_changes(desk):
    office = desk(NoticeReceiver(name="slack", sender=None), NoticeReceiver(name="am", sender=None, keeps_state=True))
    await office.notifier.report(DailyReportText(begin_ns=0, end_ns=SINCE_NS), ("report", "5"))
    assert [each.kind for each in office.waiting()] == [NoticeKind.REPORT]
    assert office.waiting("am") == []
    assert office.store.notifications.notes() == {"report": "5"}


async def test_a_monitor_that_ends_for_good_gives_up_what_it_holds_where_nothing_ends_by_itself(desk):
    b = desk(
        NoticeReceiver(name="slack", sender=None), NoticeReceiver(name="alertmanager", sender=None, keeps_state=True)
    )
    await b.notifier.take(event())
    await b.delivered()
    await b.delivered("alertmanager")
    await b.notifier.end()
    assert await b.delivered() == [(NoticeKind.ALERT, AlertTransition.EXPIRED)]
    assert await b.delivered("alertmanager") == []
    await b.notifier.end()
    assert await b.delivered() == [], "once"


async def test_what_is_noted_of_a_notice_names_traces_only_as_long_as_a_digest_is_to_show_them(desk):
    office = desk(NoticeReceiver(name="slack", sender=None, least=Severity.CRITICAL, digest_ns=HOUR_NS))

    def noted():
        return [TRACES[0] in note for name, note in office.store.notifications.notes().items() if "told/" in name]

    await office.notifier.take(event())
    assert noted() == [False]
    await office.notifier.take(event(**WARNING))
    assert sorted(noted()) == [False, True]
    erase(office.store.path, [bytes.fromhex(TRACES[0])], scores=False, now_ns=1)
    assert noted() == [False]
    await office.tick(posted(event(**WARNING)), after_ns=2 * HOUR_NS)
    (digest,) = [each for each in office.waiting() if each.kind is NoticeKind.DIGEST]
    assert [(each.severity, each.examples) for each in digest.events] == [(Severity.WARNING, ())], "nor does the digest"


async def test_what_waits_for_a_receiver_goes_on_without_a_trace_that_is_forgotten(desk):
    office = desk()
    failing = FailureLine(group="g", rubric="r", metric="m", words="w", count=3, before=None, examples=TRACES[:2])
    await office.notifier.take(event())
    await office.notifier.report(DailyReportText(begin_ns=0, end_ns=SINCE_NS, failures=(failing,)), ("report", "5"))
    await office.notifier.take(event(labels=(("service", "other"),), examples=(WORST,)))
    before = office.waiting()
    assert TRACES[0] in str(before)
    erase(office.store.path, [bytes.fromhex(TRACES[0])], scores=False, now_ns=1)
    fired, report, other = office.waiting()
    assert TRACES[0] not in str(fired)
    assert replace(fired, events=()) == replace(before[0], events=())
    assert fired.events == (before[0].events[0].bare,)
    assert report.report.failures[0].examples == TRACES[1:2]
    assert other == before[2]


async def test_what_is_repeated_every_minute_is_illustrated_anew_now_and_then_and_a_few_at_a_time(desk):
    office = desk(NoticeReceiver(name="am", sender=None, keeps_state=True))
    read = []
    office.notifier._illustrate = lambda about, _since_ns: (
        read.append(about.fingerprint) or replace(about, examples=(WORST,))
    )
    fired = [event(labels=(("service", f"s{n}"), *event().labels[1:])) for n in range(25)]
    for each in fired:
        await office.notifier.take(each)
    for minute in range(1, 31):
        await office.tick(*map(posted, fired), after_ns=MINUTE_NS)
        (*_, last) = office.waiting("am")
        assert len(last.events) == 25
        assert all(each.examples for each in last.events)
        assert (len(read) == 0) == (minute < 15)
        assert len(read) <= 10 * max(0, minute - 14)
    assert sorted(read) == sorted([each.fingerprint for each in fired] + read[25:])
    assert len(read) < 50
    office.restart()
    await office.tick(*map(posted, fired), after_ns=MINUTE_NS)
    assert sum(each.examples == (WORST,) for each in office.waiting("am")[-1].events) == 10
