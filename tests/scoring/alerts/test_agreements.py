"""Agreement kept up live: repeated labels, revised verdicts, new versions, and bounds."""

from __future__ import annotations

import json

import pytest
from sklearn.metrics import cohen_kappa_score

from sidejudge.scoring.alerts import agreements as module
from sidejudge.scoring.alerts.agreements import Agreements


def heard(*pairs, rubric="qa", version="qa@1", into=None):
    found = into or Agreements()
    for number, (people, ours) in enumerate(pairs):
        found.record(rubric=rubric, version=version, subject=f"t{number}", by="ann", people=people, ours=ours)
    return found


MIXED = [(True, True)] * 20 + [(False, False)] * 15 + [(False, True)] * 10 + [(True, False)] * 5


def test_kappa_is_told_for_each_rubric():
    found = heard(*MIXED)
    heard((True, True), (False, False), rubric="text", into=found)
    qa, text = found()
    assert (qa.rubric, qa.n, text.rubric, text.n, text.kappa) == ("qa", 50, "text", 2, 1.0)
    assert qa.kappa == pytest.approx(cohen_kappa_score(*zip(*MIXED, strict=True)))
    assert qa.kappa < qa.upper < 1


def test_a_pair_heard_again_replaces_itself():
    found = heard(*MIXED)
    heard(*MIXED, into=found)
    assert found()[0].n == 50
    found.record(rubric="qa", version="qa@1", subject="t0", by="ann", people=False, ours=True)
    assert found()[0].kappa < heard(*MIXED)()[0].kappa


def test_another_version_begins_anew():
    found = heard(*MIXED)
    heard((True, True), (False, False), version="qa@2", into=found)
    assert found()[0].n == 2


def test_where_kappa_is_undefined_nothing_is_told():
    assert Agreements()() == []
    assert heard((True, True), (True, True))() == []


def test_only_the_latest_pairs_are_kept():
    found = heard(*[(False, True)] * 10, *[(True, True), (False, False)] * (module.MAX_PAIRS // 2))
    assert (found()[0].n, found()[0].kappa) == (module.MAX_PAIRS, 1.0)


def test_the_latest_labels_are_those_of_the_latest_times_in_whatever_order_they_come():
    found, stated = Agreements(), {"rubric": "qa", "version": "qa@1", "by": "ann"}
    for at in (*range(5, module.MAX_PAIRS + 5), *range(5)):
        found.record(subject=f"t{at}", people=at % 2, ours=at >= 5 and at % 2, at_ns=at + 1, **stated)
    assert (found.report()[0].n, found()[0].kappa) == (module.MAX_PAIRS, 1.0)
    found.record(subject="t7", people=False, ours=True, at_ns=7, **stated)
    found.drop(rubric="qa", subject="t8", by="ann", at_ns=8)
    assert (found.report()[0].n, found()[0].kappa) == (module.MAX_PAIRS, 1.0), "they are older than what is known"
    found.drop(rubric="qa", subject="t8", by="ann", at_ns=9)
    assert found.report()[0].n == module.MAX_PAIRS - 1


def test_pairs_that_an_older_version_kept_have_no_time_and_are_replaced_by_any():
    found = Agreements()
    found.restore("qa", {"version": "qa@1", "metrics": {"pass": [["t1", "ann", 1.0, 1.0], ["t2", "ann", 0.0, 0.0]]}})
    found.record(rubric="qa", version="qa@1", subject="t1", by="ann", people=False, ours=False, at_ns=5)
    found.drop(rubric="qa", subject="t2", by="ann", at_ns=5)
    assert found.to_json("qa")["metrics"] == {"pass": [["t1", "ann", 0.0, 0.0, 5]]}


def test_rubrics_are_bounded():
    found = Agreements()
    for number in range(module.MAX_RUBRICS + 5):
        heard((True, True), (False, False), rubric=f"r{number}", into=found)
    assert len(found()) == module.MAX_RUBRICS


def test_what_is_kept_is_taken_up_again_as_it_was():
    found = heard(*MIXED)
    found.record(rubric="qa", version="qa@1", subject="t1", by="ann", metric="tone", people="good", ours="fail")
    found.record(rubric="qa", version="qa@1", subject="t2", by="ann", metric="tone", people="good", ours=None)
    again = Agreements()
    again.restore("qa", json.loads(json.dumps(found.to_json("qa"))))
    assert [each.to_json() for each in again.report()] == [each.to_json() for each in found.report()]
    assert again() == found()


def test_a_metric_is_told_apart_from_the_verdict_and_raises_no_alert():
    found = heard(*MIXED)
    for number, (people, ours) in enumerate([(1.0, 1.0), (2.0, 3.0), (3.0, 3.0)]):
        found.record(
            rubric="qa", version="qa@1", subject=f"t{number}", by="ann", metric="stars", people=people, ours=ours
        )
    passes, stars = found.report()
    assert (passes.metric, passes.n, stars.metric, stars.n, stars.scale) == ("pass", 50, "stars", 3, "ordinal")
    assert len(found()) == 1


def test_numbers_and_categories_are_not_mixed():
    found = Agreements()
    stated = {"rubric": "qa", "version": "qa@1", "by": "ann", "metric": "tone"}
    assert found.record(subject="t1", people="good", ours="good", **stated)
    assert not found.record(subject="t2", people=1.0, ours=1.0, **stated)
    assert not found.record(subject="t3", people="good", ours=1.0, **stated)
    assert found.report()[0].n == 1


def test_where_we_came_to_no_value_the_label_is_counted_and_no_pair():
    found = heard(*MIXED)
    found.record(rubric="qa", version="qa@1", subject="t99", by="ann", people=True, ours=None)
    assert (found.report()[0].n, found.report()[0].undecided, found()[0].n) == (50, 1, 50)
