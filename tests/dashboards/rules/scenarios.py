"""What the rules must and must not do, as stories of two processes of one job.

Alerts are tried on recorded series, just above and just below each of their limits; recordings on counters, by value.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.dashboards.rules import (
    stories_health,
    stories_limited,
    stories_long,
    stories_processes,
    stories_shares,
    stories_status,
    stories_traffic,
    stories_versions,
)
from tests.dashboards.rules.scenario import Scenario


def scenarios() -> Iterator[Scenario]:
    for part in (
        stories_status, stories_shares, stories_limited, stories_processes, stories_long, stories_health,
        stories_versions, stories_traffic,
    ):  # fmt: skip
        yield from part.stories()
