"""Timetable: whether something that is done once a day is due: never twice, late rather than not at all."""

from __future__ import annotations

from datetime import UTC, datetime, time, tzinfo

from apscheduler.triggers.cron import CronTrigger


class Daily:
    """Once a day ``at`` a time of day in a time zone; where a clock change leaves it out, at the next that exists."""

    def __init__(self, at: time, timezone: tzinfo) -> None:
        self._trigger = CronTrigger(hour=at.hour, minute=at.minute, second=0, timezone=timezone)

    def is_due(self, last_ns: int, now_ns: int) -> bool:
        """Whether a time has come between what was last done and now. Several that were missed are one."""
        last, now = datetime.fromtimestamp(last_ns / 1e9, UTC), datetime.fromtimestamp(now_ns / 1e9, UTC)
        following = self._trigger.get_next_fire_time(last, last)
        return following is not None and bool(following <= now)
