"""What one would not expect of Langfuse's scores, and what is done about it, where no other test is named after it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.probe import probe
from sidejudge.integrations.langfuse.scores import MAX_COMMENT, score_id, scores_of
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.verdict import reach_verdict
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import Mode, only
from tests.langfuse_bench import score

QA = RUBRICS["qa"]


def bodies():
    """The scores of a verdict that passes, without a word of why."""
    case = Case(case_id="c", trace_id="1" * 32, model_output="x")
    results = {criterion.metric.id: Scored(value=1.0) for criterion in QA.criteria}
    return list(scores_of(reach_verdict(QA, case, results, created_at="2026-11-20T00:00:00.000Z"), QA))


async def test_truth_values_travel_as_numbers_for_true_and_false_are_refused(bench):
    with pytest.raises(LangfuseError) as reported:
        await bench.langfuse.post("scores", score(1, True, "qa_pass"))
    assert reported.value.kind is LangfuseErrorKind.REFUSED
    stated = {body["name"]: body["value"] for body in bodies()}
    assert stated["qa_pass"] in (0.0, 1.0)
    assert not isinstance(stated["qa_pass"], bool)


@given(st.text(), st.text())
def test_ids_hold_nothing_that_a_list_in_a_url_would_part(trace, name):
    assert re.fullmatch(r"sj-[0-9a-f]{32}", score_id(trace, name))


async def test_where_legacy_reads_are_gone_scores_are_read_back_by_the_new_ones(bench):
    bench.fake.mode = Mode.NEW
    bench.fake.standing_fault = lambda r: faults.gone()(r) if r.path in ("/traces", "/v2/scores") else None
    server = await probe(bench.langfuse)
    assert (server.legacy_reads, server.scores_v3) == (False, True)
    await bench.end(1, score(1))
    await bench.settle()
    assert bench.fake.requested("GET", "/v2/scores") == []
    assert bench.store.outbox.counts().dead == 0


async def test_in_events_only_nothing_but_the_new_endpoints_is_asked_once_it_is_known(bench):
    bench.fake.mode = Mode.EVENTS_ONLY
    await bench.step()
    before = len(bench.fake.requests)
    await bench.end(1, score(1))
    await bench.settle()
    assert {request.path for request in bench.fake.requests[before:]} == {"/scores", "/v3/scores", "/score-configs"}


async def test_a_score_of_a_trace_that_is_not_there_yet_is_taken_and_waits_for_it(bench):
    await bench.end(1, score(1))
    await bench.settle()
    assert len(bench.values()) == 1


async def test_an_explicit_null_clears_the_comment_that_a_revision_has_no_more(bench):
    await bench.end(1, score(1, comment="why"))
    await bench.settle()
    await bench.end(1, score(1, comment=None), revision=2)
    await bench.settle()
    (row,) = bench.fake.scores.stored()
    assert row["comment"] is None
    assert all("comment" in body for body in bodies())


async def test_a_server_that_cannot_read_scores_back_is_believed_and_said_so(bench, caplog):
    unknown = faults.error(404, "not found")
    bench.fake.standing_fault = lambda r: unknown(r) if r.path in ("/v3/scores", "/traces") else None
    await bench.end(1, score(1))
    await bench.settle()
    assert len(bench.values()) == 1
    assert "no way to read scores back" in caplog.text


async def test_a_notice_that_an_endpoint_goes_away_changes_nothing(bench):
    bench.fake.mode = Mode.V3
    bench.fake.standing_fault = only("GET", "/v2/scores", lambda r: _noticed(bench.fake._act(r)))
    await bench.end(1, score(1))
    await bench.settle()
    assert bench.store.outbox.counts().dead == 0
    assert bench.delivery.snapshot().state == "ok"


def _noticed(act):
    return faults.answer({**json.loads(act.body), "_deprecation": {"message": "removed on November 16, 2026"}})


EVERY = pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)


@EVERY
async def test_the_way_in_that_stores_nothing_without_an_id_is_always_given_one(bench, mode):
    bench.fake.mode, bench.fake.scores.takes_events = mode, True
    await bench.end(1, score(1), score(1, 1.0, "qa_pass"), score(1, "valid", "qa_state"))
    await bench.settle()
    sent = [event["body"] for batch in bench.batches() for event in batch]
    sent += [body for bodies in bench.posts() for body in bodies]
    assert len(sent) >= 3
    assert all(re.fullmatch(r"sj-[0-9a-f]{32}", each["id"]) for each in sent)


@pytest.mark.parametrize("oldest", [False, True], ids=["v3/scores", "v2/scores"])
@pytest.mark.parametrize("mode", [Mode.V3, Mode.DUAL], ids=lambda mode: mode.value)
async def test_a_value_is_known_again_however_a_version_writes_it(bench, mode, oldest):
    # Old reads tell categories as 0 and a text, truth values as 1 and a text; new ones tell true, and the category.
    bench.fake.mode = mode
    missing = faults.error(404, "not found")
    bench.fake.standing_fault = lambda requested: (
        missing(requested) if oldest and requested.path == "/v3/scores" else None
    )
    wanted = {"qa_score": 1 / 3, "qa_pass": 1.0, "qa_state": "valid"}
    await bench.end(1, *(score(1, value, name) for name, value in wanted.items()))
    for _ in range(8):
        await bench.step()
        bench.now_ns += 61 * 10**9
    counts = bench.store.outbox.counts()
    assert (counts.waiting, counts.unseen, counts.dead) == (0, 0, 0)
    assert bench.fake.scores.written == len(wanted), "none was taken for missing and sent again"
    assert bench.fake.requested("GET", "/v2/scores" if oldest else "/v3/scores")


@EVERY
async def test_no_list_is_asked_for_more_rows_than_a_page_has_for_old_servers_then_answer_none(bench, mode):
    bench.fake.mode = mode
    for number in range(120):
        await bench.end(number, score(number))
    await bench.settle()
    requested = [r.params for r in bench.fake.requests if r.method == "GET" and "limit" in r.params]
    assert requested
    assert max(int(params["limit"]) for params in requested) <= 100
    for params in requested:
        assert len((params.get("id") or params.get("scoreIds") or "").split(",")) <= 100


READS = {
    "/v3/scores": {"id", "limit", "fields", "cursor", "source", "dataType", "fromTimestamp", "toTimestamp"},
    "/v2/scores": {"scoreIds", "limit", "page", "source", "fromTimestamp", "toTimestamp"},
    "/v2/observations": {"limit", "fields"},
    "/traces": {"limit", "fields"},
    "/score-configs": {"page", "limit"},
}
"""What is asked with: one read ignores a name that it does not know and answers more, the other refuses it."""


@EVERY
async def test_nothing_is_asked_with_a_parameter_that_the_server_does_not_know(bench, mode):
    bench.fake.mode = mode
    await bench.end(1, score(1))
    await bench.settle()
    reads = [request for request in bench.fake.requests if request.method == "GET" and request.query]
    assert reads
    for request in reads:
        assert request.params.keys() <= READS[request.path], request


def test_a_score_is_of_one_subject_and_names_no_source_of_its_own():
    # A session's or a trace's, never both; the source that is the default is the only one that programs may write.
    case = Case(case_id="c", trace_id="1" * 32, model_output="x", session_id="s")
    results = {criterion.metric.id: Scored(value=1.0) for criterion in QA.criteria}
    verdict = reach_verdict(QA, case, results, created_at="2026-11-20T00:00:00.000Z")
    for reported, subject in ((verdict, "traceId"), (replace(verdict, trace_id=None), "sessionId")):
        found = list(scores_of(reported, QA))
        assert found
        for body in found:
            assert [name for name in ("traceId", "sessionId", "datasetRunId") if body.get(name)] == [subject]
            assert not {"source", "observationId", "queueId"} & body.keys()


async def test_a_score_that_is_sent_again_after_midnight_stays_one_row(bench):
    bench.fake.mode = Mode.NEW
    before, after = faults.error(500, "Internal Server Error"), score(1, 0.75)
    await bench.end(1, score(1))
    await bench.settle()
    bench.fake.standing_fault = only("POST", "/scores", before)
    await bench.end(1, after, revision=2)
    await bench.step(5)
    bench.now_ns += 26 * 3600 * 10**9
    bench.fake.standing_fault = None
    await bench.settle()
    (row,) = bench.fake.scores.stored()
    assert row["value"] == 0.75
    sent = [each for body in bench.posts() for each in (body if isinstance(body, list) else [body])]
    assert {each["timestamp"] for each in sent} == {row["timestamp"]}


async def test_a_truth_values_config_is_made_without_categories_for_they_are_fixed(bench):
    await bench.end(1, score(1, 1.0, "qa_pass"), score(1, "valid", "qa_state"))
    await bench.settle()
    made = {request.body["name"]: request.body for request in bench.fake.requested("POST", "/score-configs")}
    assert "categories" not in made["qa_pass"]
    assert [each["value"] for each in made["qa_state"]["categories"]] == [0, 1]
    assert {each["label"] for each in bench.fake.configs.all[0]["categories"] or ()} <= {
        "True",
        "False",
        "valid",
        "invalid",
    }


def test_a_comment_is_short_though_the_server_sets_it_no_limit():
    case = Case(case_id="c", trace_id="1" * 32, model_output="x")
    results = {criterion.metric.id: Scored(value=0.0, reason="why " * 5000) for criterion in QA.criteria}
    for body in scores_of(reach_verdict(QA, case, results, created_at="2026-11-20T00:00:00.000Z"), QA):
        assert len(body["comment"] or "") <= MAX_COMMENT + len("…")
