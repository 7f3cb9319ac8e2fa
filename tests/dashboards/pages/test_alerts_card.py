"""Alerts card: what fires, where and why, with everything from traces escaped."""

from __future__ import annotations

from sidejudge.scoring.alerts.condition import AlertFinding
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.lifecycle import Alert, Posted, Stage, in_order
from tests.dashboards.pages.rendered import card

CRITICAL, WARNING, CHANGE, *_ = conditions(Declaration())
MINUTE_NS = 60 * 10**9


def posted(condition=CRITICAL, stage=Stage.FIRING, *, muted=False, service="shop", since_ns=0, **found) -> Posted:
    labels = (("service", service), ("environment", "prod"), ("rubric", "qa"))
    finding = AlertFinding(labels=labels, breached=True, **{"stated": "pass ratio 0.5", **found})
    alert = Alert(
        condition=condition.id, labels=labels, stage=stage, since_ns=since_ns, breached_ns=since_ns, finding=finding
    )
    return Posted(condition=condition, alert=alert, muted=muted)


def test_without_an_alert_there_is_no_section():
    assert card("alerts", alerts=[], now_ns=0) == ""


def test_an_alert_says_what_where_since_when_and_why():
    shown = card(
        "alerts", alerts=[posted(changed_ns=5 * MINUTE_NS), posted(WARNING, muted=True)], now_ns=90 * MINUTE_NS
    )
    for text in (
        "Too few traces pass", "shop · prod · qa", "1 h 30 min", "pass ratio 0.5", ">1 h 25 min ago</time>",
        '<span class="pill critical">critical</span>', "firing, muted", "2 of 2 firing",
        '<a href="/help/dashboards/runbooks/pass-rate-critical">runbook',
    ):  # fmt: skip
        assert text in shown, text


def test_what_cannot_be_told_any_more_is_said():
    assert "unknown for" in card("alerts", alerts=[posted(stage=Stage.UNKNOWN)], now_ns=MINUTE_NS)


def test_nothing_from_a_trace_can_be_markup():
    shown = card(
        "alerts",
        alerts=[posted(service="<script>alert(1)</script>", stated='"><img src=x onerror=alert(1)>')],
        now_ns=0,
    )
    assert "<script" not in shown
    assert "<img" not in shown
    assert "&lt;script&gt;" in shown


def test_what_matters_most_comes_first():
    firing, muted = posted(), posted(WARNING, muted=True)
    info, unknown, pending = posted(CHANGE), posted(stage=Stage.UNKNOWN), posted(stage=Stage.PENDING)
    older = posted(since_ns=-5)
    assert in_order([pending, muted, unknown, info, firing, older]) == [older, firing, info, muted, unknown, pending]


def test_an_alert_about_a_service_links_to_its_failed_verdicts():
    shown = card("alerts", alerts=[posted(service="a&b")], now_ns=0)
    assert 'href="/verdicts?service=a%26b&amp;environment=prod&amp;rubric=qa&amp;passed=false"' in shown
