"""Agreement kept up live: repeated labels, revised verdicts, new versions, and bounds."""

from __future__ import annotations

import pytest
from sklearn.metrics import cohen_kappa_score

from scoring.alerts import agreements as module
from scoring.alerts.agreements import Agreements


def heard(*pairs, rubric="qa", version="qa@1", into=None):
    found = into or Agreements()
    for number, (people, ours) in enumerate(pairs):
        found.hear(rubric=rubric, version=version, subject=f"t{number}", by="ann", people=people, ours=ours)
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
    found.hear(rubric="qa", version="qa@1", subject="t0", by="ann", people=False, ours=True)
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


def test_rubrics_are_bounded():
    found = Agreements()
    for number in range(module.MAX_RUBRICS + 5):
        heard((True, True), (False, False), rubric=f"r{number}", into=found)
    assert len(found()) == module.MAX_RUBRICS
