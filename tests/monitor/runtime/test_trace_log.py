"""Trace log: a debug line a trace, and a warning now and then where something keeps a service from verdicts."""

from __future__ import annotations

import logging

import pytest

from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.runtime.logging import EVERY_NS, TraceLog
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.verdict.verdict import Score, State, Verdict


def result(number=1, reason=EndReason.SCORED, service="shop", at=0, verdicts=()):
    return TraceResult(
        trace_id=bytes([number]) * 16, service=service, reason=reason, completion="root_ended", revision=1, chunks=1,
        ended_ns=at, details={"spans": 3}, verdicts=verdicts, changed=verdicts,
    )  # fmt: skip


@pytest.fixture
def lines(caplog):
    logger = logging.getLogger("sidejudge")
    before, logger.propagate = logger.propagate, True
    caplog.set_level(logging.DEBUG, "sidejudge.traces")
    yield caplog
    logger.propagate = before


def warned(lines):
    return [(line.getMessage(), line.service) for line in lines.records if line.levelno == logging.WARNING]


def test_each_trace_has_one_line_for_those_who_ask_for_it(lines):
    TraceLog().committed(result())
    (line,) = lines.records
    assert (line.levelname, line.trace_id, line.reason, line.spans) == ("DEBUG", "01" * 16, "scored", 3)


def test_a_service_that_no_route_selects_is_a_warning_at_most_every_ten_minutes(lines):
    log = TraceLog()
    for number, at in enumerate([0, 1, EVERY_NS - 1]):
        log.committed(result(number, EndReason.NO_RUBRIC, at=at))
    log.committed(result(7, EndReason.NO_RUBRIC, service="desk", at=1))
    message = "no route selects traces of this service"
    assert warned(lines) == [(message, "shop"), (message, "desk")]
    log.committed(result(8, EndReason.NO_RUBRIC, at=EVERY_NS))
    assert len(warned(lines)) == 3


def test_a_service_without_a_name_is_told_how_to_have_one(lines):
    TraceLog().committed(result(1, EndReason.NO_RUBRIC, service=None))
    assert "OTEL_SERVICE_NAME" in lines.records[-1].remedy


def test_the_first_failure_of_a_judge_is_a_warning_that_quotes_nothing(lines):
    failed = Score(metric="grade", weight=1.0, result=Failed("the secret answer was: 42"), rating=None)
    verdict = Verdict(
        case_id="c", trace_id="01" * 16, rubric="quality", rubric_version="quality@1", composite=None,
        composite_norm=None, coverage=0.0, state=State.INCOMPLETE, passed=None, rating=None, blockers=(),
        pass_mark=None, sampling_probability=1.0, created_at="2026-01-01T00:00:00Z", scores=(failed,),
    )  # fmt: skip
    log = TraceLog()
    for number in range(3):
        log.committed(result(number, EndReason.JUDGE_FAILED, verdicts=(verdict,)))
    assert warned(lines) == [("a judge failed", "shop")]
    (line,) = (each for each in lines.records if each.levelno == logging.WARNING)
    assert line.cause.startswith("quality.grade: ")
    assert "secret" not in line.cause
