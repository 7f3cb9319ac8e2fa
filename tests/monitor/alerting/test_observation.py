from __future__ import annotations

import json

from sidejudge.monitor.alerting.fleet.slices import encoded, key_slice
from sidejudge.monitor.alerting.fleet.windows import FleetWindows
from sidejudge.monitor.alerting.observation import Key, Observation, observe, observe_stored
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.monitor.evaluate.backends import EMBEDDINGS_OUT, OUTAGE
from sidejudge.scoring.result.reason import Reason, own, part, quoted
from sidejudge.scoring.result.result import BEHIND, Failed, Scored, Unavailable
from sidejudge.scoring.status.service_status import UNKNOWN_ENVIRONMENT, UNKNOWN_SERVICE
from sidejudge.scoring.status.status import Policy
from sidejudge.scoring.verdict.verdict import Score, State, Verdict


def verdict(**changes) -> Verdict:
    fields = {
        "case_id": "case-1", "trace_id": "ab" * 16, "rubric": "qa", "rubric_version": "qa@1",
        "composite": 88.0, "composite_norm": 0.88, "coverage": 1.0, "state": State.VALID, "passed": True,
        "rating": "good", "blockers": (), "pass_mark": 0.87, "sampling_probability": 0.25,
        "created_at": "1970-01-01T00:00:01.500Z", "service": "shop", "environment": "prod",
        "scores": (
            Score(metric="a", weight=1.0, result=Scored(value=0.5), rating=None),
            Score(metric="b", weight=0.0, result=Unavailable("no judge"), rating=None),
        ),
    }  # fmt: skip
    return Verdict(**{**fields, **changes})


def test_a_verdict_becomes_what_a_window_remembers():
    key, seen = observe(verdict(selection="forced", revision=2))
    assert key == Key("shop", "prod", "qa")
    assert seen == Observation(
        identity="ab" * 16, at_ns=1_500_000_000, passed=True, weight=4.0, selection="forced", revision=2,
        composite=0.88, metrics={"a": 0.5},
    )  # fmt: skip


def test_a_verdict_that_is_incomplete_for_a_metric_that_failed_says_so():
    failed = Score(metric="a", weight=1.0, result=Failed("timeout"), rating=None)
    weightless = Score(metric="b", weight=0.0, result=Failed("timeout"), rating=None)
    incomplete = {"passed": None, "composite_norm": None, "state": State.INCOMPLETE}
    assert observe(verdict(scores=(failed,), **incomplete))[1].judge_failed
    assert not observe(verdict(scores=(weightless,), **incomplete))[1].judge_failed
    assert not observe(verdict(scores=(failed,)))[1].judge_failed, "it passed all the same"


def test_of_what_nobody_could_be_asked_about_is_known_apart_from_an_evaluator_that_failed():
    incomplete = {"passed": None, "composite_norm": None, "state": State.INCOMPLETE}
    late = "{outage}: it could not be asked in time: {why}"
    for why, unasked in ((Reason(late, outage=own(OUTAGE), why=quoted("refused")), True),
                         (Reason(late, outage=own(OUTAGE), why=quoted(f"a page: {BEHIND}")), True),
                         (Reason("{out}: {why}", out=own(EMBEDDINGS_OUT), why=quoted("HTTP 503")), True),
                         (Reason(late, outage=own(OUTAGE), why=own(BEHIND)), False),
                         (Reason("ValueError: {why}", why=quoted(f"no number: {OUTAGE}: {EMBEDDINGS_OUT}")), False),
                         (Reason("no {tool}", tool=part(OUTAGE)), False), (f"{OUTAGE}: a plugin's text", False),
                         ("the answer did not parse", False)):  # fmt: skip
        each = verdict(scores=(Score(metric="a", weight=1.0, result=Failed(why), rating=None),), **incomplete)
        seen = observe(each)[1]
        assert (seen.judge_failed, seen.unasked) == (True, unasked)
        windows, fleet = Windows(10**12), FleetWindows(10**12)
        windows.add(Key("shop", "prod", "qa"), seen)
        piece = key_slice(windows.members(Key("shop", "prod", "qa"), 2 * 10**9))
        fleet.put("m0", 0, encoded({Key("shop", "prod", "qa"): piece}, {"qa": "qa@1"}))
        fleet.advance(61 * 10**9)
        for held in (windows, fleet):
            found = held.status(Key("shop", "prod", "qa"), 61 * 10**9, Policy())
            assert found.waiting == (4.0 if unasked else 0.0)
        assert observe_stored(json.loads(json.dumps(each.to_json())))[1] == seen


def test_a_stored_verdict_becomes_the_same():
    for each in (verdict(), verdict(passed=None, composite_norm=None, state=State.INCOMPLETE)):
        stored = json.loads(json.dumps(each.to_json()))
        assert observe_stored(stored) == observe(each)


def test_what_names_no_service_environment_or_trace_is_still_told_apart():
    key, seen = observe(verdict(service=None, environment="", trace_id=None))
    assert key == Key(UNKNOWN_SERVICE, UNKNOWN_ENVIRONMENT, "qa")
    assert seen.identity == "case-1"
