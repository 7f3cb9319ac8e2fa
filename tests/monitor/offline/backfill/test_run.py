"""History judged anew: the same verdicts and score ids as live, each trace once, through faults and kills."""

from __future__ import annotations

import json
import random

import pytest

from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.config.model import RouteSection
from sidejudge.monitor.evaluate.references.places import InFile
from sidejudge.monitor.offline.backfill.job import LentEmbedding
from sidejudge.monitor.offline.backfill.run import Progress, StoppedError
from sidejudge.monitor.offline.engine import ElsewhereError
from sidejudge.scoring.questions.question import NoAnswer
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import Mode
from tests.monitor.offline.backfill.conftest import writes_scores


class KilledError(Exception):
    """The process ends here."""


@pytest.mark.parametrize("mode", [Mode.V3, Mode.DUAL, Mode.NEW], ids=lambda mode: mode.value)
async def test_each_trace_of_every_version_is_judged_and_scored_once(scene, mode):
    scene.fake.mode = mode
    traces = scene.put(12)
    at = await scene.run()
    assert at.done == len(traces)
    assert {trace for trace, _ in scene.stored()} == set(traces)
    assert at.passed + at.failed + at.incomplete >= len(traces)
    before = scene.stored()
    again = await scene.run()
    assert (again.before, again.passed) == (len(traces), 0)
    assert scene.stored() == before


async def test_a_run_that_is_killed_goes_on_where_it_was(scene):
    traces = scene.put(12)

    def killing(at: Progress) -> None:
        if at.done == 5:
            raise KilledError

    with pytest.raises(KilledError):
        await scene.run(heard=killing)
    at = await scene.run()
    assert 4 <= at.before < len(traces)
    assert {trace for trace, _ in scene.stored()} == set(traces)


async def test_another_configuration_judges_anew_and_replaces_the_values(scene):
    scene.put(6)
    await scene.run()
    before = scene.stored()
    routes = RouteSection(rubrics=("entity",))
    stated = scene.config.model_copy(update={"routes": (routes,)})
    await scene.run(job="another", config=stated)
    after = scene.stored()
    assert {name.split("_")[0] for _, name in after} == {"entity"}
    assert {of for of, _ in after} == {of for of, _ in before}


async def test_only_what_the_filter_names_and_the_sampler_draws_is_judged(scene):
    traces = scene.put(12)
    at = await scene.run(wanted=MatchSection.model_validate({"metadata.task": "qa"}))
    wanted = {of for of, _ in scene.stored()}
    assert 0 < len(wanted) < len(traces)
    assert at.unjudged["other than --filter"] == len(traces) - len(wanted)
    assert {name.split("_")[0] for _, name in scene.stored()} == {"qa"}


async def test_the_traces_of_another_time_are_left_alone(scene):
    scene.put(12)
    at = await scene.run(minutes=9)
    assert at.done == 4, at


async def test_faults_of_reading_and_writing_cost_no_trace(scene):
    traces = scene.put(12)
    dice = random.Random(3)
    kinds = [faults.database_away(), faults.proxy_page(), faults.resets(), faults.resources(), faults.resets(20)]
    scene.fake.standing_fault = lambda request: dice.choice(kinds)(request) if reads(request, dice) else None
    at = await scene.run()
    assert {of for of, _ in scene.stored()} == set(traces)
    assert not at.unjudged


def reads(request, dice) -> bool:
    return request.path == "/v2/observations" and "traceId" in request.params and dice.random() < 0.2


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (faults.error(500, "Internal Server Error"), "server_error"),
        (faults.broken_json(), "not_langfuse"),
        (faults.resets(50), "unreachable"),
        (faults.error(403, "the contents are refused"), "forbidden"),
        (faults.error(404, "Not found"), "not_found"),
        (faults.error(413, "Request entity too large"), "too_large"),
        (lambda _: faults.page(200), "not_langfuse"),
        (lambda _: faults.page(404), "not_found"),
    ],
)
async def test_a_trace_that_cannot_be_read_lets_the_others_by(scene, broken, why):
    bad, *others = scene.put(5)
    scene.fake.standing_fault = lambda request: broken(request) if request.params.get("traceId") == bad else None
    at = await scene.run()
    assert at.unjudged == {f"not read: {why}": 1}
    assert at.unread == [bad]
    assert {of for of, _ in scene.stored()} == set(others)


