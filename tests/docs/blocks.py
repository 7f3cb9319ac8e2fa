"""Blocks of code in the documentation: what each is, and where it stands.

The word after the language says what a block is: ``sh`` runs, ``sh background`` runs until the page ends,
``sh install`` is resolved against the index of packages, and ``sh elsewhere why="…"`` needs more than a test has, and
says what. ``title="NAME"`` makes the block a file of the page's folder.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KINDS = {
    "sh": {"", "background", "install", "elsewhere"},
    "yaml": {"", "rubrics", "scenarios", "compose", "values", "tests", "prometheus", "other"},
    "python": {"", "app"},
    "json": {""}, "jsonl": {""}, "text": {"", "output"}, "ts": {""}, "csv": {""}, "promql": {""}, "sql": {""},
}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A block: its language, its kind, the file that it is, what is in it, and its line."""

    language: str
    kind: str
    title: str
    exit: int
    why: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    found = []
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.type == "fence":
            assert token.map is not None
            words = shlex.split(token.info)
            given = dict(word.split("=", 1) for word in words[1:] if "=" in word)
            kind = next((word for word in words[1:] if "=" not in word), "")
            found.append(Block(
                language=words[0] if words else "", kind=kind, title=given.get("title", ""),
                exit=int(given.get("exit", "0")), why=given.get("why", ""), text=token.content, line=token.map[0] + 1,
            ))  # fmt: skip
    return found


def pattern(expected: str) -> re.Pattern[str]:
    """Expected output in which ``…`` stands for anything, and white space for white space."""
    parts = (r"\s+".join(map(re.escape, part.split())) for part in expected.strip().split("…"))
    return re.compile(r"[\s\S]*?".join(parts))
