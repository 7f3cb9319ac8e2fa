"""The pass ratio that people would have found, beside the one that we found."""

from __future__ import annotations

import pytest

from sidejudge.scoring.alerts.agreements import Agreements
from sidejudge.scoring.statistics.estimate import from_sums
from sidejudge.scoring.statistics.ppi import rogan_gladen
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot, corrected
from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.status.status import Policy, appraise


def standing(rubric="qa", *, passed=70, failed=30):
    n = passed + failed
    reported = from_sums(n=n, failures=failed, weight=n, failed_weight=failed, squared_weight=n) if n else None
    return ServiceStatus(
        service="svc",
        environment="prod",
        rubric=rubric,
        estimate=reported,
        appraisal=appraise(reported, Policy(), None),
    )


def agreement(*pairs, rubric="qa"):
    heard = Agreements()
    for number, (people, ours) in enumerate(pairs):
        heard.record(rubric=rubric, version="1", subject=f"t{number}", by="ann", people=people, ours=ours)
    return AgreementSnapshot(source="test", measured=heard.report())


LABELS = [(True, True)] * 18 + [(True, False)] * 2 + [(False, False)] * 6 + [(False, True)] * 4


def test_the_ratio_is_corrected_by_the_errors_on_labelled_traces():
    qa, text, empty = corrected([standing(), standing("text"), standing(passed=0, failed=0)], agreement(*LABELS))
    wanted = rogan_gladen(0.7, 100, (18, 20), (6, 10))
    assert qa.corrected == wanted
    assert qa.corrected.rate == pytest.approx((0.7 + 0.6 - 1) / (0.9 + 0.6 - 1))
    assert qa.estimate == standing().estimate
    assert text.corrected is None
    assert empty.corrected is None


@pytest.mark.parametrize("pairs", [[], [(True, True)] * 5, [(True, False), (False, True)] * 5])
def test_where_labels_do_not_tell_nothing_is_corrected(pairs):
    assert corrected([standing()], agreement(*pairs)) == [standing()]


def test_without_labels_nothing_is_corrected():
    assert corrected([standing()], None) == [standing()]
