"""Five seconds of the campaign, as part of the suite; ``make faults`` runs it for as long as one likes."""

from __future__ import annotations

import pytest

from tests.faults.campaign.campaign import Campaign, report, unexplained

LOW, MIDDLE, HIGH = ("0" * 18 + share + "0" * 13 for share in "258")
"""Ids whose randomness is 2, 5 and 8 sixteenths."""


def test_through_kills_a_bad_disk_and_hostile_callers_nothing_is_lost(tmp_path):
    seen = Campaign(tmp_path, seed=9, show=lambda _: None, generated=False).run(5)
    assert seen.acknowledged
    assert seen.recovered is not None
    assert not seen.broken, report(seen, 9)


def verdict(probability: float | None, at_s: float) -> dict[str, object]:
    return {"closed_ns": int(at_s * 1e9), "sampling_probability": probability}


@pytest.mark.parametrize(
    ("verdicts", "shed", "lost"),
    [
        ([], [], {LOW, MIDDLE, HIGH}),
        ([verdict(1.0, 0), verdict(None, 0)], [], {LOW, MIDDLE, HIGH}),
        ([verdict(0.5, 100)], [], {HIGH}),
        ([verdict(0.5, 1000)], [], {LOW, MIDDLE, HIGH}),
        ([], [{"closed_ns": 0, "trace_id": MIDDLE}], {HIGH}),
    ],
    ids=["nothing was shed", "nor drawn at less than one", "half were drawn", "at another time", "one was shed"],
)
def test_a_trace_without_a_row_was_shed_only_where_others_show_that_such_traces_were(verdicts, shed, lost):
    assert unexplained(dict.fromkeys((LOW, MIDDLE, HIGH), 0.0), set(), verdicts, shed) == lost
