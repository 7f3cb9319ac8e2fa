"""Markdown: one file of the documentation to HTML, with anchors, rewritten links and nothing that is not Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_WORDS = frozenset({"text", "code_inline", "softbreak"})


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading with its level, from 1, and the anchor that links name."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """A page: its HTML, its headings, and its links as (text, address).

    ``passages`` are the texts between the headings without Markdown: (anchor, prose, code) for each heading.
    """

    title: str
    html: Markup
    headings: Sequence[Heading]
    links: Sequence[tuple[str, str]]
    passages: Sequence[tuple[str, str, str]]


@cache
def parser() -> MarkdownIt:
    """CommonMark with tables and without HTML: HTML is shown as text."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  # 1 MB, at the first page of help

    return MarkdownIt("commonmark", {"html": False}).enable("table")


def read(text: str, resolve: Callable[[str], str | None]) -> MarkdownPage:
    """Read a page.

    Args:
        text: Markdown.
        resolve: The address that a link leads to. None takes the link away and leaves its text.
    """
    tokens = parser().parse(text)
    headings, links, anchors = [], [], Counter[str]()
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            words = _plain(tokens[at + 1])
            slug = _slug(words)
            anchor = f"{slug}-{anchors[slug]}" if anchors[slug] else slug
            anchors[slug] += 1
            token.attrSet("id", anchor)
            headings.append(Heading(int(token.tag[1:]), words, anchor))
        if token.type == "inline" and token.children:
            token.children, found = _linked(token.children, resolve)
            links += found
        if token.type == "fence":
            token.meta["name"] = named(token.info)
    title = next((each.text for each in headings if each.level == 1), "")
    html = "".join(_html(tokens))
    return MarkdownPage(title=title, html=Markup(html), headings=headings, links=links, passages=_passages(tokens))  # noqa: S704  # made by the parser above, which escapes


def _passages(tokens: Sequence[Token]) -> Sequence[tuple[str, str, str]]:
    found: list[tuple[str, list[str], list[str]]] = [("", [], [])]
    heading = False
    for token in tokens:
        if token.type == "heading_open":
            found.append((str(token.attrGet("id")), [], []))
        heading = token.type == "heading_open" or (heading and token.type == "inline")
        if token.type == "inline" and not heading:
            found[-1][1].append(" ".join(_plain(token).split()))
        if token.type in ("fence", "code_block"):
            found[-1][2].append(token.content)
    return [(anchor, "\n".join(prose), "\n".join(code)) for anchor, prose, code in found]


def named(info: str) -> str:
    """The file that a block of code is, from ``yaml title="sidejudge.yaml"``; empty where it is none."""
    found = re.search(r'\btitle="([^"]+)"', info)
    return found[1] if found else ""


def _html(tokens: Sequence[Token]) -> list[str]:
    made: list[str] = []
    renderer, options = parser().renderer, parser().options
    for token in tokens:
        if token.type == "table_open":
            made.append('<div class="scroll" tabindex="0">')
        if token.type == "fence":
            name = f'<div class="file">{escape(token.meta["name"])}</div>' if token.meta["name"] else ""
            made.append(f'<div class="code">{name}<pre tabindex="0">{escape(token.content)}</pre></div>\n')
        else:
            made.append(renderer.render([token], options, {}))
        if token.type == "table_close":
            made.append("</div>")
    return made


def _linked(
    children: Sequence[Token], resolve: Callable[[str], str | None]
) -> tuple[list[Token], list[tuple[str, str]]]:
    """The parts of a text, with links resolved or taken away; and the links."""
    kept, links, gone = [], [], False
    for at, token in enumerate(children):
        if token.type == "link_open":
            to = resolve(str(token.attrGet("href") or ""))
            gone = to is None
            if to is None:
                continue
            token.attrSet("href", to)
            if not to.startswith(("/", "#")):
                token.attrSet("rel", "noreferrer")
                token.attrSet("class", "out")
            words = []
            for each in children[at + 1 :]:
                if each.type == "link_close":
                    break
                words.append(each.content)
            links.append(("".join(words), to))
        if token.type == "image":
            continue  # the content security policy loads none
        if token.type == "link_close" and gone:
            gone = False
            continue
        kept.append(token)
    return kept, links


def _plain(inline: Token) -> str:
    known = (each for each in inline.children or () if each.type in _WORDS)
    return "".join(" " if each.type == "softbreak" else each.content for each in known)


def _slug(words: str) -> str:
    """The anchor of a heading, as GitHub makes it.

    >>> _slug("Which rubric? `run_health`")
    'which-rubric-run_health'
    """
    return re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
