"""Verdicts of history beside those of a live monitor: none is overwritten by an older one, none is said twice."""

from __future__ import annotations

import random
import shutil

import pytest

from sidejudge.integrations.langfuse.declared_scores import declared
from sidejudge.integrations.langfuse.existing_scores import ExistingScore
from sidejudge.integrations.langfuse.scores import WITHDRAWN, score_id
from sidejudge.monitor.config.model import RouteSection
from sidejudge.monitor.offline.backfill.run import StoppedError
from sidejudge.scoring.rubrics import RUBRICS
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import Mode
from tests.monitor.offline.backfill.conftest import asks_for_batches, writes_scores

SEED = 3
"""Of a trace that both rubrics have something to say of."""
FIRST = "2026-11-18T07:00:00.123Z"


@pytest.fixture(autouse=True)
def one_route(scene):
    scene.config = scene.config.model_copy(update={"routes": (RouteSection(rubrics=("qa", "answer")),)})


def anew(scene) -> None:
    """Another machine, whose store knows nothing."""
    shutil.rmtree(scene.folder)
    scene.folder.mkdir()


def posts(scene) -> int:
    return sum(request.method != "GET" and not asks_for_batches(request) for request in scene.fake.requests)


def rows(scene) -> dict[tuple[str, str], dict]:
    return {(row["traceId"], row["name"]): row for row in scene.fake.scores.stored()}


def states(scene, row, value, revision, *, timestamp=FIRST, **more) -> None:
    """A live monitor writes this."""
    reported = {**row, "value": value, "metadata": {**row["metadata"], "revision": revision}, **more}
    scene.fake.scores.add(**{**reported, "timestamp": timestamp})


@pytest.mark.parametrize("mode", [Mode.V3, Mode.DUAL, Mode.NEW], ids=lambda mode: mode.value)
async def test_what_stands_there_as_it_would_be_written_is_left_alone(scene, mode):
    scene.fake.mode = mode
    scene.put(6)
    first = await scene.run()
    written, sent = scene.fake.scores.written, posts(scene)
    anew(scene)
    again = await scene.run()
    assert again.unchanged == first.passed + first.failed + first.incomplete
    assert (again.revised, again.done) == (0, 6)
    assert (scene.fake.scores.written, posts(scene)) == (written, sent)


@pytest.mark.parametrize("mode", [Mode.V3, Mode.DUAL, Mode.NEW], ids=lambda mode: mode.value)
async def test_another_verdict_is_the_next_revision_under_the_time_of_the_first(scene, mode):
    scene.fake.mode = mode
    (trace,) = scene.put(1, seed=SEED)
    await scene.run()
    before = rows(scene)
    scene.fake.scores.clear()
    for (_, name), row in before.items():
        other = row["value"] if name != "qa_score" else 0.125
        states(scene, row, other, 3 if name.startswith("qa") else 7, createdAt=FIRST)
    anew(scene)
    at = await scene.run()
    after = rows(scene)
    assert after.keys() == before.keys()
    assert (at.revised, at.unchanged) == (1, 1)
    assert after[trace, "qa_score"]["value"] == before[trace, "qa_score"]["value"]
    for (_, name), row in after.items():
        assert row["metadata"]["revision"] == (4 if name.startswith("qa") else 7), name
        assert row["timestamp"] == FIRST, name


async def test_a_score_that_is_lost_there_is_written_again_and_is_no_revision(scene):
    (trace,) = scene.put(1, seed=SEED)
    await scene.run()
    before = rows(scene)
    scene.fake.scores.remove(score_id(trace, "qa_score"))
    anew(scene)
    at = await scene.run()
    after = rows(scene)
    assert at.revised == 0
    assert {key: row["value"] for key, row in after.items()} == {key: row["value"] for key, row in before.items()}
    assert after[trace, "qa_score"]["metadata"]["revision"] == 1


async def test_what_a_verdict_says_no_more_is_deleted_though_another_wrote_it(scene):
    (trace,) = scene.put(1, seed=SEED)
    await scene.run()
    known = rows(scene)
    reported = next(row for (_, name), row in known.items() if name == "answer_state")
    names = [each.name for each in declared(RUBRICS["answer"]) if each.data_type == "NUMERIC"]
    extra = next(name for name in names if (trace, name) not in known)
    states(
        scene,
        {**reported, "id": score_id(trace, extra), "name": extra, "dataType": "NUMERIC", "configId": None},
        0.5,
        2,
    )
    assert (trace, extra) in rows(scene)
    anew(scene)
    at = await scene.run()
    assert (trace, extra) not in rows(scene)
    written = [r.raw for r in scene.fake.requests if r.method == "POST" and score_id(trace, extra).encode() in r.raw]
    assert b'"value":"withdrawn"' in written[-1], "it is overwritten first: deletions have a limit by the day"
    assert b'"withdrawn":true' not in written[-1]
    assert rows(scene)[trace, "answer_state"]["metadata"]["revision"] == 3
    assert at.revised == 1


