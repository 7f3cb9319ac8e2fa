"""Search: words in, pages of the documentation out, best first, by SQLite's full-text index in memory.

A word finds its other forms (Porter's stemmer) and words that begin with it; an unknown word is replaced by the one
with the most similar spelling. A key such as ``alerts.window`` is a phrase, and a page that declares it comes first. A
match in a title counts for more than in a heading, there for more than in prose, and there for more than in code.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from threading import Lock
from typing import Final

from .markdown import MarkdownPage
from .site import address, document, files, runbook_of

MOST_WORDS: Final = 12
"""Most words of a query, and most parts of one such as `alerts.window`."""
_WORD: Final = re.compile(r"\w+")
_ADDRESS: Final = re.compile(r"https?://\S+")
_WEIGHTS: Final = "12.0, 5.0, 2.0, 0.5"
_LEAST_SIMILARITY: Final = 0.75
_FEW: Final = 5
_STOP_WORDS: Final = frozenset([
    "a", "an", "and", "are", "at", "can", "do", "does", "for", "how", "i", "in", "is", "it", "my", "not", "of", "on",
    "or", "the", "to", "what", "when", "where", "why", "with",
])  # fmt: skip
"""Words of questions, which are not searched for: every page holds them."""
_DECLARED: Final = ("docs/reference/configuration.md", "docs/reference/metrics.md", "docs/reference/families.md")
"""Pages that declare what others mention."""
_TABLE: Final = (
    "CREATE VIRTUAL TABLE page USING fts5(title, headings, prose, code, path UNINDEXED, "
    "tokenize = 'porter unicode61 remove_diacritics 2')"
)
_FIND: Final = (
    f"SELECT path, snippet(page, -1, '', '', '…', 30) FROM page WHERE page MATCH ? "  # noqa: S608  # a constant
    f"ORDER BY bm25(page, {_WEIGHTS}) LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page that a search found: its title, the address of the passage, and a few of its words."""

    title: str
    address: str
    words: str


class _Index:
    """All pages, and the words of them. Made when somebody searches first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pages = sqlite3.connect(":memory:", check_same_thread=False)
        self._pages.execute(_TABLE)
        self.defined: dict[str, dict[str, str]] = {}
        """A name that is a heading or a cell of a table, by pages, with the anchor."""
        words: set[str] = set()
        for path in files():
            page = document(path)
            headings = "\n".join(each.text for each in page.headings if each.level > 1)
            prose = "\n".join(prose for _, prose, _ in page.passages)
            code = "\n".join(code for *_, code in page.passages)
            for each in page.headings:
                self.defined.setdefault(each.text.casefold(), {}).setdefault(path, each.anchor)
            for anchor, lines, _ in page.passages:
                for line in lines.splitlines():
                    if " " not in line:
                        self.defined.setdefault(line.casefold(), {}).setdefault(path, anchor)
            words.update(_WORD.findall(f"{page.title} {headings} {prose} {code}".casefold()))
            self._pages.execute("INSERT INTO page VALUES (?, ?, ?, ?, ?)", (page.title, headings, prose, code, path))
        self.parts = {part for word in words for part in word.split("_") if part}

    def find(self, question: str, most: int) -> list[tuple[str, str]]:
        with self._lock:  # one connection, several threads
            return self._pages.execute(_FIND, (question, most)).fetchall()

    def meant(self, word: str) -> str:
        """The word itself if a page has it, or one that begins with it; else the most similar word of the pages."""
        if not word.isalpha() or word in self.parts or any(each.startswith(word) for each in self.parts):
            return word
        near = get_close_matches(word, self.parts, n=1, cutoff=_LEAST_SIMILARITY)
        return near[0] if near else word


_index = cache(_Index)


def search(words: str, limit: int = 40) -> Sequence[FoundPage]:
    """Pages with all of these words, best first; where there are few, pages with any of them after those.

    Args:
        words: The query: words, a key, the name of a metric or an alert, an error message.
        limit: The most pages.
    """
    index = _index()
    typed = (
        _ADDRESS.sub(" ", words.casefold()).strip() or words.casefold()
    ).split()  # an address in an error message is the asker's own
    asked = [each for each in typed if each not in _STOP_WORDS] or typed
    # before they are compared with all words there are, which takes a while
    few = [parts[:MOST_WORDS] for each in asked if (parts := _WORD.findall(each))][:MOST_WORDS]
    wanted = [" ".join(map(index.meant, parts)) for parts in few]
    if not wanted:
        return []
    terms = [f'"{each}" *' for each in wanted]
    found = index.find(" AND ".join(terms), limit)
    if len(found) < _FEW:  # beside a name (`alerts.window`) other words may only say what is asked about it
        found += index.find(" OR ".join(terms), limit)
    named: dict[str, str] = {}
    keys = [each for each in typed if "." in each]  # an error message is about one
    for name in (words.strip().casefold(), *keys):
        named |= index.defined.get(name, {})
    runbook = runbook_of(words.strip().replace("_", "-")) if len(wanted) == 1 else None
    if runbook is not None:
        named[runbook] = ""
    shown = dict(reversed(found))  # of a page that was found twice, the passage with all words
    first = sorted(named, key=lambda path: (path != runbook, path not in _DECLARED))
    ranked = [*dict.fromkeys((*first, *(path for path, _ in found)))][:limit]
    return [_found(path, shown.get(path, ""), wanted, named.get(path)) for path in ranked]


def _found(path: str, shown: str, wanted: Sequence[str], anchor: str | None) -> FoundPage:
    page = document(path)
    if anchor is None:
        _, anchor = max(_ranked_passages(page, wanted))
    return FoundPage(page.title, f"{address(path)}#{anchor}" if anchor else address(path), " ".join(shown.split()))


def _ranked_passages(page: MarkdownPage, wanted: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Rank and anchor of each passage: the more letters of the words it holds, the higher; the first among equals."""
    titles = {each.anchor: each.text for each in page.headings}
    for at, (anchor, prose, code) in enumerate(page.passages):
        text = " ".join(_WORD.findall(f"{titles.get(anchor, '')} {prose} {code}".casefold().replace("_", " ")))
        count = sum(len(each) for each in wanted if each.replace("_", " ") in text)
        yield count * 1000 - at, anchor if at > 1 else ""  # what stands below the title is the page itself
