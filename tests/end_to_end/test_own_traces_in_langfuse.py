"""Own traces of a running monitor in a Langfuse, beside the scores that it writes back there."""

from __future__ import annotations

import base64

import pytest

from sidejudge.scoring.trace.loop_guard import is_own, own_trace_id
from tests.end_to_end.test_judge import PRICE, judged_by, requested
from tests.fakes.judge import judges
from tests.fakes.langfuse.otel import Otel
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode, answer
from tests.fakes.openai import Provider
from tests.needs import LITELLM
from tests.otlp_requests import trace

pytestmark = LITELLM.mark


@pytest.fixture
def provider():
    with Provider(judges()) as running:
        yield running


def test_own_traces_stand_apart_in_langfuse_with_model_tokens_and_cost_and_the_loop_guard_knows_them(serving, provider):
    taken: list[Otel] = []

    def otel(fake):
        taken.append(Otel(fake))
        return taken[0].routes()

    with FakeLangfuse(Mode.NEW, parts=[otel]) as fake:
        prompt = answer({"prompt": "Is {{output}} polite?", "version": 3})
        fake.routes.append(("GET", "/v2/prompts/tone", lambda _: prompt))
        basic = base64.b64encode(f"{PUBLIC_KEY}:{SECRET_KEY}".encode()).decode()
        monitor = serving(
            **judged_by(provider, rubrics=("own",), price=PRICE),
            rubrics={"own": {"metrics": [{"id": "polite", "ask": {"langfuse_prompt": "tone"}}]}},
            sinks={
                "langfuse": {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY},
                "otel_events": {
                    "endpoint": f"{fake.base_url}/api/public/otel",
                    "authorization": f"Basic {basic}",
                    "headers": {"x-langfuse-ingestion-version": "4"},
                    "signals": ["traces"],
                    "environment": "sidejudge",
                },
            },
        )
        monitor.post(requested(1))
        monitor.settled(1)
        monitor.until(lambda: len(taken[0].observations) == 2, "the own trace did not arrive")
        monitor.until(lambda: fake.scores.stored() != [], "the scores did not arrive")

        def state() -> str:
            return {each["destination"]: each["state"] for each in monitor.get("/v1/status")["exports"]}["otel_events"]

        monitor.until(lambda: state() == "ok", "that the own trace arrived is not known")
        scored = {row["traceId"] for row in fake.scores.stored()}
        linked = {row["name"]: row["metadata"].get("judge_trace_id") for row in fake.scores.stored()}

    root, call = sorted(taken[0].observations, key=lambda o: o["type"] != "SPAN")
    assert (root["name"], call["type"], call["parentObservationId"]) == ("evaluate", "GENERATION", root["id"])
    assert call["model"] == "gpt-4.1-mini-2025-04-14"
    assert min(call["usageDetails"].values()) > 0
    assert call["costDetails"] == {"total": call["metadata"]["attributes.sidejudge.cost_usd"]}
    assert call["metadata"]["attributes.sidejudge.judged.trace_id"] == trace(1).hex()
    assert call["input"] is None
    assert taken[0].versions == ["4"] * len(taken[0].versions)
    assert scored == {trace(1).hex()}, "the scores are of the trace that was judged, not of the judging"
    assert linked["own_pass"] == root["traceId"] == own_trace_id(trace(1).hex())
    assert (call["promptName"], call["promptVersion"]) == ("tone", 3)
    for observation in (root, call):
        assert observation["environment"] == "sidejudge"
        metadata = observation["metadata"]
        assert is_own(tags=observation["tags"])
        assert is_own(service=metadata["resourceAttributes.service.name"])
        assert is_own(scope=metadata["scope.name"])
