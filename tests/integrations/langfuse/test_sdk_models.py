"""What is sent to Langfuse, and what the newest version's fake answers, held to the models of the installed SDK."""

from __future__ import annotations

import re
from importlib import resources

import httpx
import pytest

from sidejudge.integrations.langfuse.annotations import put
from sidejudge.integrations.langfuse.configs import ScoreConfigs
from sidejudge.integrations.langfuse.datasets import NewDatasetItem, make_dataset, put_item
from sidejudge.integrations.langfuse.declared_scores import declared
from sidejudge.integrations.langfuse.observations import instant
from sidejudge.integrations.langfuse.scores import scores_of
from sidejudge.integrations.langfuse.sending import ScoreSender, Writing
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.verdict import reach_verdict
from tests.fakes.langfuse import datasets
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.queues import queues
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.needs import LANGFUSE_SDK

pytestmark = LANGFUSE_SDK.mark
TRACE, SPAN = "36524d221566b94755e27265a6220988", "b7ad6b7169203331"
QA = RUBRICS["qa"]
PATHS = (
    "health", "projects", "scores", "scores/*", "v3/scores", "v2/observations", "score-configs", "v2/datasets",
    "v2/datasets/*", "dataset-items", "dataset-items/*", "annotation-queues", "annotation-queues/*/items",
    "v2/prompts/*", "otel/v1/traces",
)  # fmt: skip
"""Paths that a monitor asks of a server of the newest version."""


@pytest.fixture
def fake():
    with FakeLangfuse(Mode.NEW, parts=[datasets.part, Observations.part, queues]) as server:
        server.scores.takes_events = False
        yield server


def bodies():
    """Scores of every kind: of a trace, of a step, of a session; of a revision, whose metadata has nulls."""
    steps = {"spans": 1, "matching": 1, "lowest": {SPAN: 0.0}}
    results = {c.metric.id: Scored(value=0.0, reason="ü" * 2000, details=steps) for c in QA.criteria}
    for of in ({"trace_id": TRACE}, {"session_id": "s1"}):
        case = Case(case_id="c", model_output="x", environment="Production", **of)
        reached = reach_verdict(QA, case, results, created_at="2026-11-20T00:00:00.000Z", revision=2)
        for body in scores_of(reached, QA, judge_traces=True):
            yield {**body, "timestamp": instant(1_795_000_000 * 10**9)}


def fits(model: str, body: object) -> None:
    """A body has the fields of the SDK's model, and no others."""
    from langfuse import api  # noqa: PLC0415  # skipped where it is not installed
    from langfuse.api.core.pydantic_utilities import parse_obj_as  # noqa: PLC0415  # as above

    found = parse_obj_as(getattr(api, model), body)
    assert not found.model_extra, f"{model} has no {sorted(found.model_extra)}"


def test_every_path_that_is_asked_of_the_newest_server_is_one_of_the_sdks():
    folder = resources.files("langfuse") / "api"
    clients = (each / "raw_client.py" for each in folder.iterdir())
    source = "".join(each.read_text() for each in clients if each.is_file())
    known = {re.sub(r"\{[^}]*\}", "*", path) for path in re.findall(r'"api/public/([^"]*)"', source)}
    assert set(PATHS) <= known


async def test_what_is_sent_has_the_fields_of_the_sdks_models_and_no_others(fake, client):
    langfuse = client()
    sent = list(bodies())
    assert {"observationId", "sessionId"} <= {key for body in sent for key in body}
    outcome = await ScoreSender(langfuse, arrays=True).send([Writing(body, 1_795_000_000_000) for body in sent])
    assert (len(outcome.taken), outcome.refused) == (len(sent), {})
    for request in fake.requested("POST", "/scores"):
        assert isinstance(request.body, list)
        for body in request.body:
            fits("CreateScoreRequest", body)
    configs = ScoreConfigs(langfuse, declared(QA))
    for body in sent:
        await configs.id_of(body)
    await make_dataset(langfuse, "failures", "what failed")
    item = NewDatasetItem(id="i", input={"q": 1}, metadata={"a": []}, source_trace_id=TRACE)
    await put_item(langfuse, "failures", item)
    await put(langfuse, fake.queues.add("doubtful"), TRACE, "TRACE")
    models = {
        "/score-configs": "CreateScoreConfigRequest", "/v2/datasets": "CreateDatasetRequest",
        "/dataset-items": "CreateDatasetItemRequest",
    }  # fmt: skip
    for path, model in models.items():
        assert fake.requested("POST", path)
        for request in fake.requested("POST", path):
            fits(model, request.body)
    (queued,) = [r for r in fake.requests if r.method == "POST" and r.path.endswith("/items")]
    fits("CreateAnnotationQueueItemRequest", queued.body)


async def test_the_fakes_newest_version_answers_what_the_sdk_reads(fake, client):
    langfuse = client()
    sent = list(bodies())
    await ScoreSender(langfuse, arrays=True).send([Writing(body, 1_795_000_000_000) for body in sent])
    await ScoreConfigs(langfuse, declared(QA)).id_of(sent[0])
    await make_dataset(langfuse, "failures", "what failed")
    await put_item(langfuse, "failures", NewDatasetItem(id="i", input="x", source_trace_id=TRACE))
    fake.queues.add("doubtful")
    at = "2026-11-21T01:04:17.900Z"
    observations_of(fake).put({"id": SPAN, "traceId": TRACE, "startTime": at, "endTime": at, "name": "step"})
    with httpx.Client() as http:
        read_by_the_sdk(fake, http, sent)


def read_by_the_sdk(fake, http, sent):
    from langfuse.api import LangfuseAPI  # noqa: PLC0415  # skipped where it is not installed

    sdk = LangfuseAPI(base_url=fake.base_url, username=PUBLIC_KEY, password=SECRET_KEY, httpx_client=http)
    found = sdk.scores.get_many(fields="details,subject", limit=100).data
    assert {each.id for each in found} == {body["id"] for body in sent}
    subjects = {each.subject.kind for each in found}
    assert subjects == {"trace", "observation", "session"}
    assert [each.id for each in sdk.observations.get_many(trace_id=TRACE).data] == [SPAN]
    assert len(sdk.score_configs.get().data) == 1
    assert sdk.datasets.get("failures").name == "failures"
    assert [each.source_trace_id for each in sdk.dataset_items.list(dataset_name="failures").data] == [TRACE]
    assert [each.name for each in sdk.annotation_queues.list_queues().data] == ["doubtful"]
    assert sdk.projects.get().data[0].name == "Test Project"
    assert sdk.health.health().version == Mode.NEW.version
