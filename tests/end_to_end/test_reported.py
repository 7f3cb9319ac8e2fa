"""Evaluations of others, on spans and in late log records, become verdicts of a running monitor."""

from __future__ import annotations

import json

import pytest

from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode

RUBRICS = {"reported": {"metrics": [{"name": "Answer Helpfulness", "good": 0.8, "acceptable": 0.6}]}}
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def attributes(**given):
    return [
        {"key": key, "value": {"doubleValue" if isinstance(value, float) else "stringValue": value}}
        for key, value in given.items()
    ]


def result(value, by="ragas"):
    return attributes(**{
        "gen_ai.evaluation.name": "Answer Helpfulness", "gen_ai.evaluation.score.value": value, "evaluator.name": by,
    })  # fmt: skip


def post(monitor, signal, body):
    headers = {"content-type": "application/json"}
    monitor.http.post(f"{monitor.otlp}/v1/{signal}", content=json.dumps(body), headers=headers).raise_for_status()


def verdict(monitor):
    found = monitor.http.get(f"{monitor.api}/v1/traces/{TRACE}").json()
    return next(each for each in found["verdicts"] if each["rubric"] == "reported")


def test_a_late_evaluation_revises_and_our_own_events_do_not(serving):
    monitor = serving(rubrics=RUBRICS, routes=[{"rubrics": ["run_health", "reported"]}])
    resource = {"attributes": attributes(**{"service.name": "support"})}
    span = {
        "traceId": TRACE, "spanId": SPAN, "name": "chat m", "kind": 3,
        "startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000",
        "attributes": attributes(**{
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.prompt": "When?",
            "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "At nine."}]}]',
        }),
        "events": [{"name": "gen_ai.evaluation.result", "timeUnixNano": "1900000000", "attributes": result(0.9)}],
    }  # fmt: skip
    post(monitor, "traces", {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]})
    monitor.settled(1)
    first = verdict(monitor)
    assert (first["passed"], first["composite"], first["revision"]) == (True, 0.9, 1)

    def report(at_ns, given):
        record = {
            "traceId": TRACE, "spanId": SPAN, "timeUnixNano": str(at_ns), "eventName": "gen_ai.evaluation.result",
            "attributes": given,
        }  # fmt: skip
        post(monitor, "logs", {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record]}]}]})

    report(3_000_000_000, [*result(0.0, "sidejudge"), *attributes(**{"sidejudge.rubric": "reported"})])
    report(4_000_000_000, result(0.1, "ragas"))
    monitor.until(lambda: verdict(monitor)["passed"] is False, "the late evaluation revises nothing")
    revised = verdict(monitor)
    assert revised["composite"] == 0.1
    assert revised["revision"] > 1
    (agreement,) = monitor.http.get(f"{monitor.api}/v1/reported").json()["agreements"]
    assert (agreement["reported"], agreement["rubric"], agreement["n"]) == ("reported", "run_health", 1)
    assert (agreement["agreement"], agreement["only_ours_passes"]) == (0.0, 1)
    (score,) = revised["scores"]
    assert score["details"]["by"] == ["ragas (telemetry)"]


def test_scores_of_others_in_langfuse_become_verdicts_and_our_own_do_not(serving):
    resource = {"attributes": attributes(**{"service.name": "support"})}
    span = {
        "traceId": TRACE, "spanId": SPAN, "name": "chat m", "kind": 3,
        "startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000",
        "attributes": attributes(**{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}),
    }  # fmt: skip
    metrics = [{"name": "Answer Helpfulness", "good": 0.8, "acceptable": 0.6}, {"name": "run_health", "good": 0.8}]
    with FakeLangfuse(Mode.NEW) as fake:
        sink = {
            "base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY, "timeout": "2s",
            "annotations": {"every": "1s"},
        }  # fmt: skip
        monitor = serving(
            sinks={"langfuse": sink}, rubrics={"reported": {"metrics": metrics}},
            routes=[{"rubrics": ["run_health", "reported"]}],
        )  # fmt: skip

        def give(name, value, **more):
            fake.scores.add(id=f"{name}-{value}", traceId=TRACE, name=name, value=value, dataType="NUMERIC", **more)

        give("Answer Helpfulness", 0.9, source="EVAL", comment="To the point.")  # before there is a verdict
        give("run_health", 0.0, metadata={"written": "2026-01-01T00:00:00.000Z"})
        give("Answer Tone", 0.0, source="API")
        post(monitor, "traces", {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]})
        monitor.settled(1)
        monitor.until(lambda: helpful(monitor).get("value") is not None, "the score is not read", seconds=30)
        assert helpful(monitor)["value"] == 0.9
        assert helpful(monitor)["details"]["by"] == ["an evaluator of Langfuse (langfuse)"]
        own = next(each for each in verdict(monitor)["scores"] if each["metric"] != helpful(monitor)["metric"])
        assert own["status"] == "unavailable"
        give("Answer Helpfulness", 0.2, source="ANNOTATION", authorUserId="ann", observationId=SPAN)
        monitor.until(lambda: helpful(monitor)["value"] < 0.9, "the person's score is not read", seconds=30)
        assert helpful(monitor)["value"] == pytest.approx(0.55)
        assert set(helpful(monitor)["details"]["by"]) == {"an evaluator of Langfuse (langfuse)", "ann (langfuse)"}
        revision = verdict(monitor)["revision"]
        monitor.stop()
        monitor.start()
        give("Answer Helpfulness", 0.3, source="ANNOTATION", authorUserId="bob")
        monitor.until(lambda: helpful(monitor)["details"]["reported"] == 3, "a later score is not read", seconds=30)
        assert verdict(monitor)["revision"] == revision + 1, "what was taken in before the restart is not taken again"


def helpful(monitor):
    return next(each for each in verdict(monitor)["scores"] if "elpful" in each["metric"])
