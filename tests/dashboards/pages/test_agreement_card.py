"""The card of people's labels: figures with intervals, everything foreign escaped."""

from __future__ import annotations

from dataclasses import replace

from sidejudge.scoring.calibration.calibrated import Calibrated, ErrorRate
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.agreement import Confusion, Kappa
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot, AnnotationQueueSnapshot
from tests.dashboards.pages.rendered import card

HOSTILE = "<script>alert(1)</script>"
NOW = 1_790_000_000 * 10**9
MEASURED = Calibrated(
    rubric="qa", metric="pass", n=120, undecided=0, scale="binary", categories=(False, True),
    confusion=Confusion(((30, 10), (5, 75))),
    figures={
        "raw_agreement": ErrorRate(value=0.875, lower=0.8, upper=0.92, n=120),
        "kappa": Kappa(value=0.71, lower=0.58, upper=0.84, standard_error=0.06), "ac1": Unavailable(HOSTILE),
    },
)  # fmt: skip
AGREEMENT = AgreementSnapshot(
    source="Langfuse", read_s=NOW / 1e9 - 90, measured=(replace(MEASURED, metric=HOSTILE, n=500), MEASURED),
    passed_over={"no_verdict": 4, "own": 0}, corrections={"qa": 3}, corrected_passes={"qa": 2},
    queue=AnnotationQueueSnapshot(name=HOSTILE, reason="not found", put={"panel": 7}, left_out=2),
)  # fmt: skip


def test_where_nothing_is_read_there_is_no_card():
    assert card("agreement", agreement=None) == ""


def test_agreement_is_told_with_its_intervals_and_the_verdict_itself_first():
    shown = card("agreement", agreement=AGREEMENT, now_ns=NOW)
    for stated in (
        "87.5%", "80.0% – 92.0%", "0.71", "0.58 – 0.84", "1 min 30 s ago", "3, 2 of which had passed",
        "passed over, no verdict", "not found", "the hour is full",
    ):  # fmt: skip
        assert stated in shown, stated
    assert "passed over, own" not in shown
    assert shown.index(">verdict<") < shown.index("&lt;script&gt;")
    assert "<script" not in shown


def test_why_labels_cannot_be_read_is_said_and_without_labels_there_is_no_figure():
    shown = card("agreement", agreement=AgreementSnapshot(source="Langfuse", reason=HOSTILE))
    assert "not read yet" in shown
    assert "No label" in shown
    assert "%" not in shown
    assert "<script" not in shown
