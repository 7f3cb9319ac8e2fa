"""Events become incidents: one for each time that an alert fired, with how it ended."""

from __future__ import annotations

import json

from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.event import Incidents
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from tests.alert_events import MINUTE_NS, SINCE_NS, event


def reported(*events):
    incidents = Incidents()
    for each in events:
        incidents.add(each)
    return incidents.reported()


def at(minute: int, transition: AlertTransition = AlertTransition.FIRING, **changes):
    return event(transition=transition, at_ns=SINCE_NS + minute * MINUTE_NS, **changes)


def test_what_fired_and_is_over_says_when_and_on_what():
    (one,) = reported(at(12), at(40, AlertTransition.RESOLVED, value=0.9))
    assert (one.began_ns, one.ended_ns) == (SINCE_NS + 12 * MINUTE_NS, SINCE_NS + 40 * MINUTE_NS)
    assert (one.value, one.n, one.silent, one.muted) == (0.27, 100, False, False)
    assert json.loads(json.dumps(one.to_json()))["labels"]["service"] == "checkout"


def test_what_fires_again_after_its_end_is_another():
    assert len(reported(at(1), at(2, AlertTransition.RESOLVED), at(9))) == 2
    assert [each.ended_ns for each in reported(at(1), at(2, AlertTransition.RESOLVED), at(9))][-1] is None


def test_silence_is_no_end_and_is_said():
    (one,) = reported(at(1), at(5, AlertTransition.UNKNOWN))
    assert (one.ended_ns, one.silent) == (None, True)
    (back,) = reported(at(1), at(5, AlertTransition.UNKNOWN), at(9))
    assert (back.began_ns, back.ended_ns, back.silent) == (SINCE_NS + MINUTE_NS, None, True)
    (given_up,) = reported(at(1), at(9, AlertTransition.EXPIRED))
    assert (given_up.ended_ns, given_up.silent) == (SINCE_NS + 9 * MINUTE_NS, True)


def test_what_was_muted_and_is_told_after_all_is_not_muted():
    assert reported(at(1, muted=True))[0].muted
    assert not reported(at(1, muted=True), at(5, muted=False))[0].muted


def test_an_end_of_what_never_began_is_nothing():
    assert reported(at(1, AlertTransition.RESOLVED), at(2, AlertTransition.UNKNOWN)) == []


def test_they_come_by_their_beginning_and_the_most_severe_first():
    other = {"condition": "pass_rate_warning", "severity": Severity.WARNING}
    found = reported(at(5, **other), at(5), at(2, labels=(("rubric", "text"),)))
    assert [(each.began_ns - SINCE_NS) // MINUTE_NS for each in found] == [2, 5, 5]
    assert [each.severity for each in found[1:]] == [Severity.CRITICAL, Severity.WARNING]
