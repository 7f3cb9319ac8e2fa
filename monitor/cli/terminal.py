"""Output for people: tables, fitted to a terminal's width and unbroken in pipes and logs; and progress.

Progress goes to standard error: a bar on a terminal, a line now and then elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias, TypeVar

import click

_UNSEEN = re.compile(
    "[\\x7f-\\x9f\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\U000e0000-\\U000e01ef]"
)
"""Characters that a terminal acts upon, shows in another order, or hides: C1 controls, marks and tags of Unicode."""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*( ?%)?|-")
_BREAK = re.compile(r"\s+|(?<=\w-)(?=[^\W\d])")
"""Where a line may end: between words, and after a hyphen within one."""
_COLOURS = {"ok": "green", "healthy": "green", "warn": "yellow", "warning": "yellow", "fail": "red", "critical": "red"}
_COUNTS = {"passed": "green", "failed": "red", "incomplete": "yellow"}
"""Columns that count: coloured where there is something to count."""
_LONGEST = 48
"""Characters of a word that is not broken, however narrow the terminal."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], columns: int | None = None) -> str:
    """Rows under their heads; numbers are right-aligned. Control characters of foreign text are made visible.

    On a terminal, or in so many ``columns``, the widest columns of text are wrapped until a row fits.
    """
    cells = [[visible(cell) for cell in row] for row in rows]
    right = [bool(cells) and all(_NUMBER.fullmatch(row[i]) for row in cells) for i in range(len(head))]
    widths = [max(len(head[i]), *(len(row[i]) for row in cells), 0) for i in range(len(head))]
    turned = [[row[i] for row in cells] for i in range(len(head))]
    least = [_least(column, name, number=flush) for column, name, flush in zip(turned, head, right, strict=True)]
    widths = _fitted(widths, least, columns or screen())

    def line(row: Sequence[str], colours: Sequence[str | None]) -> str:
        parts = []
        for cell, width, flush, colour in zip(row, widths, right, colours, strict=True):
            padded = cell.rjust(width) if flush else cell.ljust(width)
            parts.append(click.style(padded, fg=colour) if colour else padded)
        return "  ".join(parts).rstrip()

    found = [click.style(line([name.upper() for name in head], [None] * len(head)), bold=True)]
    for row in cells:
        colours = [_colour(name, cell) for name, cell in zip(head, row, strict=True)]
        wrapped = [textwrap.wrap(cell, max(width, 1)) or [""] for cell, width in zip(row, widths, strict=True)]
        found += [line(part, colours) for part in zip_longest(*wrapped, fillvalue="")]
    return "\n".join(found)


def paragraph(text: str, indent: int) -> str:
    """A text that goes on under itself, ``indent`` characters in, where it is wider than the terminal."""
    width = screen()
    return text if width is None else textwrap.fill(text, max(width, 2 * indent), subsequent_indent=" " * indent)


def screen() -> int | None:
    """The columns of the terminal; ``None`` for a pipe or a file, which take lines of any length."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None


def visible(text: str) -> str:
    """Text of a trace may hold terminal escapes and line breaks; shown, they must be harmless and on one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in _STYLE.sub("", text))


def _fitted(widths: Sequence[int], least: Sequence[int], screen: int | None) -> list[int]:
    """The widths, the widest made narrower as far as the screen asks for and what is ``least`` allows."""
    found = list(widths)
    while screen is not None and (over := sum(found) + 2 * (len(found) - 1) - screen) > 0:
        room = [place for place, width in enumerate(found) if width > least[place]]
        if not room:
            break
        place = max(room, key=lambda place: found[place])
        others = [found[other] for other in room if other != place]
        found[place] = max(found[place] - over, least[place], min(max(others, default=0), found[place] - 1))
    return found


def _least(cells: Sequence[str], head: str, *, number: bool) -> int:
    """The width below which a column would break a number or a word, but for words that no terminal has room for."""
    if number:
        return max(len(head), *(len(cell) for cell in cells))
    return max(len(head), 1, *(min(len(word), _LONGEST) for cell in cells for word in _BREAK.split(cell)))


def _colour(name: str, cell: str) -> str | None:
    if name in _COUNTS:
        return _COUNTS[name] if cell != "0" else None
    return _COLOURS.get(cell)


