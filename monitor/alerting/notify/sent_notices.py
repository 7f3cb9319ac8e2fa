"""The notices of one alert that one receiver was sent, so that it gets each change once, and reminders."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Self

from sidejudge.scoring.alerts.event import AlertEvent, event_of_json
from sidejudge.scoring.alerts.lifecycle import AlertTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class SentNotices:
    """The last event that was passed on, at ``at_ns`` (a reminder counts).

    ``at_once``: by a message of its own, not in a digest; ``in_digest``: it waits for the digest.
    """

    event: AlertEvent
    at_ns: int
    at_once: bool
    reminders: int = 0
    in_digest: bool = False

    @property
    def stands(self) -> bool:
        """Whether the alert is not over, as far as the receiver knows."""
        return self.event.transition in {AlertTransition.FIRING, AlertTransition.UNKNOWN}

    def knows(self, event: AlertEvent) -> bool:
        """Whether this event, or one after it, was passed on already."""
        return (event.since_ns, event.number) <= (self.event.since_ns, self.event.number)

    def to_json(self) -> str:
        """For the store."""
        return json.dumps(
            {
                "event": self.event.to_json(), "at_ns": self.at_ns, "at_once": self.at_once,
                "reminders": self.reminders, "in_digest": self.in_digest,
            }
        )  # fmt: skip

    @classmethod
    def of_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote."""
        stated = json.loads(text)
        return cls(**{**stated, "event": event_of_json(stated["event"])})