async def test_a_page_in_place_of_everything_is_waited_for_and_is_no_traces_fault(scene):
    traces = scene.put(5)
    pages = iter(range(8))

    def maintained(request):
        reads = [r for r in scene.fake.requested("GET", "/v2/observations") if "traceId" in r.params]
        asked = request.path in ("/v2/observations", "/health") and len(reads) > 2
        return faults.page(200) if asked and next(pages, None) is not None else None

    scene.fake.standing_fault = maintained
    at = await scene.run()
    assert next(pages, None) is None, "there was an outage"
    assert not at.unjudged
    assert {of for of, _ in scene.stored()} == set(traces)


async def test_rights_to_read_that_are_taken_away_end_the_run_and_are_no_traces_fault(scene):
    scene.put(5)
    refused = faults.error(403, "these keys may read no traces")

    def taken_away(request):
        reads = [r for r in scene.fake.requested("GET", "/v2/observations") if "traceId" in r.params]
        return refused(request) if request.path == "/v2/observations" and len(reads) > 2 else None

    heard = []
    scene.fake.standing_fault = taken_away
    with pytest.raises(LangfuseError, match="may read no traces"):
        await scene.run(heard=lambda at: heard.append(at.unjudged.total()))
    assert not sum(heard)


async def test_refused_keys_end_the_run_and_are_said(scene):
    scene.put(3)
    refused = faults.error(403, "Ingestion suspended")
    scene.fake.standing_fault = lambda request: refused(request) if writes_scores(request) else None
    with pytest.raises(StoppedError, match="suspended"):
        await scene.run()
    scene.fake.standing_fault = faults.error(401, "Invalid credentials.")
    with pytest.raises(LangfuseError):
        await scene.run()
    scene.fake.standing_fault = None
    await scene.run()
    assert scene.stored()


async def test_references_are_looked_up_as_a_live_monitor_looks_them_up(scene, tmp_path):
    known, other = scene.put(2)
    file = tmp_path / "golden.jsonl"
    file.write_text(json.dumps({"trace_id": known, "expected_outcome": "what it should have said"}) + "\n")
    await scene.run(places=[InFile(file, "trace_id")])
    store = Store(scene.folder / "backfill.sqlite")
    try:
        assert "golden.jsonl" in store.details(known)["reference"]
        assert store.details(other)["reference"] is None
    finally:
        store.close()


class Models:
    """Models of embeddings that find nothing alike, and after some calls are gone."""

    def __init__(self, calls):
        self.left = calls

    async def answer(self, case, questions):
        self.left -= 1
        if self.left < 0:
            raise ElsewhereError("the actor that is asked has ended", "call again")
        return {question: NoAnswer("not alike") for question in questions}


async def test_a_run_whose_models_are_lost_reaches_no_verdict_without_them_and_goes_on_when_they_are_back(scene):
    ids = scene.put(12)
    lent = LentEmbedding(Models(calls=5), look=lambda: None)
    with pytest.raises(ElsewhereError, match="has ended"):
        await scene.run(lent=lent)
    before = len(scene.outbox())
    assert "has ended" not in str(scene.outbox())
    progress = await scene.run(lent=LentEmbedding(Models(calls=1_000), look=lambda: None))
    assert 0 < progress.before < 12
    assert progress.done == 12
    assert before < len(scene.outbox())
    assert {trace_id for trace_id, _ in scene.stored()} == set(ids)
    assert "has ended" not in str(scene.outbox())


async def test_a_run_ends_though_langfuse_never_shows_what_it_took_and_the_next_call_goes_on(scene):
    (trace,) = scene.put(1)
    forgets = faults.forgets(scene.fake)
    scene.fake.standing_fault = lambda request: forgets(request) if writes_scores(request) else None
    await scene.run(stuck_s=1.0)
    assert scene.exports.waiting + scene.exports.unseen > 0  # counted every few seconds: as sent, or as before
    assert scene.stored() == {}
    scene.fake.standing_fault = None
    await scene.run()
    assert (scene.exports.waiting, scene.exports.unseen, scene.exports.dead) == (0, 0, 0)
    assert {of for of, _ in scene.stored()} == {trace}
