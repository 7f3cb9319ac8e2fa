"""Cards: notices as messages of Microsoft Teams (Adaptive Cards) and Google Chat (cards v2).

In both, text from a trace stays text: Teams' text runs know no markup, and Google Chat's HTML is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from sidejudge.integrations.post import Poster
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.notices.notice import Notice
from sidejudge.scoring.notices.text import NoticeText, TextLine, Wording
from sidejudge.scoring.notices.wording import report

_TITLE: Final = 200
_PARAGRAPH: Final = 2_000
_PARAGRAPHS: Final = 10
_LINKS: Final = 6
"""Actions that Teams shows of a card."""


class CardChat:
    """Sends notices to one incoming webhook. ``body`` makes its message from a notice in words."""

    def __init__(self, poster: Poster, wording: Wording, body: Callable[[NoticeText], dict[str, object]]) -> None:
        self._poster, self._wording, self._body = poster, wording, body

    async def send(self, notice: Notice) -> None:
        """Return once it was taken."""
        await self._poster.post(json.dumps(self._body(report(notice, self._wording))).encode())


def teams_body(reported: NoticeText) -> dict[str, object]:
    """A message of a Teams workflow ("Post to a channel when a webhook request is received")."""
    paragraphs = [
        {"type": "RichTextBlock", "separator": True, "inlines": [{"type": "TextRun", "text": text}]}
        for text in map(_joined, reported.paragraphs[:_PARAGRAPHS])
    ]
    title = {
        "type": "RichTextBlock",
        "inlines": [{"type": "TextRun", "weight": "Bolder", "size": "Large", "text": label(reported.title, _TITLE)}],
    }
    links = [{"type": "Action.OpenUrl", "title": text, "url": url} for text, url in _links(reported)]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": [title, *paragraphs],
        "actions": links,
    }
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "summary": label(reported.title, _TITLE), "attachments": [content]}


def google_chat_body(reported: NoticeText) -> dict[str, object]:
    """A message of a Google Chat webhook."""
    title = label(reported.title, _TITLE)
    texts = [
        {"textParagraph": {"text": escape(_joined(lines)).replace("\n", "<br>")}}
        for lines in reported.paragraphs[:_PARAGRAPHS]
    ]
    buttons = [{"text": text, "onClick": {"openLink": {"url": url}}} for text, url in _links(reported)]
    widgets = [*texts, *([{"buttonList": {"buttons": buttons}}] if buttons else [])]
    card = {"header": {"title": title}, "sections": [{"widgets": widgets}]}
    return {"fallbackText": title, "cardsV2": [{"cardId": "sidejudge", "card": card}]}


def _joined(lines: Sequence[TextLine]) -> str:
    return label("\n".join(line.text for line in lines), _PARAGRAPH)


def _links(reported: NoticeText) -> list[tuple[str, str]]:
    """What the notice links to, each once: the text of a button and its address."""
    found: dict[str, str] = {}
    for number, line in enumerate((line for lines in reported.paragraphs for line in lines if line.link), 1):
        named = line.link_text if line.link_text not in {"", "open"} else f"Trace {number}"
        found.setdefault(line.link or "", named)
    return [(text, url) for url, text in found.items()][:_LINKS]
