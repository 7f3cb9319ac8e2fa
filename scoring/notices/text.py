"""Notice text: a notice as a title and paragraphs of lines, which each receiver formats."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sidejudge.scoring.alerts.event import AlertEvent, Example, MainFailure
from sidejudge.scoring.lexical.shown_text import label

from .notice import DailyReportText, runbook_link

_PLACE = re.compile(r"\{(service|environment|rubric|metric)\}")
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """An operator's choices for the wording of notices.

    ``trace_url`` is the address of a trace's page with ``{trace_id}`` in it, ``runbooks`` that of the runbooks
    (``runbook_link``); ``None``: no links. Without ``reasons`` the reasons of verdicts are left out; with them,
    contents by people and models are removed unless ``quoted``. ``dashboard_url`` is the address of a dashboard, with
    the placeholders ``{service}``, ``{environment}``, ``{rubric}`` and ``{metric}``. ``instance`` names one of several
    monitors: each has its own alerts, so that none ends an alert of another; shared ones are nobody's own. ``host`` is
    the machine or Pod that the monitor runs on.
    """

    trace_url: str | None = None
    runbooks: str | None = None
    dashboard_url: str | None = None
    instance: str | None = None
    host: str | None = None
    reasons: bool = True
    quoted: bool = False

    def reason(self, example: Example | MainFailure) -> str:
        """The reason of failing traces as it may be sent; empty where none is."""
        if not self.reasons:
            return ""
        if self.quoted and example.quoted is not None:
            return example.quoted
        return example.reason

    def report(self, report: DailyReportText) -> DailyReportText:
        """A daily report with the reasons of failures as they may be sent."""
        if self.reasons:
            return report
        return replace(report, failures=tuple([replace(each, words="") for each in report.failures]))

    def trace(self, trace_id: str) -> str | None:
        """The address of a trace's page."""
        return None if self.trace_url is None else self.trace_url.replace("{trace_id}", _quoted(trace_id))

    def dashboard(self, labels: Iterable[tuple[str, str]]) -> str | None:
        """The address of the dashboard of an alert with these labels; placeholders without a label become empty."""
        if self.dashboard_url is None:
            return None
        known = dict(labels)
        return _PLACE.sub(lambda found: _quoted(known.get(found[1], "")), self.dashboard_url)

    def owner(self, *events: AlertEvent) -> str | None:
        """The instance whose own these alerts are; None: they are all shared, or there is one monitor."""
        return None if events and all(each.shared for each in events) else self.instance

    def fingerprint(self, event: AlertEvent) -> str:
        """The identity of an alert for receivers, 16 hex digits, from its condition and its instance."""
        owner = self.owner(event)
        return event.fingerprint if owner is None else owned(owner, event.fingerprint)

    def runbook(self, slug: str) -> str | None:
        """The address of a runbook."""
        return None if self.runbooks is None else runbook_link(self.runbooks, slug)


def owned(instance: str, name: str) -> str:
    """A name that only this monitor uses, 16 hex digits."""
    return hashlib.sha256(f"{instance}\n{name}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """A line of text, perhaps with a link after it, whose ``link_text`` is shown where links can be named.

    The text is plain: escape it.
    """

    text: str
    link: str | None = None
    link_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeText:
    """A title and paragraphs. Everything in it is bounded and free of control characters."""

    title: str
    paragraphs: tuple[tuple[TextLine, ...], ...]

    @property
    def text(self) -> str:
        """All of it as plain text."""
        blocks = [self.title, *("\n".join(map(_plain_line, lines)) for lines in self.paragraphs)]
        return "\n\n".join(blocks) + "\n"


def paragraphs(*groups: Iterable[TextLine]) -> tuple[tuple[TextLine, ...], ...]:
    """The non-empty groups."""
    return tuple(lines for group in groups if (lines := tuple(group)))


def plain(text: str, most: int = 300) -> str:
    """A text of any origin on one line: cut, without control characters or marks that change the reading order."""
    kept = "".join(char if char.isprintable() else " " for char in text[: 4 * most])
    return label(" ".join(kept.split()), most)


def when(ns: int) -> str:
    """A moment, to the minute: ``2026-11-21 10:03 UTC``."""
    return datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def lasting(ns: int) -> str:
    """A length of time in words, rounded down: ``12 minutes``, ``3 hours 5 minutes``, ``2 days``."""
    seconds = max(0, ns // 10**9)
    if seconds < _MINUTE_S:
        return "less than a minute"
    parts = [(seconds // _DAY_S, "day"), (seconds % _DAY_S // _HOUR_S, "hour"), (seconds % _HOUR_S // 60, "minute")]
    stated = [f"{number} {unit}{'' if number == 1 else 's'}" for number, unit in parts if number]
    return " ".join(stated[:2])


def _quoted(text: str) -> str:
    """A text as one part of a URL's path: all but letters, digits and ``-._~`` percent-encoded."""
    kept = b"-._~"
    return "".join(
        chr(byte) if (byte < 128 and chr(byte).isalnum()) or byte in kept else f"%{byte:02X}"
        for byte in text.encode("utf-8", "replace")
    )


def _plain_line(line: TextLine) -> str:
    return line.text if line.link is None else f"{line.text} {line.link}"
