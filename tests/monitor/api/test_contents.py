"""What people and models wrote reaches nobody who may not see it: not by a page, an answer, a metric or a log line."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace

import pytest

from sidejudge.integrations.notify.alertmanager import alertmanager_body
from sidejudge.integrations.notify.chats import slack_body
from sidejudge.integrations.notify.webhook import webhook_body
from sidejudge.monitor.alerting.failures import illustrated
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from sidejudge.scoring.notices.text import Wording
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.time_units import DAY_NS
from tests.alert_events import SINCE_NS, event
from tests.monitor.api.still import Still

CANARY = "zqcanary"
CHECKS = (
    {"equals": CANARY}, {"contains": f"no {CANARY}"}, {"not-contains": CANARY}, {"icontains-any": [CANARY, "b"]},
    {"contains-all": [CANARY, "absent"]}, {"starts-with": CANARY}, {"regex": f"{CANARY}x"}, {"not-regex": CANARY},
    {"word-count": 1}, {"length": {"max": 3}}, {"not-is-json": True}, "is-xml", "is-sql",
    {"contains-json": {"schema": {"type": "object", "required": ["none"]}}},
    {"is-json": {"schema": {"properties": {CANARY: {"type": "number"}}}}},
    {"levenshtein": CANARY}, {"rouge-n": CANARY}, {"bleu": CANARY},
)  # fmt: skip
ROUTES = {
    "routes": [{"rubrics": [*RUBRICS, "mine"], "scenario": "any"}],
    "rubrics": {
        "mine": {
            "pass_mark": 0.5,
            "metrics": [{"id": f"m{n}", "check": check} for n, check in enumerate(CHECKS)]
            + [{"id": f"i{n}", "check": check, "on": "input"} for n, check in enumerate(CHECKS)],
        }
    },
    "scenarios": {"any": {"tools_should_include": ["lookup"]}},
}
QUESTION = {"question_id": CANARY, "question": CANARY, "score": 5, "reason": CANARY, "score_type": "PASS_FAIL"}
ATTRIBUTES = {
    "langfuse.observation.input": f"input {CANARY}",
    "langfuse.observation.output": json.dumps({
        "questions": [QUESTION], "detected_keywords": [CANARY], "detected_topics": [CANARY],
        "valid_entity_set": [CANARY], CANARY: CANARY,
    }),
    "langfuse.trace.metadata.expected_outcome": json.dumps({
        "questions": [{**QUESTION, "score": 0}], "valid_entity_set": [f"{CANARY} too"], "summary": {CANARY: CANARY},
    }),
    "langfuse.observation.metadata.system_prompt": CANARY,
}  # fmt: skip
PATHS = (
    "/", "/verdicts", "/verdicts?passed=none", "/configuration", "/docs", "/v1/verdicts?limit=1000", "/v1/status",
    "/v1/alerts", "/metrics",
)  # fmt: skip


@pytest.fixture
def still(still):
    return lambda **sections: still(**{**ROUTES, **sections})


async def judged(s: Still) -> tuple[str, ...]:
    await s.take(1, attributes=ATTRIBUTES)
    await s.judge()
    found = (await s.get("/v1/verdicts")).json()["verdicts"]
    assert found
    one = found[0]["trace_id"]
    return (*PATHS, f"/traces/{one}", f"/v1/traces/{one}")


async def test_a_caller_from_elsewhere_finds_no_word_of_a_conversation_anywhere(still, caplog):
    caplog.set_level(logging.DEBUG)
    s = still()
    for path in await judged(s):
        for accept in ("text/html", "application/json"):
            response = await s.get(path, caller="10.0.0.1", accept=accept)
            assert response.status_code == 200, path
            assert CANARY not in response.text, path
    assert CANARY not in caplog.text


async def test_on_the_same_machine_reasons_quote_and_the_conversation_is_there(still):
    s = still()
    quoting = [path for path in await judged(s) if CANARY in (await s.get(path)).text]
    assert "/v1/verdicts?limit=1000" in quoting
    assert any(path.startswith("/traces/") for path in quoting)


@pytest.mark.parametrize(("contents", "caller"), [("never", "127.0.0.1"), ("always", "10.0.0.1")])
async def test_the_configuration_decides_for_everybody(still, contents, caller):
    s = still(api={"contents": contents})
    paths = await judged(s)
    found = [path for path in paths if CANARY in (await s.get(path, caller=caller)).text]
    assert bool(found) is (contents == "always")


async def test_what_is_withheld_is_named(still):
    s = still()
    await judged(s)
    verdicts = (await s.get("/v1/verdicts", caller="10.0.0.1")).json()["verdicts"]
    lines = [line for verdict in verdicts for line in verdict["scores"]]
    assert any("reason" in line.get("withheld", ()) for line in lines)
    assert all("…" in line["reason"] for line in lines if "reason" in line.get("withheld", ()))


def noticed(verdicts, wording) -> str:
    """What every receiver is sent about an alert with these verdicts as examples, each with all that its scores say."""
    failed = [
        {**verdict, "passed": False, "reason": f"{score['metric']}: {score['reason']}"}
        for verdict in verdicts
        for score in verdict["scores"]
        if CANARY in str(score["reason"])
    ]
    store = SimpleNamespace(
        verdicts=lambda rubric, **_: [each for each in failed if each["rubric"] == rubric], compared=lambda _: []
    )
    sent = []
    for verdict in verdicts:
        labels = tuple((name, verdict[name]) for name in ("service", "environment", "rubric") if verdict[name])
        found = illustrated(store, event(labels=labels), 0)
        for kind in (NoticeKind.ALERT, NoticeKind.GROUP, NoticeKind.REMINDER):
            notice = Notice(id="n-1", kind=kind, at_ns=SINCE_NS, events=(found,))
            sent += [slack_body(notice, wording), webhook_body(notice, wording)]
            sent += [alertmanager_body(notice, wording, {}, SINCE_NS) or b""]
    return b"".join(sent).decode()


async def test_a_notice_quotes_only_where_that_is_configured(still):
    s = still()
    await judged(s)
    verdicts = (await s.get("/v1/verdicts?limit=1000")).json()["verdicts"]
    assert {verdict["rubric"] for verdict in verdicts} >= {"mine", "qa", "run_health"}
    assert CANARY not in noticed(verdicts, Wording())
    assert CANARY not in noticed(verdicts, Wording(reasons=False, quoted=True))
    assert CANARY in noticed(verdicts, Wording(quoted=True))


async def test_a_daily_report_holds_no_word_of_a_conversation(still):
    s = still(alerts={"notify": [{"slack": {"url": "http://127.0.0.1:9/x"}}], "report": {}})
    await judged(s)
    daily = s.monitor.notifications.daily
    await daily.restore(s.now)
    report = await daily.report(s.now - DAY_NS, s.now + 10**9, s.now + 10**9)
    assert report.courses
    assert CANARY not in str(report)
