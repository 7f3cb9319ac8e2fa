"""A worse verdict never replaces a better one, and what was drawn stays drawn as it was."""

from __future__ import annotations

from typing import Any

import pytest

from sidejudge.integrations.otlp.wire.tracestate import NEVER, PUBLIC_HASH_KEY, random_bits
from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.revise.reevaluation import RevisionFailure, drawn_as_before, spans_as_they_were, worse
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Failed, Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.verdict import Verdict, reach_verdict

TRACE = bytes.fromhex(f"{1:018x}{1 << 55:014x}")
SEEN = {"spans": 3, "complete": True, "content_captured": True, "answered": True, "agents": 2, "tools": 1}


def verdict(rubric: str, why: Failed | Unavailable) -> Verdict:
    results = {criterion.metric.id: why for criterion in RUBRICS[rubric].criteria}
    return reach_verdict(
        RUBRICS[rubric], Case(case_id="c", model_output="x"), results, created_at="2026-11-21T00:00:00Z"
    )


def before(**more: Any) -> dict[str, Any]:
    return {**SEEN, "verdicts": [{"rubric": "entity", "passed": True}], **more}


def ending(**more: Any) -> TraceResult:
    stated: dict[str, Any] = {"details": SEEN, "reason": EndReason.SCORED, "verdicts": (), **more}
    return TraceResult(
        trace_id=TRACE, service=None, completion="idle", revision=2, chunks=1, ended_ns=1, **stated
    )  # fmt: skip


def test_what_saw_as_much_and_failed_nowhere_may_replace_what_was_said():
    assert worse(before(), ending(verdicts=(verdict("entity", Unavailable("no reference any more")),))) is None
    assert worse(before(spans=2, tools=0), ending()) is None
    assert worse({"verdicts": []}, ending()) is None, "a story of an earlier version tells less"


@pytest.mark.parametrize("key", SEEN)
def test_what_saw_less_may_not(key):
    less = SEEN[key] - 1 if isinstance(SEEN[key], int) and not isinstance(SEEN[key], bool) else False
    assert worse(before(), ending(details={**SEEN, key: less})) is RevisionFailure.INCOMPLETE
    assert (
        worse(before(), ending(details={name: reported for name, reported in SEEN.items() if name != key}))
        is RevisionFailure.INCOMPLETE
    )


def test_nor_what_other_rubrics_would_judge_or_what_we_could_not_judge():
    assert worse(before(), ending(withdrawn=("entity",))) is RevisionFailure.OTHER_RUBRICS
    assert worse(before(), ending(reason=EndReason.ERROR, details={})) is RevisionFailure.ERROR
    assert worse(before(), ending(reason=EndReason.UNDECODABLE)) is RevisionFailure.ERROR


def test_nor_one_that_a_judge_left_undecided_where_it_was_decided():
    failed = (verdict("entity", Failed("judge unavailable: no answer")),)
    assert worse(before(), ending(verdicts=failed)) is RevisionFailure.JUDGE_FAILED
    undecided = before(verdicts=[{"rubric": "entity", "passed": None}])
    assert worse(undecided, ending(verdicts=failed)) is None, "it was no better before"
    over = {**SEEN, "sampling": {"over_budget": ["entity"]}}
    assert worse(before(), ending(details=over, withdrawn=("entity",))) is RevisionFailure.JUDGE_FAILED
    assert worse(before(sampling={"over_budget": ["entity"]}), ending(details=over)) is None


def test_nor_one_that_lost_its_composite_because_a_judge_failed_unless_more_is_proven():
    rubric = RUBRICS["text"]
    failed = {criterion.metric.id: Failed("judge unavailable") for criterion in rubric.criteria}
    results = {**failed, "missing_sentiment_labels": Scored(value=0), "call_intent_match": Scored(value=0.0)}
    proven = reach_verdict(rubric, Case(case_id="c", model_output="x"), results, created_at="2026-11-21T00:00:00Z")
    assert (proven.passed, proven.composite, proven.blockers) == (False, None, ("call_intent_match",))

    def as_before(**stated: Any) -> dict[str, Any]:
        return before(verdicts=[{"rubric": "text", "passed": False, "blockers": ["call_intent_match"], **stated}])

    assert worse(as_before(composite=0.4), ending(verdicts=(proven,))) is RevisionFailure.JUDGE_FAILED
    assert worse(as_before(composite=None), ending(verdicts=(proven,))) is None
    assert worse(as_before(composite=0.9, passed=True, blockers=[]), ending(verdicts=(proven,))) is None


def test_a_trace_is_drawn_with_the_chance_that_it_had():
    reported = {"probability": 0.25, "selection": "forced", "rule": "errors"}
    decision = drawn_as_before(before(sampling=reported), TRACE, b"")
    assert (decision.kept, decision.probability, decision.selection, decision.rule) == (True, 0.25, "forced", "errors")
    assert decision.randomness == random_bits(TRACE, b"")


def test_so_is_what_the_budget_of_the_judge_could_pay_for():
    reported = {"probability": 1e-9, "judged_share": 1e-6}
    assert drawn_as_before(before(sampling=reported), TRACE, b"").thinned(1e-6) == pytest.approx(1e-15, rel=0.1)
    reported["over_budget"] = ["agent"]
    assert drawn_as_before(before(sampling=reported), TRACE, b"").thinned(1e-6) is None


def test_a_story_without_a_draw_counts_as_its_verdicts_do():
    verdicts = [{"rubric": "entity", "passed": True, "sampling_probability": 0.5}]
    assert drawn_as_before(before(verdicts=verdicts), TRACE, b"").probability == 0.5
    assert drawn_as_before({"verdicts": []}, TRACE, PUBLIC_HASH_KEY).randomness < NEVER


def test_service_and_environment_are_those_under_which_it_was_judged():
    span = RawSpan(
        trace_id=TRACE.hex(), span_id="1" * 16, parent_id=None, name="n", start_ns=1, end_ns=2,
        attributes={"langfuse.environment": "production", "a": 1},
    )  # fmt: skip
    (reported,) = spans_as_they_were([span], {"service": "svc", "environment": "Production"})
    assert reported.resource == {"service.name": "svc"}
    assert reported.attributes == {"langfuse.environment": "Production", "a": 1}
    assert spans_as_they_were([span], {"service": None}) == [span]
