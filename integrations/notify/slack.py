"""Slack: notices as messages of an incoming webhook.

Everything that is not a link of ours is escaped as Slack asks (``&``, ``<``, ``>``) and sent verbatim, so that a text
from a trace can neither mention a channel nor make a link. https://docs.slack.dev/messaging/formatting-message-text
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from sidejudge.integrations.post import Poster
from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from sidejudge.scoring.notices.text import NoticeText, TextLine, Wording
from sidejudge.scoring.notices.wording import report

_HEADER: Final = 148
"""Characters of a header; Slack takes 150."""
_SECTION: Final = 2_900
"""Characters of a section; Slack takes 3000."""
_SECTIONS: Final = 40
"""Blocks of a message; Slack takes 50."""
_SIGNS: Final = {Severity.CRITICAL: "🔴", Severity.WARNING: "🟠", Severity.INFO: "🔵"}


class Slack:
    """Sends notices to one incoming webhook. Raises ``UnreachableError`` and ``RefusedError``."""

    def __init__(self, poster: Poster, wording: Wording) -> None:
        self._poster, self._wording = poster, wording

    async def send(self, notice: Notice) -> None:
        """Return once Slack has taken it."""
        await self._poster.post(slack_body(notice, self._wording))


def slack_body(notice: Notice, wording: Wording) -> bytes:
    """The message: a header, a section for each paragraph, and the title alone for notifications."""
    reported = report(notice, wording)
    title = f"{_sign(notice)} {reported.title}".strip()
    stated = {"text": escape(title), "blocks": blocks(title, reported)}
    return json.dumps(stated).encode()


def blocks(title: str, reported: NoticeText) -> list[dict[str, object]]:
    """The blocks of a message, within Slack's limits."""
    sections = [text for lines in reported.paragraphs for text in _sections(lines)][:_SECTIONS]
    header: dict[str, object] = {"type": "header", "text": {"type": "plain_text", "text": label(title, _HEADER)}}
    return [header, *map(_block, sections)]


def _block(text: str) -> dict[str, object]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def escape(text: str) -> str:
    """Text that Slack shows as it is.

    >>> escape("<!channel> a & b")
    '&lt;!channel&gt; a &amp; b'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _sections(lines: Sequence[TextLine]) -> list[str]:
    """The lines as texts of at most a section's length; one line alone is short enough by its making."""
    texts = [""]
    for line in map(_line, lines):
        if len(texts[-1]) + len(line) > _SECTION:
            texts.append("")
        texts[-1] += ("\n" if texts[-1] else "") + line
    return texts


def _line(line: TextLine) -> str:
    text = escape(line.text)
    if line.link is None:
        return text
    # What ends a link in Slack's syntax must not stand in one; an operator's template may hold it.
    link = escape(line.link).replace("|", "%7C")
    return f"{text} <{link}|{escape(line.link_text)}>"


def _sign(notice: Notice) -> str:
    if notice.kind not in {NoticeKind.ALERT, NoticeKind.REMINDER, NoticeKind.GROUP}:
        return ""
    firing = [event.severity for event in notice.events if event.transition is AlertTransition.FIRING]
    if firing:
        return _SIGNS[min(firing, key=list(Severity).index)]
    return "✅" if all(event.transition is AlertTransition.RESOLVED for event in notice.events) else "⚪"
