"""Plain aligned tables: the same on a terminal, in a pipe and in a log."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*( ?%)?|-")
_COLOURS = {"ok": "green", "healthy": "green", "warn": "yellow", "warning": "yellow", "fail": "red", "critical": "red"}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their heads; columns of numbers stand right. Control characters of foreign text are made visible."""
    cells = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(head[i]), *(len(row[i]) for row in cells), 0) for i in range(len(head))]
    right = [bool(cells) and all(_NUMBER.fullmatch(row[i]) for row in cells) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        parts = (
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, right, strict=True)
        )
        return "  ".join(parts).rstrip()

    body = [_coloured(line(row), row) for row in cells]
    return "\n".join([click.style(line([h.upper() for h in head]), bold=True), *body])


def visible(text: str) -> str:
    """Text of a trace may hold terminal escapes and line breaks; shown, they must be harmless and on one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in _STYLE.sub("", text))


def _coloured(line: str, row: Sequence[str]) -> str:
    word = next((cell for cell in row if cell in _COLOURS), None)
    return line.replace(word, click.style(word, fg=_COLOURS[word]), 1) if word is not None else line


def number(value: float | None, digits: int = 3) -> str:
    """A number for people; ``-`` where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def share(value: float | None) -> str:
    """A ratio as a percentage for people; ``-`` where there is none."""
    return "-" if value is None else f"{100 * value:.1f} %"
