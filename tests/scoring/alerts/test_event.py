from __future__ import annotations

import json

from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.event import AlertEvent, Example, event_of_json
from sidejudge.scoring.alerts.lifecycle import AlertTransition

EVENT = AlertEvent(
    transition=AlertTransition.FIRING, condition="pass_rate_warning", severity=Severity.WARNING, title="t", meaning="m",
    runbook="pass-rate-warning", labels=(("service", "shop"), ("rubric", "qa")), stated="why", unit="ratio", value=0.6,
    lower=0.5, upper=0.7, n=100, limit=0.85, since_ns=1, at_ns=2, number=1, changed_ns=None, muted=True,
    examples=(Example(trace_id="ab", reason="wrong \ud800 number", composite=None, closed_ns=3),),
)  # fmt: skip


def test_an_event_survives_the_store():
    assert event_of_json(json.loads(json.dumps(EVENT.to_json()))) == EVENT


def test_events_of_one_alert_share_its_fingerprint_and_have_ids_of_their_own():
    later = event_of_json({**EVENT.to_json(), "number": 2, "turn": "resolved"})
    assert later.fingerprint == EVENT.fingerprint
    assert later.id != EVENT.id
    assert event_of_json({**EVENT.to_json(), "labels": {"service": "other"}}).fingerprint != EVENT.fingerprint
