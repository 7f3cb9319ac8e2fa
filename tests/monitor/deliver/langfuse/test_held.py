"""No score is written on a trace that upstream has not taken: it waits for its trace, is counted, and ends in a day."""

from __future__ import annotations

import time

import pytest

from sidejudge.integrations.langfuse.client import Access, Langfuse
from sidejudge.integrations.langfuse.observations import trace_exists
from tests.fakes.langfuse.observations import Observations
from tests.fakes.langfuse.otel_requests import part
from tests.fakes.langfuse.server import (
    PUBLIC_KEY,
    SECRET_KEY,
    FakeLangfuse,
    Mode,
    error,
    lost_answer,
    only,
    resets,
    slow,
)
from tests.otlp_requests import HIGH, S, request, span, trace
from tests.waiting import until

FORWARDED = ("POST", "/otel/v1/traces")


def one(number: int, spans: int = 1) -> bytes:
    return request([S(trace_id=trace(number, HIGH), span_id=span(n)) for n in range(1, spans + 1)])


@pytest.fixture
def fake():
    with FakeLangfuse(parts=[Observations.part, part]) as server:
        yield server


@pytest.fixture
async def sidecar(started, fake):
    async def start(**forward):
        return await started(
            forward={"url": fake.base_url, "otlp_path": "/api/public/otel", **forward},
            sinks={"langfuse": {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}},
            routes=[{"rubrics": ["workflow"], "scenario": "any"}],
            scenarios={"any": {"max_seconds": 10**9}},
        )

    return start


async def post(app, body):
    headers = {"content-type": "application/x-protobuf"}
    return await app.http.post(app.otlp + "/v1/traces", content=body, headers=headers, auth=(PUBLIC_KEY, SECRET_KEY))


def scored(fake) -> set[str]:
    return {row["traceId"] for row in fake.scores.stored()}


def export(app):
    (found,) = app.monitor.sinks.langfuse.snapshots()
    return found


async def is_held(app, traces: int) -> None:
    await app.settled(traces)
    await until(lambda: export(app).held > 0 and export(app).waiting == export(app).held)


async def test_scores_wait_until_the_application_sends_again_what_upstream_did_not_take(sidecar, fake):
    app = await sidecar()
    fake.standing_fault = only(*FORWARDED, resets())
    assert (await post(app, one(1))).status_code == 502
    await is_held(app, 1)
    fake.standing_fault = None
    assert (await post(app, one(2))).status_code == 200
    await until(lambda: scored(fake) == {trace(2).hex()})
    assert export(app).held > 0
    assert export(app).oldest_s is None
    status = (await app.get("/v1/status"))["exports"][0]
    assert status["held"] == export(app).held
    metrics = (await app.http.get(app.api + "/metrics")).text
    assert f'sidejudge_exports_held{{destination="langfuse"}} {float(status["held"])}' in metrics
    assert (await post(app, one(1))).status_code == 200
    await until(lambda: scored(fake) == {trace(1).hex(), trace(2).hex()})


async def test_a_trace_of_which_upstream_has_a_part_is_there(sidecar, fake):
    app = await sidecar()
    assert (await post(app, one(1))).status_code == 200
    fake.standing_fault = only(*FORWARDED, resets())
    assert (await post(app, one(1, spans=2))).status_code == 502
    await until(lambda: scored(fake) == {trace(1).hex()})
    await until(lambda: export(app).held == 0)


async def test_langfuse_is_asked_for_a_trace_whose_answer_was_lost(sidecar, fake, monkeypatch):
    monkeypatch.setattr("sidejudge.integrations.store.outbox.ASK_AFTER_NS", 0)
    app = await sidecar()
    fake.standing_fault = only(*FORWARDED, lost_answer(fake))
    assert (await post(app, one(1))).status_code == 502
    await until(lambda: scored(fake) == {trace(1).hex()})


async def test_what_upstream_answers_late_is_not_held_for_long(sidecar, fake):
    app = await sidecar()
    fake.standing_fault = only(*FORWARDED, slow(1.5)(fake))  # it is judged beside after a second
    assert (await post(app, one(1))).status_code == 200
    await until(lambda: scored(fake) == {trace(1).hex()})


@pytest.mark.parametrize("fault", [resets(), error(503, "Service Unavailable")])
async def test_scores_of_what_is_kept_for_upstream_wait_until_it_is_sent(sidecar, fake, fault):
    app = await sidecar(buffer="1MiB")
    fake.standing_fault = only(*FORWARDED, fault)
    for n in (1, 2, 3):
        assert (await post(app, one(n))).status_code == 200
    await is_held(app, 3)
    assert scored(fake) == set()
    fake.standing_fault = None
    await until(lambda: scored(fake) == {trace(n).hex() for n in (1, 2, 3)}, 60)


async def test_scores_are_held_while_the_spans_of_their_traces_are_kept_though_not_for_ever(sidecar, fake, monkeypatch):
    monkeypatch.setattr("sidejudge.monitor.deliver.langfuse.delivery.HELD_NS", 0)
    app = await sidecar(buffer="1MiB")
    fake.standing_fault = only(*FORWARDED, resets())
    for n in (1, 2):
        assert (await post(app, one(n))).status_code == 200
    await is_held(app, 2)
    assert await app.monitor.store.untaken.forget(time.time_ns()) == 0
    fake.standing_fault = only(*FORWARDED, lambda request: None if trace(1) in request.raw else resets()(request))
    await until(lambda: scored(fake) == {trace(1).hex()}, 60)
    monkeypatch.setattr("sidejudge.integrations.store.outbox.KEPT_NS", 0)
    await until(lambda: export(app).waiting == 0)
    assert scored(fake) == {trace(1).hex()}


async def test_what_is_held_is_held_after_a_restart_and_let_go_in_the_end(sidecar, fake, monkeypatch):
    app = await sidecar()
    fake.standing_fault = only(*FORWARDED, resets())
    assert (await post(app, one(1))).status_code == 502
    await is_held(app, 1)
    count = export(app).held
    await app.monitor.stop()
    app = await sidecar()
    await until(lambda: export(app).held == count)
    assert scored(fake) == set()
    monkeypatch.setattr("sidejudge.monitor.deliver.langfuse.delivery.HELD_NS", 0)
    await until(lambda: export(app).held == export(app).waiting == 0)
    metrics = (await app.http.get(app.api + "/metrics")).text
    assert f'sidejudge_exports_failed_total{{destination="langfuse",reason="no_trace"}} {float(count)}' in metrics
    assert scored(fake) == set()


@pytest.mark.parametrize("mode", [Mode.V3, Mode.DUAL, Mode.EVENTS_ONLY])
async def test_a_langfuse_is_asked_for_a_trace_by_the_way_that_it_answers(mode):
    with FakeLangfuse(mode, parts=[Observations.part, part]) as server:
        access = Access(base_url=server.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
        async with Langfuse(access) as langfuse:
            await langfuse.post("otel/v1/traces", {"resourceSpans": []})
            assert not await trace_exists(langfuse, trace(1).hex(), v2=mode is not Mode.V3)
