"""What people and models wrote reaches nobody who may not see it: not by a page, an answer, a metric or a log line."""

from __future__ import annotations

import json
import logging

import pytest

from scoring.rubrics import RUBRICS
from tests.monitor.api.test_pages import Still

CANARY = "zqcanary"
ROUTES = {
    "routes": [{"rubrics": list(RUBRICS), "scenario": "any"}],
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
def still(configured):
    made = []

    def make(**sections):
        made.append(Still(configured(**{**ROUTES, **sections})))
        return made[-1]

    yield make
    for one in made:
        one.monitor.store.close()


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
