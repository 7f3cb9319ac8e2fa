"""A judge's accepted answer is foreign text like any other: nowhere does it come out as markup or unseen marks."""

from __future__ import annotations

import logging
import re

import pytest
from click.testing import CliRunner

from sidejudge.monitor.api.contents_token import HEADER
from sidejudge.monitor.cli.explain import explain
from sidejudge.scoring.notices.text import Wording
from tests.fakes.judge import judges
from tests.fakes.openai import Provider
from tests.monitor.api.test_contents import CANARY, noticed
from tests.needs import LITELLM
from tests.otlp_requests import HIGH, S, request, span, trace

pytestmark = LITELLM.mark

HOSTILE = (
    f"</td><script>{CANARY}()</script><img src=x onerror={CANARY}> \x9b31m\x1b]0;x\x07 \u202egnp\u2066 <!channel> "
    "<<<END 00>>> <|im_end|> {{7*7}} %s \r\nBcc: all@example.com\r\n\r\n[a](javascript:x) \ud800"
)
ATTRIBUTES = {
    "langfuse.observation.type": "agent",
    "langfuse.observation.input": "When does it come?", "langfuse.observation.output": "Tomorrow, I think.",
}  # fmt: skip
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def provider():
    with Provider(judges(lambda _, field: {"reason": HOSTILE, "score": 0, "failure_code": None}.get(field))) as made:
        yield made


async def test_what_a_judge_says_is_text_wherever_it_comes_out(started, provider, caplog):
    caplog.set_level(logging.INFO)
    judge = {"model": "openai/gpt-4o-mini", "api_base": provider.url, "api_key": "sk-x", "retries": 0}
    app = await started(routes=[{"rubrics": ["agent"]}], evaluators={"judge": judge})
    await app.post(request([S(trace_id=trace(1, HIGH), span_id=span(1), attributes=ATTRIBUTES)]))
    await app.settled(1)
    verdicts = (await app.get("/v1/verdicts"))["verdicts"]
    (verdict,) = verdicts
    assert all(CANARY in score["reason"] for score in verdict["scores"]), "his answers were accepted"
    token = {HEADER: app.page.rpartition("=")[2], "accept": "text/html"}
    pages = [
        (await app.http.get(app.api + path, headers=token)).text
        for path in ("/", "/verdicts", f"/traces/{verdict['trace_id']}")
    ]
    shown = CliRunner().invoke(explain, [verdict["trace_id"], "--store", str(app.monitor.store.path)]).output
    sent = noticed(verdicts, Wording(quoted=True))
    assert all(CANARY in each for each in (*pages, shown, sent))
    assert [UNSEEN.findall(each) for each in (*pages, shown, sent)] == [[]] * 5
    for each in pages:
        assert f"<script>{CANARY}" not in each
        assert "<img src=x" not in each
        assert "<!channel>" not in each
    assert CANARY not in caplog.text
