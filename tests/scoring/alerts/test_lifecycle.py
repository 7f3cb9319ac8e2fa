"""The lifecycle of an alert: pending, firing, unknown, over."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sidejudge.scoring.alerts.condition import AlertFinding, Condition, Severity
from sidejudge.scoring.alerts.event import AlertEvent
from sidejudge.scoring.alerts.lifecycle import Alert, AlertTransition, Stage, advance

CONDITION = Condition(
    id="too_slow", severity=Severity.WARNING, scope=("service",), title="", when="", meaning="", unit="seconds",
    find=lambda _: (), for_ns=3, keep_ns=2,
)  # fmt: skip
LABELS = (("service", "shop"),)
BEGIN_NS = 1_800_000_000 * 10**9
DAY_NS = 24 * 3600 * 10**9


def finding(breached, *, shown=True, undecided=False) -> AlertFinding:
    return AlertFinding(
        labels=LABELS, breached=breached, stated="slow", value=1.5, n=3, shown=shown, undecided=undecided
    )


def played(story: str, condition: Condition = CONDITION) -> tuple[str, str]:
    """``b`` breached (``e``: by evidence alone), ``o`` not, ``?`` cannot be told (``h``: contradicted), ``.`` no word.

    Returned are stages and turns. There is a letter for each look.
    """
    alert, stages, turns = None, "", ""
    for now_ns, letter in enumerate(story, start=BEGIN_NS):
        found = {
            "b": finding(True),
            "e": finding(True, shown=False),
            "o": finding(False),
            "?": finding(None),
            "h": finding(None, undecided=True),
            ".": None,
        }[letter]
        alert, turn = advance(alert, found, now_ns, condition)
        stages += alert.stage.value[0] if alert else "-"
        turns += turn.value[0] if turn else " "
        assert alert is None or alert.held == (letter in "ho" and alert.stage is Stage.FIRING)
        if alert is not None:
            assert alert.reported == len(turns[stages.rfind("-") + 1 :].replace(" ", "")), "each event has a number"
            assert alert.fired_ns == (BEGIN_NS + turns.index("f") if "f" in turns else None)
    return stages, turns.rstrip()


@pytest.mark.parametrize(
    ("story", "stages", "turns"),
    [
        ("oo?.", "----", ""),
        ("bbb", "ppp", ""),
        ("bbbb", "pppf", "   f"),
        ("bbob", "pp-p", ""),
        ("bb?b", "pp-p", ""),  # what cannot be told is no breach: the wait begins anew
        ("bbbbooo", "pppff--", "   f r"),
        ("bbbbobo", "pppffff", "   f"),  # about its limit: one alert
        ("bbbb?b", "pppfuf", "   fuf"),  # silence is told, and so is that it goes on
        ("bbbb?eeb", "pppfuuuf", "   fu  f"),  # what came before the silence is no news after it
        ("bbbb?eooo", "pppfuuu--", "   fu  r"),
        ("bbbeee", "pppfff", "   f"),
        ("bbbb??oo", "pppfuu--", "   fu r"),
        ("bbbb...", "pppfuuu", "   fu"),
        ("bbhb", "pp-p", ""),
        ("bbbbhhoo", "pppfff--", "   f  r"),  # data that contradict themselves hold it
        ("bbbb?hoo", "pppfuu--", "   fu r"),
    ],
)
def test_stories(story, stages, turns):
    assert played(story) == (stages, turns)


def test_without_a_wait_it_fires_at_once_and_without_keeping_it_ends_at_once():
    at_once = Condition(
        id="x", severity=Severity.INFO, scope=(), title="", when="", meaning="", unit="ratio", find=lambda _: ()
    )
    assert played("obo", at_once) == ("-f-", " fr")


def test_after_a_day_without_news_it_is_given_up_and_that_is_told():
    alert = Alert(
        condition="too_slow", labels=LABELS, stage=Stage.UNKNOWN, since_ns=BEGIN_NS - DAY_NS, breached_ns=BEGIN_NS,
        finding=finding(True),
    )  # fmt: skip
    assert advance(alert, None, BEGIN_NS + DAY_NS - 1, CONDITION) == (alert, None)
    for now_ns in (BEGIN_NS + DAY_NS, BEGIN_NS + 2 * DAY_NS):
        assert advance(alert, None, now_ns, CONDITION) == (None, AlertTransition.EXPIRED)


def test_after_a_clock_was_set_back_an_alert_fires_and_ends_after_its_usual_time():
    ahead_ns, alert, turns = BEGIN_NS + DAY_NS // 2, None, ""
    looks = [(ahead_ns, "b"), *enumerate("bbbb", start=BEGIN_NS), (ahead_ns, "b"), *enumerate("ooo", start=BEGIN_NS)]
    for now_ns, letter in looks:
        alert, turn = advance(alert, finding(letter == "b"), now_ns, CONDITION)
        turns += turn.value[0] if turn else " "
    assert (alert, turns) == (None, "    f   r")


def test_while_it_is_kept_it_shows_what_is_known_now_and_not_its_last_breach():
    alert = None
    for now_ns in range(BEGIN_NS, BEGIN_NS + 4):
        alert, _ = advance(alert, replace(finding(True), changed_ns=1), now_ns, CONDITION)
    for breached, value in ((False, 0.5), (True, 1.5), (None, 0.4)):
        alert, _ = advance(
            alert, replace(finding(breached, undecided=breached is None), value=value), now_ns, CONDITION
        )
        shown = AlertEvent.of(CONDITION, alert, AlertTransition.FIRING, now_ns)
        assert (shown.held, shown.value) == (not breached, value)
    assert not AlertEvent.of(CONDITION, alert, AlertTransition.EXPIRED, now_ns).held


def test_a_restart_changes_nothing():
    alert, _ = advance(None, finding(True), 7, CONDITION)
    assert Alert.of_json(json.loads(json.dumps(alert.to_json()))) == alert
