"""Notice: one message to people, as plain values; each receiver words it in its own form."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sidejudge.scoring.alerts.event import AlertEvent, event_of_json
from sidejudge.scoring.trace.span import JsonRecord

from .daily_report import DailyReportText


class NoticeKind(StrEnum):
    """What a notice is about.

    ``alert``: something happened to one alert; ``group``: to several at about the same time. ``reminder``: an alert
    that was sent still fires. ``digest``: what happened to less severe alerts since the last. ``refresh``: the
    alerts that fire, for a receiver that wants repetition. ``report``: a day. ``test``: nothing, somebody requested it.
    """

    ALERT = "alert"
    GROUP = "group"
    REMINDER = "reminder"
    DIGEST = "digest"
    REFRESH = "refresh"
    REPORT = "report"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A message made at ``at_ns``. ``events`` are what it describes: one for an alert or a reminder.

    ``id`` is the same each time the notice is delivered, so that a receiver can recognise a repeated one.
    """

    id: str
    kind: NoticeKind
    at_ns: int
    events: tuple[AlertEvent, ...] = ()
    report: DailyReportText | None = None

    def to_json(self) -> dict[str, object]:
        """The notice for a wire or a store."""
        return {
            "id": self.id, "kind": self.kind.value, "at_ns": self.at_ns,
            "events": [event.to_json() for event in self.events],
            "report": self.report.to_json() if self.report is not None else None,
        }  # fmt: skip

    @classmethod
    def of_json(cls, record: JsonRecord) -> Notice:
        """Read what ``to_json`` wrote."""
        return cls(
            id=record["id"], kind=NoticeKind(record["kind"]), at_ns=record["at_ns"],
            events=tuple(map(event_of_json, record["events"])),
            report=DailyReportText.of_json(record["report"]) if record["report"] is not None else None,
        )  # fmt: skip
