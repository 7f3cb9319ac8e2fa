"""Progress on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import click

from .table import visible

T = TypeVar("T")
Counts: TypeAlias = Callable[[], tuple[int, int, int]]
"""Returns how many have passed, failed, and done neither so far; called only when the bar is drawn anew."""
EVERY_S = 30.0
"""Between two lines where no terminal shows a bar."""
_SOON_S = 1.0
"""What is done by then is not announced on a terminal."""
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
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

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
    """The items, with how many there were so far: nobody knows how many there will be."""
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
    """While something goes on whose length nobody knows: ``what``, on a terminal after a second, else in time."""
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
