"""Chats: notices as messages of Slack, Microsoft Teams (Adaptive Cards) and Google Chat, by an incoming webhook.

In all of them, text from a trace stays text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from html import escape
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
_TITLE: Final = 200
_PARAGRAPH: Final = 2_000
_PARAGRAPHS: Final = 15
_TEXTS: Final = 14_000
"""Bytes of all paragraphs of a card: with title and links it is below Teams' 28 KB and Google Chat's 32 kB."""
_LINKS: Final = 6
"""Actions that Teams shows of a card."""
_LINK: Final = 1_500
"""Characters of a link; a longer one is left out."""


class Chat:
    """Sends notices to one incoming webhook. ``body`` makes the chat's message of a notice."""

    def __init__(self, poster: Poster, wording: Wording, body: Callable[[Notice, Wording], bytes]) -> None:
        self._poster, self._wording, self._body = poster, wording, body

    async def send(self, notice: Notice) -> None:
        """Return once it was taken. Raises ``DestinationUnreachableError`` and ``RefusedError``."""
        await self._poster.post(self._body(notice, self._wording))


def slack_body(notice: Notice, wording: Wording) -> bytes:
    """A message of Slack: a header, a section for each paragraph, and the title alone for notifications.

    Everything that is not a link of ours is escaped as Slack asks (``&``, ``<``, ``>``) and sent verbatim, so that a
    text from a trace can neither mention a channel nor make a link.
    https://docs.slack.dev/messaging/formatting-message-text
    """
    reported = report(notice, wording)
    title = f"{_sign(notice)} {reported.title}".strip()
    stated = {"text": escape_slack(title), "blocks": blocks(title, reported)}
    return json.dumps(stated).encode()


def blocks(title: str, reported: NoticeText) -> list[dict[str, object]]:
    """The blocks of a message, within Slack's limits."""
    sections = [text for lines in reported.paragraphs for text in _sections(lines)][:_SECTIONS]
    header: dict[str, object] = {"type": "header", "text": {"type": "plain_text", "text": label(title, _HEADER)}}
    return [header, *map(_block, sections)]


def _block(text: str) -> dict[str, object]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def escape_slack(text: str) -> str:
    """The text escaped, so that Slack shows it unchanged.

    >>> escape_slack("<!channel> a & b")
    '&lt;!channel&gt; a &amp; b'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _sections(lines: Sequence[TextLine]) -> list[str]:
    """The lines as texts of at most a section's length."""
    texts = [""]
    for line in map(_line, lines):
        if len(texts[-1]) + len(line) > _SECTION:
            texts.append("")
        texts[-1] += ("\n" if texts[-1] else "") + line
    return texts


def _line(line: TextLine) -> str:
    link = _slack_link(line)
    most, text = _SECTION - len(link), escape_slack(line.text)
    return (text if len(text) <= most else escape_slack(label(line.text, most // len("&amp;") - 1))) + link


def _slack_link(line: TextLine) -> str:
    # What ends a link in Slack's syntax must not stand in one; an operator's template may hold it.
    link = escape_slack(line.link or "").replace("|", "%7C")
    return f" <{link}|{escape_slack(line.link_text)}>" if 0 < len(link) <= _LINK else ""


def _sign(notice: Notice) -> str:
    if notice.kind not in {NoticeKind.ALERT, NoticeKind.REMINDER, NoticeKind.GROUP}:
        return ""
    firing = [event.severity for event in notice.events if event.transition is AlertTransition.FIRING]
    if firing:
        return _SIGNS[min(firing, key=list(Severity).index)]
    return "✅" if all(event.transition is AlertTransition.RESOLVED for event in notice.events) else "⚪"


def teams_body(notice: Notice, wording: Wording) -> bytes:
    """A message of a Teams workflow ("Post to a channel when a webhook request is received"), without markup."""
    reported = report(notice, wording)
    paragraphs = [
        {"type": "RichTextBlock", "separator": True, "inlines": [{"type": "TextRun", "text": text}]}
        for text in _texts(reported, str)
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
    return _written({"type": "message", "summary": label(reported.title, _TITLE), "attachments": [content]})


def google_chat_body(notice: Notice, wording: Wording) -> bytes:
    """A message of a Google Chat webhook (cards v2)."""
    reported = report(notice, wording)
    title = label(reported.title, _TITLE)
    texts = [
        {"textParagraph": {"text": text}} for text in _texts(reported, lambda text: escape(text).replace("\n", "<br>"))
    ]
    buttons = [{"text": text, "onClick": {"openLink": {"url": url}}} for text, url in _links(reported)]
    widgets = [*texts, *([{"buttonList": {"buttons": buttons}}] if buttons else [])]
    card = {"header": {"title": title}, "sections": [{"widgets": widgets}]}
    return _written({"fallbackText": title, "cardsV2": [{"cardId": "sidejudge", "card": card}]})


def _written(message: dict[str, object]) -> bytes:
    """JSON in UTF-8. Escapes would take up to twelve bytes a character of a card's limit."""
    return json.dumps(message, ensure_ascii=False).encode()


def _texts(reported: NoticeText, marked: Callable[[str], str]) -> list[str]:
    """The paragraphs of a card, each ``marked`` up; where they are too many bytes together, the longest are cut."""
    joined = ["\n".join(line.text for line in lines) for lines in reported.paragraphs[:_PARAGRAPHS]]
    texts = [label(text, _PARAGRAPH) for text in joined]
    sizes = [_size(marked(text)) for text in texts]
    while sum(sizes) > _TEXTS:
        longest = sizes.index(max(sizes))
        texts[longest] = label(texts[longest], len(texts[longest]) * 9 // 10)
        sizes[longest] = _size(marked(texts[longest]))
    return [marked(text) for text in texts]


def _size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode())


def _links(reported: NoticeText) -> list[tuple[str, str]]:
    """The notice's links, each once: the text of a button and its address."""
    found: dict[str, str] = {}
    for number, line in enumerate((line for lines in reported.paragraphs for line in lines if line.link), 1):
        named = line.link_text if line.link_text not in {"", "open"} else f"Trace {number}"
        if line.link and len(line.link) <= _LINK:
            found.setdefault(line.link, named)
    return [(text, url) for url, text in found.items()][:_LINKS]
