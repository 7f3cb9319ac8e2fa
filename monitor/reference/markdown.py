"""Markdown: the text of a generated page, and a table as every one of them has it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.resources import files


def page(name: str, **parts: str) -> str:
    """The page ``texts/NAME.md``, with each part in place of its ``<<NAME>>``."""
    text = files(__package__).joinpath("texts", f"{name}.md").read_text(encoding="utf-8")
    return re.sub(r"<<(\w+)>>", lambda found: parts[found[1]].strip("\n"), text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, without a line break at its end."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join(lines + [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows])
