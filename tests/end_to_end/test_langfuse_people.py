"""A running monitor reads what people say in Langfuse, tells how far it agrees, and asks about doubtful verdicts."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from sidejudge.integrations.langfuse.scores import score_id
from tests.fakes.langfuse import datasets
from tests.fakes.langfuse.queues import queues
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode

RECORDED = Path(__file__).parents[1] / "data" / "otlp" / "langfuse-v5" / "s2_agents" / "001.pb"
ROUTES = [{"rubrics": ["answer", "entity", "never", "steps"]}]
METRICS = [{"id": "found", "check": {"contains": "no such text"}}]
NEVER = {"never": {"metrics": METRICS}, "steps": {"judges": "spans", "metrics": METRICS}}
"""Rubrics that everything fails, the second by its steps."""


@pytest.fixture(params=[Mode.V3, Mode.NEW], ids=lambda mode: mode.value)
def fake(request):
    with FakeLangfuse(request.param, parts=[queues, datasets.part]) as server:
        server.queues.add("doubtful")
        yield server


def sink(fake: FakeLangfuse) -> dict[str, object]:
    return {
        "langfuse": {
            "base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY, "timeout": "2s",
            "scores": "all",
            "annotations": {"every": "1s", "scores": [{"name": "fine?", "rubric": "answer", "passes": ["yes"]}]},
            "annotation_queue": {"name": "doubtful"},
            "failure_dataset": {"name": "failures", "rubrics": ["never"]},
        }
    }  # fmt: skip


def label(fake: FakeLangfuse, trace_id: str, stated: str) -> None:
    fake.scores.add(
        id=f"by-ann-{trace_id}", traceId=trace_id, name="fine?", value=stated, dataType="CATEGORICAL",
        source="ANNOTATION", authorUserId="ann",
    )  # fmt: skip


def test_what_people_say_is_told_beside_our_verdicts_and_known_after_a_kill(serving, fake):
    monitor = serving(sinks=sink(fake), routes=ROUTES, rubrics=NEVER)
    monitor.post(RECORDED.read_bytes())
    monitor.settled(1)
    (trace_id,) = {verdict["trace_id"] for verdict in monitor.verdicts()}
    monitor.until(
        lambda: score_id(trace_id, "answer_state") in {row["id"] for row in fake.scores.stored()}, "no score arrived"
    )
    label(fake, trace_id, "no")
    monitor.until(lambda: bool(agreement(monitor)["measured"]), "the label was not read", seconds=40)
    (found,) = agreement(monitor)["measured"]
    (verdict,) = [each for each in monitor.verdicts() if each["rubric"] == "answer"]
    assert (found["rubric"], found["metric"]) == ("answer", "pass")
    assert (found["n"], found["undecided"]) == ((0, 1) if verdict["passed"] is None else (1, 0))
    assert agreement(monitor)["passed_over"]["unmapped"] == 0
    assert agreement(monitor)["queue"] == {
        "name": "doubtful", "reason": "", "left_out": 0,
        "put": {"disagreement": 0, "contradiction": 0, "borderline": 0},
    }  # fmt: skip
    text = monitor.http.get(monitor.api + "/metrics").text
    assert f'sidejudge_agreement_pairs{{metric="pass",rubric="answer"}} {float(found["n"])}' in text
    assert "sidejudge_labels_read_timestamp_seconds" in text
    monitor.stop(signal.SIGKILL)
    monitor.start()
    monitor.until(lambda: bool(agreement(monitor)["measured"]), "it was forgotten")
    assert agreement(monitor)["measured"] == [found]
    monitor.until(lambda: bool(failures(fake)), "the failing trace is in no dataset")
    (item,) = failures(fake)
    assert item["sourceTraceId"] == trace_id
    assert item["input"]
    assert set(item["metadata"]["verdicts"]) == {"never"}
    steps = [row for row in fake.scores.stored() if row["name"] == "steps_found_step"]
    assert steps
    assert {(row["traceId"], row["value"], len(row["observationId"])) for row in steps} == {(trace_id, 0.0, 16)}
    line = 'sidejudge_connection_state{connection="langfuse_dataset",state="ok"} 1.0'
    monitor.until(lambda: line in monitor.http.get(monitor.api + "/metrics").text, "it is no connection")
    assert "could not be read" not in monitor.log()
    assert SECRET_KEY not in monitor.log() + json.dumps(agreement(monitor))


def failures(fake):
    return datasets.datasets_of(fake).get("failures")


def agreement(monitor):
    return monitor.get("/v1/status")["agreement"]
