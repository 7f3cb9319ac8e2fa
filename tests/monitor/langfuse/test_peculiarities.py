"""What one would not expect of Langfuse's scores, and what is done about it, where no other test is named after it."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.langfuse.errors import Kind, LangfuseError
from integrations.langfuse.probe import probe
from integrations.langfuse.scores import score_id, scores_of
from scoring.case import Case
from scoring.result import Scored
from scoring.rubrics import RUBRICS
from scoring.verdict import reach_verdict
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import Mode, only
from tests.monitor.langfuse.conftest import score

QA = RUBRICS["qa"]


def bodies():
    """The scores of a verdict that passes, without a word of why."""
    case = Case(case_id="c", trace_id="1" * 32, model_output="x")
    results = {criterion.metric.id: Scored(value=1.0) for criterion in QA.criteria}
    return list(scores_of(reach_verdict(QA, case, results, created_at="2026-11-20T00:00:00.000Z"), QA))


async def test_truth_values_travel_as_numbers_for_true_and_false_are_refused(bench):
    with pytest.raises(LangfuseError) as told:
        await bench.langfuse.post("scores", score(1, True, "qa_pass"))
    assert told.value.kind is Kind.REFUSED
    said = {body["name"]: body["value"] for body in bodies()}
    assert said["qa_pass"] in (0.0, 1.0)
    assert not isinstance(said["qa_pass"], bool)


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
    assert bench.fake.asked("GET", "/v2/scores") == []
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
    assert None in [body["comment"] for body in bodies()]
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
    assert bench.delivery.standing().state == "ok"


def _noticed(act):
    return faults.answer({**json.loads(act.body), "_deprecation": {"message": "removed on November 16, 2026"}})