@pytest.mark.parametrize("mode", [Mode.V3, Mode.DUAL, Mode.NEW], ids=lambda mode: mode.value)
async def test_a_withdrawn_score_that_waits_for_its_deletion_makes_no_revision(scene, mode):
    scene.fake.mode = mode
    (trace,) = scene.put(1, seed=SEED)
    first = await scene.run()
    row = next(row for (_, name), row in rows(scene).items() if name == "answer_state")
    absent = next(each.name for each in declared(RUBRICS["answer"]) if (trace, each.name) not in rows(scene))
    of = {"id": score_id(trace, absent), "name": absent, "dataType": "CATEGORICAL", "configId": None, "comment": None}
    states(scene, {**row, **of, "metadata": {"state": WITHDRAWN}}, WITHDRAWN, None)
    written = scene.fake.scores.written
    anew(scene)
    again = await scene.run()
    assert (again.revised, again.unchanged) == (0, first.passed + first.failed + first.incomplete)
    assert scene.fake.scores.written == written


async def test_a_monitor_that_spoke_between_reading_and_writing_has_the_last_word(scene):
    scene.put(1, seed=SEED)
    await scene.run()
    ours = rows(scene)
    scene.fake.scores.clear()
    for row in ours.values():
        states(scene, row, row["value"], 1, comment="as it was before")
    spoken = []

    def meanwhile(request):
        if not writes_scores(request) or spoken:
            return None
        spoken.append(request)
        for (_, name), row in ours.items():
            if name.startswith("qa"):
                states(scene, row, row["value"], 2, comment="as it is by now")
        return faults.database_away()(request)

    scene.fake.standing_fault = meanwhile
    anew(scene)
    at = await scene.run()
    assert at.revised == 2
    for (_, name), row in rows(scene).items():
        assert row["metadata"]["revision"] == 2, name
        assert (row["comment"] == "as it is by now") is name.startswith("qa"), name


async def test_a_run_that_goes_on_later_looks_again_before_it_sends(scene):
    scene.put(1, seed=SEED)
    refused = faults.error(403, "Ingestion suspended")
    scene.fake.standing_fault = lambda request: refused(request) if writes_scores(request) else None
    with pytest.raises(StoppedError):
        await scene.run()
    scene.fake.standing_fault = None
    known = scene.outbox()
    for body in known:
        states(scene, {**body, "source": "API"}, body["value"], 1, comment="the monitor was faster")
    at = await scene.run()
    assert at.before == 1
    for (_, name), row in rows(scene).items():
        assert row["comment"] == "the monitor was faster" or "latency" in name, name


async def test_faults_of_reading_what_stands_there_are_waited_for(scene):
    scene.put(3, seed=SEED)
    first = await scene.run()
    dice = random.Random(5)
    kinds = [faults.database_away(), faults.proxy_page(), faults.resets(), faults.resources()]
    scene.fake.standing_fault = lambda requested: (
        dice.choice(kinds)(requested)
        if requested.path == "/v3/scores" and "id" in requested.params and dice.random() < 0.5
        else None
    )
    anew(scene)
    written = scene.fake.scores.written
    at = await scene.run()
    assert at.unchanged == first.passed + first.failed + first.incomplete
    assert scene.fake.scores.written == written


async def test_a_langfuse_without_a_way_to_read_scores_is_written_to_as_before(scene):
    traces = scene.put(2)
    gone = faults.error(404, "gone")
    scene.fake.standing_fault = lambda request: gone(request) if "scores" in request.path and is_read(request) else None
    scene.fake.mode = Mode.NEW
    at = await scene.run()
    assert {of for of, _ in scene.stored()} == set(traces)
    assert at.unchanged == 0


def is_read(request) -> bool:
    return request.method == "GET"


async def test_another_route_revises_the_rubrics_that_it_names_and_leaves_those_of_a_monitor_alone(scene):
    scene.put(1, seed=SEED)
    await scene.run()
    before = rows(scene)
    anew(scene)
    stated = scene.config.model_copy(update={"routes": (RouteSection(rubrics=("answer",)),)})
    at = await scene.run(config=stated, job="another")
    assert rows(scene) == before
    assert at.unchanged == 1


@pytest.mark.parametrize(
    ("reported", "meant", "same"),
    [
        ({"rubric_version": 12345}, {"rubric_version": "12345"}, True),
        ({"prompt_hash": "1e5"}, {"prompt_hash": "1e5"}, True),
        ({"coverage": "0.9"}, {"coverage": 0.9}, True),
        ({"coverage": 0.9}, {"coverage": 0.95}, False),
        ({}, {"judge": None}, True),
        ({"judge": "null"}, {"judge": None}, True),
        ({"judge": "gpt-x"}, {"judge": None}, False),
        ({"revision": 3}, {"revision": 1}, True),
        ({"state": "valid"}, {"state": "partial"}, False),
    ],
)
def test_metadata_is_compared_by_what_it_means(reported, meant, same):
    standing = ExistingScore(at_ns=0, revision=1, row={"value": 1.0, "comment": None, "metadata": reported})
    assert standing.states({"value": 1.0, "comment": None, "metadata": meant}) is same


@pytest.mark.parametrize(
    ("value", "comment", "within", "same"),
    [
        (1234.0, "took 1234 ms", 2.0, True),
        (1237.0, "took 1237 ms", 2.0, False),
        (1234.0, "took 1234 ms", 0.0, False),
        (1234.567, "another reason", 0.0, False),
    ],
)
def test_durations_may_differ_by_what_langfuse_rounds_away(value, comment, within, same):
    row = {"value": 1234.567, "comment": "took 1234.567 ms", "metadata": {}}
    standing = ExistingScore(at_ns=0, revision=1, row=row)
    assert standing.states({"value": value, "comment": comment, "metadata": {}}, within=within) is same
