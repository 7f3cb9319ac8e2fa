"""``sidejudge langfuse prune`` deletes what an earlier setting left in Langfuse, and nothing else."""

from __future__ import annotations

import time

import pytest
import yaml

from sidejudge.integrations.langfuse.observations import instant
from sidejudge.integrations.langfuse.scores import scores_of
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.verdict import reach_verdict
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode

QA = RUBRICS["qa"]
GOOD = {c.metric.id: Scored(value=0.0 if "false" in c.metric.id else 1.0) for c in QA.criteria}
BAD = GOOD | {"question_score_accuracy": Scored(value=0.0), "score_gap_accuracy": Scored(value=0.0)}
STEPS = {"spans": 2, "matching": 2, "lowest": {"0" * 16: 0.1, "1" * 16: 1.0}}
WEAK = GOOD | {"score_gap_accuracy": Scored(value=0.79, details=STEPS)}


def verdict(trace, results):
    case = Case(case_id=trace, trace_id=trace, model_output="x")
    return reach_verdict(QA, case, results, created_at="2026-11-20T00:00:00.000Z")


VERDICTS = {"a" * 32: GOOD, "b" * 32: BAD, "c" * 32: WEAK}


@pytest.fixture(params=[Mode.V3, Mode.NEW], ids=lambda mode: mode.value)
def fake(request):
    with FakeLangfuse(request.param) as server:
        for trace, results in VERDICTS.items():
            for body in scores_of(verdict(trace, results), QA, "all"):
                server.scores.add(**body, timestamp=instant(time.time_ns() - 3600 * 10**9), source="API")
        server.scores.add(
            id="of-somebody", traceId="a" * 32, name="qa_score_gap_accuracy", value=1, dataType="NUMERIC",
            timestamp=instant(time.time_ns()), source="API",
        )  # fmt: skip
        yield server


@pytest.fixture
def config(tmp_path, fake):
    def write(which):
        keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY, "scores": which}
        path = tmp_path / "sidejudge.yaml"
        stated = {"sinks": {"langfuse": {**keys, "requests_per_minute": 60_000}}}
        path.write_text(yaml.safe_dump({**stated, "store": {"path": str(tmp_path / "state.sqlite")}}))
        return path

    return write


def left(fake):
    return {
        (row["traceId"], row["observationId"], row["name"], row["id"] == "of-somebody") for row in fake.scores.stored()
    }


@pytest.mark.parametrize("which", ["summary", "failing", "all"])
def test_what_is_left_is_what_the_setting_writes_and_what_others_wrote(call, config, fake, which):
    before = left(fake)
    path = config(which)
    dry = call("langfuse", "prune", "--config", path, "--dry-run")
    assert left(fake) == before
    done = call("langfuse", "prune", "--config", path, "--yes")
    wanted = {
        (trace, body.get("observationId"), body["name"], False)
        for trace, results in VERDICTS.items()
        for body in scores_of(verdict(trace, results), QA, which)
    }
    assert left(fake) == {*wanted, ("a" * 32, None, "qa_score_gap_accuracy", True)}
    assert (dry.exit_code, done.exit_code) == (int(which == "summary"), 0), done.stderr
    assert ("0 of these scores are still there" in done.stdout) is (which == "summary")
    again = call("langfuse", "prune", "--config", path, "--yes")
    assert "nothing to delete" in again.stdout


def test_the_daily_limit_ends_it_and_the_next_call_goes_on(call, config, fake):
    deletions = []

    def limited(request):
        if request.method != "DELETE":
            return None
        deletions.append(request)
        return faults.too_many(86_400, 50) if len(deletions) > 3 else None

    fake.standing_fault = limited
    path = config("summary")
    first = call("langfuse", "prune", "--config", path, "--yes")
    assert first.exit_code == 1
    assert "asked for 3 of" in first.stdout
    assert "call it again" in first.stderr
    fake.standing_fault = None
    assert call("langfuse", "prune", "--config", path, "--yes").exit_code == 0


def test_without_a_langfuse_it_says_what_is_missing(call):
    done = call("langfuse", "prune")
    assert done.exit_code == 2
    assert "sinks.langfuse" in done.stderr


def test_what_is_only_queued_is_counted_as_there_and_not_asked_for_again(call, config, fake):
    fake.scores.deletes_after_s = 3600.0
    path = config("summary")
    first = call("langfuse", "prune", "--config", path, "--yes")
    asked = sum(request.method == "DELETE" for request in fake.requests)
    assert f"asked for {asked} of {asked} deletions; {asked} of these scores are still there" in first.stdout
    again = call("langfuse", "prune", "--config", path, "--yes")
    assert f"asked for before, and still there: {asked}" in again.stdout
    assert sum(request.method == "DELETE" for request in fake.requests) == asked
