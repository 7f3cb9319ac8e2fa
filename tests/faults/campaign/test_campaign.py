"""Ten seconds of the campaign, as part of the suite; ``make faults`` runs it for as long as one likes."""

from __future__ import annotations

from tests.faults.campaign.campaign import Campaign, report


def test_through_kills_a_bad_disk_and_hostile_callers_nothing_is_lost(tmp_path):
    seen = Campaign(tmp_path, seed=1, show=lambda _: None, generated=False).run(10)
    assert seen.acknowledged
    assert seen.recovered is not None
    assert not seen.broken, report(seen, 1)
