"""Slack: messages within Slack's limits, in which nothing that came from a trace does anything."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.notify.chats import Chat, slack_body
from sidejudge.integrations.post import Poster
from sidejudge.monitor.alerting.notify.build import MOST_IN_A_MESSAGE
from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.event import Example
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.notices.notice import DailyReportText, Notice, NoticeKind, WeakMetric
from sidejudge.scoring.notices.text import Wording
from tests.alert_events import SINCE_NS, TRACES, event
from tests.fakes.receiver import receiving

LINKED = Wording(trace_url="https://t.example/{trace_id}?a=1&b=2", runbooks="https://r.example")
TITLE = "Critical: checkout, production: 73 of 100 fail qa since 2026-11-21 09:58 UTC (4 of 100 in the day before)"
CONTROL = re.compile(r"<[^>]*>")


def alert(**changes):
    return Notice(id="n-1", kind=NoticeKind.ALERT, at_ns=SINCE_NS, events=(event(**changes),))


def message(notice, wording=LINKED):
    return json.loads(slack_body(notice, wording))


def texts(stated):
    return [block["text"]["text"] for block in stated["blocks"]]


async def test_an_alert_is_a_header_and_a_section_for_each_paragraph():
    with receiving() as fake:
        await Chat(Poster(fake.url), LINKED, slack_body).send(alert())
    stated = fake.got[0].json
    assert stated["text"] == f"🔴 {TITLE}"
    assert [block["type"] for block in stated["blocks"]] == ["header", "section", "section", "section"]
    assert stated["blocks"][0]["text"] == {"type": "plain_text", "text": stated["text"]}
    _, facts, examples, runbook = texts(stated)
    assert "27.0% pass (between 14.1% and 44.6% with 95 % confidence, n = 100); the limit is 70.0%." in facts
    assert f"2. {TRACES[1]}, scored 0.12: 19 of 20 questions" in examples
    assert f"<https://t.example/{TRACES[1]}?a=1&amp;b=2|open>" in examples
    assert runbook == "What to do: <https://r.example/pass-rate-critical|pass-rate-critical>"


def test_each_turn_has_its_sign():
    assert message(alert(transition=AlertTransition.RESOLVED))["text"].startswith("✅ Resolved: ")
    assert message(alert(transition=AlertTransition.UNKNOWN))["text"].startswith("⚪ Not known any more: ")


def test_several_alerts_are_one_message_under_the_sign_of_the_worst():
    mild = event(severity=Severity.WARNING, condition="workflow_violation_rate", title="Traces depart")
    over = event(transition=AlertTransition.RESOLVED, condition="blocker_rate", examples=())
    group = Notice(id="n", kind=NoticeKind.GROUP, at_ns=SINCE_NS, events=(over, mild, event()))
    stated = message(group)
    assert stated["text"] == "🔴 3 alerts: 1 critical, 1 warning, 1 resolved"
    _, critical, warning, resolved = texts(stated)
    assert critical.startswith(f"{TITLE}. Measured since 2026-11-21 09:58 UTC: 27.0% pass")
    assert f"<https://t.example/{TRACES[0]}?a=1&amp;b=2|open>" in critical
    assert warning.startswith("Warning: Traces depart")
    assert resolved.startswith("Resolved: ")
    ended = Notice(id="n", kind=NoticeKind.GROUP, at_ns=SINCE_NS, events=(over, over))
    assert message(ended)["text"] == "✅ 2 alerts: 2 resolved"


@given(st.text(max_size=2_000), st.text(max_size=2_000))
def test_a_large_group_keeps_to_the_limits_whatever_it_tells(name, reason):
    examples = (Example(trace_id="ab", reason=reason, composite=0.1, closed_ns=1),)
    events = (
        event(labels=(("service", name), ("rubric", "qa")), examples=examples, stated=reason),
    ) * MOST_IN_A_MESSAGE
    stated = message(Notice(id="n", kind=NoticeKind.GROUP, at_ns=SINCE_NS, events=events))
    within_limits(stated)
    assert len(stated["blocks"]) == 1 + MOST_IN_A_MESSAGE, "nothing is left out"


def test_what_traces_say_can_neither_mention_nor_link_nor_end_a_link():
    attack = "<!channel> <@U123> <https://evil.example|click> *bold* https://evil.example &lt;!here&gt;"
    hostile = Example(trace_id="<!here>|x", reason=attack, composite=0.1, closed_ns=1)
    stated = message(alert(labels=(("service", attack), ("rubric", "qa")), examples=(hostile,)))
    allowed = {
        "<https://t.example/%3C%21here%3E%7Cx?a=1&amp;b=2|open>",
        "<https://r.example/pass-rate-critical|pass-rate-critical>",
    }
    for block in stated["blocks"]:
        if block["type"] == "section":
            assert block["text"]["verbatim"], "Slack must not make links of what looks like one"
            assert set(CONTROL.findall(block["text"]["text"])) <= allowed
    assert "<" not in stated["text"]


@given(st.text(max_size=4_000), st.text(max_size=4_000))
def test_a_message_keeps_to_the_limits_whatever_it_tells(name, reason):
    examples = (Example(trace_id="ab", reason=reason, composite=0.1, closed_ns=1),) * 3
    within_limits(message(alert(labels=(("service", name), ("rubric", "qa")), examples=examples)))


def test_a_long_report_keeps_to_the_limits():
    weak = WeakMetric(service="s" * 200, environment="<" * 200, rubric="qa", metric="m" * 60, mean=0.5, n=1,
                      acceptable=0.9, higher_is_better=True)  # fmt: skip
    report = DailyReportText(begin_ns=0, end_ns=SINCE_NS, weakest=(weak,) * 60, firing=("&" * 300,) * 60)
    within_limits(message(Notice(id="r", kind=NoticeKind.REPORT, at_ns=SINCE_NS, report=report)))


def test_names_and_links_that_grow_when_they_are_written_keep_to_the_limits():
    grown = Wording(runbooks="https://r.example", dashboard_url="https://g.example/?{service}&{environment}&{rubric}")
    for character in "&日":
        names = (("service", character * 200), ("environment", character * 200), ("rubric", character * 200))
        shown = event(labels=names, condition="blocker_rate", stated=character * 300)
        within_limits(message(Notice(id="n", kind=NoticeKind.GROUP, at_ns=SINCE_NS, events=(shown, event()))))
        stated = message(alert(labels=names, condition="blocker_rate"), grown)
        within_limits(stated)
        assert "https://r.example/pass-rate-critical" in texts(stated)[-1]


def within_limits(stated):
    assert len(stated["blocks"]) <= 50
    for block in stated["blocks"]:
        assert 1 <= len(block["text"]["text"]) <= (150 if block["type"] == "header" else 3_000)