def number(value: float | None, digits: int = 3) -> str:
    """A number for people; ``-`` where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def share(value: float | None) -> str:
    """A ratio as a percentage for people; ``-`` where there is none."""
    return "-" if value is None else f"{100 * value:.1f} %"


def in_clusters(n: int, clusters: int | None, what: str) -> str:
    """``120 in 24 sessions``; the number alone where each stands for itself."""
    return str(n) if clusters in (None, n) else f"{n} in {clusters} {what}{'s' * (clusters != 1)}"


def escaped(text: str) -> str:
    """JSON with what a terminal would act upon as escapes; to a program it is the same."""
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


T = TypeVar("T")
Counts: TypeAlias = Callable[[], tuple[int, int, int]]
"""Returns how many have passed, failed, and done neither so far; called only when the bar is drawn anew."""
EVERY_S = 30.0
"""Between two lines where no terminal shows a bar."""
_SOON_S = 1.0
"""Work that ends within this time is not announced on a terminal."""
_SHOWN = 10
_Unit: TypeAlias = Literal["bytes", "tests", "traces", "looks", "questions"]
_STEP = {"bytes": 1 << 16, "tests": 1, "traces": 1, "looks": 60, "questions": 1}


@dataclass(frozen=True, slots=True)
class ProgressDisplay:
    """``step`` sets how far things are, and the source of the counts; ``report`` prints a line, made harmless."""

    step: Callable[[int, Counts | None], None]
    report: Callable[[str], None]


@contextlib.contextmanager
def progress(total: int | None, unit: _Unit) -> Iterator[ProgressDisplay]:
    """A bar over ``total`` on a terminal; elsewhere messages, and twice a minute a line that says how far it is."""
    if total is None or not sys.stderr.isatty():
        lines = _Lines(unit, total)
        yield ProgressDisplay(lambda done, _counts: lines.step(done), lambda text: click.echo(visible(text), err=True))
        return
    from rich.console import Console  # only where there is someone to see it
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    done_column = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (BarColumn(bar_width=None), done_column, TextColumn("{task.description}"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, refresh_per_second=5) as bar:
        task = bar.add_task("", total=total)
        drawn = 0

        def step(done: int, counts: Counts | None) -> None:
            nonlocal drawn
            if done - drawn >= _STEP[unit]:
                drawn = done
                bar.update(task, completed=done, description=_reported(counts))

        # Above the bar, not through it; unformatted, because a message may quote anything.
        yield ProgressDisplay(
            step, lambda text: console.print(visible(text), markup=False, highlight=False, soft_wrap=True)
        )


def counted(items: Iterable[T], what: str) -> Iterator[T]:
    """Yield the items and show their number so far, where the total is unknown."""
    if not sys.stderr.isatty():
        lines = _Lines(what, None)
        for number, item in enumerate(items, 1):
            lines.step(number)
            yield item
        return
    from rich.console import Console  # only where there is someone to see it

    with Console(stderr=True).status(what) as status:
        for number, item in enumerate(items, 1):
            if number % _SHOWN == 0:
                status.update(f"{number:,} {what}")
            yield item


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show ``what`` during work of unknown length, on a terminal after a second, else in time."""
    done = threading.Event()
    watcher = threading.Thread(target=_announce, args=(visible(what), done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _announce(what: str, done: threading.Event) -> None:
    if not sys.stderr.isatty():
        begun_s = time.monotonic()
        while not done.wait(EVERY_S):
            click.echo(f"{what}: {time.monotonic() - begun_s:.0f} s so far", err=True)
        return
    if done.wait(_SOON_S):
        return
    from rich.console import Console  # only where there is someone to see it
    from rich.text import Text

    with Console(stderr=True).status(Text(what)):  # no markup: it may name what traces hold
        done.wait()


class _Lines:
    """A line twice a minute for logs, none for what is soon done."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what, self._total = what, total
        self._shown_s = time.monotonic()

    def step(self, done: int) -> None:
        now_s = time.monotonic()
        if now_s - self._shown_s >= EVERY_S:
            self._shown_s = now_s
            of = f" of {self._total:,} ({done / self._total:.0%})" if self._total else ""
            click.echo(f"{done:,}{of} {self._what}", err=True)


def _reported(counts: Counts | None) -> str:
    if counts is None:
        return ""
    passed, failed, incomplete = counts()
    return f"[green]{passed} passed[/] [red]{failed} failed[/] [yellow]{incomplete} incomplete[/]"
